"""Every sentence that lint can say, read and judged: it never says two things about what happens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lint.cases import injected
from lint.manifests import lint, pod, workload
from winready.lint import catalog
from winready.lint.catalog import Outcome, Rule
from winready.lint.context import Taint
from winready.lint.sentences import CONSEQUENCE, RESERVED, UNSURE, consequence, message, summary
from winready.lint.versions import FIRST, LAST, Range

MISSING = "sched-missing-toleration"
ACCEPTED, REFUSED = r"accept\w*", r"refus\w*|reject\w*|forbid\w*"
NOTHING, WORKS, FAILS = r"ignor\w*|without effect|no effect", r"works?", r"fails?"
CONTRADICTIONS = {
    "rejected": (ACCEPTED, NOTHING, WORKS),
    "fails": (REFUSED, NOTHING, WORKS),
    "ignored": (REFUSED, FAILS, WORKS),
    "different": (REFUSED, FAILS, NOTHING),
    "supported": (REFUSED, FAILS, NOTHING),
}
"""Words of another end than the one that the sentence is about."""
SOMEBODY_ELSE = re.compile(
    r"[Kk]ubelets?\b|runtime|shim|Azure NPM|documentation|resize call|upstream test|allocations"
    r"|Docker nodes|l2bridge|[Oo]n any OS|no webhook runs|--allow-privileged|the gate|with it on|only part"
    r"|does not declare|spec\.os"
)
"""Who else does that, or where else it happens."""


def every_sentence() -> Iterator[tuple[Rule, Outcome, str]]:
    """Of all rules, in all versions, for pods that declare Windows and for others."""
    for rule in catalog.load().values():
        told = {}
        for declared in (True, False):
            for minor in range(FIRST, LAST + 1):
                if judgement := rule.judge(Range(minor, minor), declared):
                    told[message(rule, judgement.worst)] = judgement.worst
        yield from ((rule, outcome, text) for text, outcome in told.items())


def contradiction(outcome: Outcome, text: str) -> str:
    """The part of a sentence that says something else than its consequence."""
    rest = text.replace(consequence(outcome), "", 1)
    for clause in re.split(r"(?<=[.;])\s", rest):
        for words in CONTRADICTIONS[outcome.effect]:
            if re.search(rf"\b(?:{words})\b", clause) and not SOMEBODY_ELSE.search(clause):
                return clause
    return ""


def test_no_sentence_contradicts_itself() -> None:
    found = [(rule.id, outcome.effect, contradiction(outcome, text)) for rule, outcome, text in every_sentence()]
    assert len(found) > len(catalog.load())
    assert [each for each in found if each[2]] == []


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        ("ignored", "Windows knows no POSIX capabilities, so even dropping ALL is refused."),
        ("ignored", "false is refused as well."),
        ("rejected", "It is accepted, and its pods are not."),
        ("supported", "It fails."),
    ],
)
def test_a_contradiction_is_noticed(effect: catalog.Effect, text: str) -> None:
    outcome = Outcome(Range(30, None), effect, "warning")
    assert contradiction(outcome, f"a field: {consequence(outcome)}. {text}") == text


def test_what_happens_is_said_once_and_fits_the_severity() -> None:
    said = sorted({*CONSEQUENCE.values(), RESERVED, UNSURE}, key=len, reverse=True)
    for rule, outcome, text in every_sentence():
        assert [each for each in said if each in text][:1] == [consequence(outcome)], rule.id
        assert text.startswith(f"{rule.title}: {consequence(outcome)}. "), rule.id
        assert text.endswith("."), rule.id
        if outcome.effect == "supported" and outcome.severity != "info":
            assert RESERVED in text, rule.id
            assert outcome.note, f"{rule.id}: which reservation?"
        if outcome.effect == "fails":
            assert (UNSURE in text) == (outcome.severity == "info"), rule.id
        if outcome.severity == "error":
            assert outcome.effect != "supported", rule.id


def test_a_rule_in_one_sentence_has_one_consequence() -> None:
    for rule in catalog.load().values():
        assert summary(rule) == f"{rule.title}: {consequence(rule.declared[-1])}"


def test_a_controller_whose_pods_are_refused_is_not_called_refused(tmp_path: Path) -> None:
    change = {"containers": [{"securityContext": {"capabilities": {"drop": ["ALL"]}}}]}
    of_pod, of_set, ignored = (
        next(one.message for one in lint(tmp_path, each, "1.30") if one.rule == "sc-capabilities")
        for each in (pod(change), workload("StatefulSet", change), pod({**change, "os": None}))
    )
    assert "the API server refuses it" in of_pod
    assert "the API server takes the StatefulSet and refuses its pods" in of_set
    assert "accepted, but without effect" in ignored
    assert "refuse" not in ignored


def test_a_subpath_is_warned_about_for_what_is_wrong_with_it(tmp_path: Path) -> None:
    change = {"containers": [{"volumeMounts": [{"name": "data", "mountPath": "C:", "subPath": "a"}]}]}
    (found,) = [one for one in lint(tmp_path, pod(change), "1.34") if one.rule == "vol-subpath"]
    assert (found.severity, RESERVED in found.message, "leak handles" in found.message) == ("warning", True, True)


@pytest.mark.parametrize(
    "marks",
    [
        {"labels": {"sidecar.istio.io/inject": "true"}},
        {"annotations": {"sidecar.istio.io/inject": "true"}},
        {"labels": {"istio.io/rev": "stable"}},
        {"annotations": {"linkerd.io/inject": "enabled"}},
        {"annotations": {"vault.hashicorp.com/agent-inject": "true"}},
    ],
)
def test_every_way_to_ask_for_a_sidecar_is_known(tmp_path: Path, marks: dict[str, dict[str, str]]) -> None:
    (found,) = [one for one in lint(tmp_path, pod(**marks)) if one.rule == "pod-sidecar-injection"]
    (key,) = next(iter(marks.values()))
    assert key in found.message


def test_a_namespace_can_ask_for_the_sidecars_of_all_its_pods(tmp_path: Path) -> None:
    (found,) = [one for one in lint(tmp_path, [injected(), pod(namespace="team")]) if one.rule.endswith("injection")]
    assert "namespace team has Istio add a sidecar" in found.message


@pytest.mark.parametrize(
    "image",
    [
        "envoyproxy/envoy:v1.30.0",
        "nginx:1.27",
        "redis@sha256:0",
        "python:3.12-alpine3.20",
        "mcr.microsoft.com/dotnet/aspnet:8.0-jammy",
    ],
)
def test_linux_images_are_known(tmp_path: Path, image: str) -> None:
    found = lint(tmp_path, pod({"containers": [{"image": image}]}))
    assert [one.severity for one in found if one.rule == "img-linux-only"] == ["error"]


def test_what_depends_on_the_cluster_is_said_to_fail_only_where_that_is_known(tmp_path: Path) -> None:
    unknown, known = (
        next(one for one in lint(tmp_path, pod({"tolerations": []}), "1.34", profile) if one.rule == MISSING)
        for profile in ({}, {"taints": (Taint.parse("os=windows:NoSchedule"),)})
    )
    assert (unknown.severity, UNSURE in unknown.message) == ("info", True)
    assert (known.severity, CONSEQUENCE["fails"] in known.message) == ("error", True)
