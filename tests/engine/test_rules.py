"""The rules of a run: builds, images, and the imported result of Linux conformance."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import msgspec
import pytest

from winready.cluster.evidence import Evidence, PodFact
from winready.cluster.images import repository
from winready.cluster.inventory import Inventory, Node
from winready.cluster.settings import AGNHOST, PAUSE
from winready.engine.facts import Facts
from winready.engine.outcomes import Judged, RequirementResult, RuleResult
from winready.engine.rules import JUDGES, judge_rules
from winready.engine.rules.conformance import LEAST_TESTS, ConformanceError, judge_conformance, read_conformance
from winready.engine.sights import ImageSeen, Sights
from winready.engine.terms import Terms
from winready.engine.verdict import judge
from winready.spec.builds import BuildList
from winready.spec.loader import load_standard
from winready.spec.model import Rule


def used(pod: str, node: str, image: str, digest: str) -> ImageSeen:
    return ImageSeen(pod=f"ns/{pod}", node=node, image=image, digest=digest)


def judged(
    rule: str, *images: ImageSeen, build: str = "10.0.20348", said: str = "", chosen: BuildList = "published"
) -> RuleResult:
    pods = [PodFact(namespace="ns", name="p", uid="p", node="w1", os="windows", build=said, node_build=build)]
    result = RequirementResult(
        id="x", category="c", level="core", outcome="passed", reason="", evidence=Evidence(pods=pods)
    )
    nodes = [Node(name=f"w{n}", uid=f"u{n}", os="windows", build=build) for n in (1, 2)]
    facts = Facts(
        terms=Terms(windows_builds=chosen).stated([repository(AGNHOST), repository(PAUSE)]),
        inventory=Inventory(server="https://x", version="v1.36.0", nodes=nodes, features={}, missing={}),
        judged_nodes=["w1", "w2"],
        sights=Sights(namespaces=["ns"], images=list(images)),
    )
    return next(item for item in judge_rules(load_standard(), facts, [result]) if item.id == rule)


@pytest.mark.parametrize(
    ("build", "allowed"),
    [
        ("10.0.17763", {"draft", "published"}),
        ("10.0.19041", {"draft"}),
        ("10.0.20348", {"draft", "published", "current"}),
        ("10.0.26100", {"current"}),
        ("10.0.14393", set()),
    ],
)
def test_a_build_is_judged_by_the_chosen_list(build: str, allowed: set[str]) -> None:
    lists: tuple[BuildList, ...] = ("draft", "published", "current")
    for chosen in lists:
        rule = judged("rule.windows-builds", build=build, chosen=chosen)
        assert (rule.outcome == "passed") == (chosen in allowed)
        if rule.outcome == "failed":
            assert "w1" in rule.reason
            assert build in rule.reason
            assert f"'{chosen}'" in rule.reason


def test_a_node_that_runs_newer_containers_than_it_claims_to_be_able_to_is_found_out() -> None:
    rule = judged("rule.windows-builds", build="10.0.17763", said="10.0.20348")
    assert rule.outcome == "failed"
    assert "node w1" in rule.reason
    assert judged("rule.windows-builds", build="10.0.20348", said="10.0.17763").outcome == "passed"


def test_images_other_than_agnhost_and_pause_are_named_with_pod_and_node() -> None:
    fine = [used("a", "w1", AGNHOST, "sha256:1"), used("b", "w2", PAUSE, "sha256:2")]
    assert judged("rule.images", *fine).outcome == "passed"
    rule = judged("rule.images", *fine, used("c", "w2", "docker.io/library/iis:1", "sha256:3"))
    assert rule.outcome == "failed"
    assert "ns/c on node w2 runs docker.io/library/iis:1" in rule.reason
    assert judged("rule.images").outcome == "blocked"


def test_one_image_must_have_one_content_on_all_nodes() -> None:
    rule = judged("rule.images", used("a", "w1", AGNHOST, "sha256:1"), used("b", "w2", AGNHOST, "sha256:2"))
    assert rule.outcome == "failed"
    assert "(sha256:1) on w1" in rule.reason
    assert "(sha256:2) on w2" in rule.reason
    older = AGNHOST.replace("2.63.0", "2.56")
    rule = judged("rule.images", used("a", "w1", AGNHOST, "sha256:1"), used("b", "w2", older, "sha256:2"))
    assert rule.outcome == "failed"


def test_the_repository_of_an_image_has_neither_tag_nor_digest() -> None:
    assert repository("localhost:5000/a/b:1@sha256:0") == "localhost:5000/a/b"
    assert repository("pause") == "pause"


def junit(tests: int = LEAST_TESTS, failed: str = "", head: str = "") -> bytes:
    cases = "".join(f'<testcase name="[It] {n} [Conformance]"/>' for n in range(tests))
    cases += '<testcase name="left out [Conformance]"><skipped/></testcase><testcase name="other"><failure/></testcase>'
    if failed:
        cases += f'<testcase name="{failed} [Conformance]"><failure message="no"/></testcase>'
    return f"{head}<testsuites><testsuite>{cases}</testsuite></testsuites>".encode()


def archive(content: bytes, name: str = "plugins/e2e/results/global/junit_01.xml") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for path, data in (("meta/run.log", b"x" * 2000), (name, content)):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def test_conformance_comes_from_a_junit_file_or_a_sonobuoy_archive(tmp_path: Path) -> None:
    file = tmp_path / "result"
    for content in (junit(), archive(junit())):
        file.write_bytes(content)
        assert judge_conformance(read_conformance(file)) == (
            "passed",
            f"all {LEAST_TESTS} conformance tests passed in result",
        )
    file.write_bytes(archive(junit(failed="Pods should start")))
    outcome, reason = judge_conformance(read_conformance(file))
    assert outcome == "failed"
    assert "Pods should start" in reason
    file.write_bytes(junit(tests=3))
    assert judge_conformance(read_conformance(file))[0] == "blocked"


def test_a_result_may_have_any_name_that_a_file_can_have(tmp_path: Path) -> None:
    file = tmp_path / b"r\xff.xml".decode(errors="surrogateescape")
    file.write_bytes(junit())
    assert read_conformance(file).source == "r?.xml"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello", "neither JUnit XML"),
        (junit(head='<!DOCTYPE a [<!ENTITY b "c">]>'), "document type definition"),
        (b"<testsuites/>", "names no test"),
        (archive(junit(), "plugins/other/results/junit_01.xml"), "no JUnit result of plugin e2e"),
        (archive(junit())[:200], "no archive that can be read"),
    ],
)
def test_what_is_no_conformance_result_is_refused_in_words(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "result"
    file.write_bytes(content)
    with pytest.raises(ConformanceError, match=words):
        read_conformance(file)


def test_a_run_without_a_conformance_result_says_that_it_is_absent() -> None:
    rule = judged("rule.linux-conformance")
    assert rule.reason.startswith("absent")
    assert rule.gates == "certificate"


def test_a_rule_that_this_winready_cannot_judge_is_blocked_and_no_run_passes_with_it() -> None:
    standard = load_standard()
    new = Rule(id="rule.of-tomorrow", statement="something new", gates="run")
    document = msgspec.structs.replace(standard.document, rules=[*standard.rules, new])
    newer = msgspec.structs.replace(standard, document=document)
    rules = judge_rules(newer, Facts(terms=Terms()), [])
    assert [rule.id for rule in rules] == [rule.id for rule in newer.rules]
    unknown = rules[-1]
    assert (unknown.outcome, unknown.gates) == ("blocked", "run")
    assert "does not know how to judge it" in unknown.reason
    passed = RequirementResult(id="x", category="c", level="core", outcome="passed", reason="")
    assert judge(newer, [passed], [unknown]).exit_code == 3


def test_a_rule_whose_judge_crashes_is_in_error_and_the_others_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Judged:
        raise KeyError("x")

    monkeypatch.setitem(JUDGES, "rule.images", broken)
    rule = judged("rule.images")
    assert (rule.outcome, rule.reason) == ("error", "winready itself failed: KeyError: 'x'")
    assert judged("rule.windows-builds").outcome == "passed"


def test_nothing_known_passes_no_rule() -> None:
    rules = judge_rules(load_standard(), Facts(), [])
    assert {rule.id for rule in rules} == set(JUDGES)
    assert {rule.outcome for rule in rules} <= {"blocked", "error"}
    size = next(rule for rule in rules if rule.id == "rule.cluster-size")
    assert (size.outcome, size.reason) == ("error", "the cluster could not be looked at")


def test_a_waiver_is_named_only_where_there_is_something_to_waive() -> None:
    terms = Terms(waived=["--allow-small-cluster"])
    one = Node(name="w1", uid="1", os="windows")
    inventory = Inventory(server="https://x", version="v1.36.0", nodes=[one], features={}, missing={})
    rules = {rule.id: rule for rule in judge_rules(load_standard(), Facts(terms=terms, inventory=inventory), [])}
    assert rules["rule.cluster-size"].outcome == "failed"
    assert [rule.id for rule in rules.values() if rule.waived_by] == ["rule.cluster-size"]
    pairs = [Node(name=f"{os}{n}", uid=f"{os}{n}", os=os) for os in ("windows", "linux") for n in (1, 2)]
    whole = Facts(terms=terms, inventory=msgspec.structs.replace(inventory, nodes=pairs))
    assert not any(rule.waived_by for rule in judge_rules(load_standard(), whole, []))
