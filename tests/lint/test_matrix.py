"""The support matrix through the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from winready.cli.main import cli
from winready.lint import catalog, matrix


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["matrix", *arguments])


def features(*arguments: str) -> dict[str, dict[str, Any]]:
    result = run("-o", "json", *arguments)
    assert result.exit_code == 0, result.output
    return {feature["id"]: feature for feature in json.loads(result.stdout)["features"]}


def test_every_feature_points_to_rules_that_exist() -> None:
    assert len({feature.id for feature in matrix.load()}) == len(matrix.load()) == 110
    assert {rule for feature in matrix.load() for rule in feature.rules} <= set(catalog.load())
    for feature in matrix.load():
        assert [stage.since for stage in feature.stages] == sorted({stage.since for stage in feature.stages})
        assert {stage.name for stage in feature.stages} <= {"alpha", "beta", "ga", "none"}


@pytest.mark.parametrize(
    ("feature", "version", "support", "stage", "since"),
    [
        ("gmsa", "1.34", "yes", "ga", "1.18"),
        ("gmsa", "1.14", "off", "alpha", "1.14"),
        ("host-process", "1.24", "yes", "beta", "1.23"),
        ("identify-pod-os", "1.23", "off", "alpha", "1.23"),
        ("ws2019", "1.34", "yes", "ga", "1.14"),
        ("ws2019", "1.35", "no", None, None),
        ("hugepages", "1.36", "never", None, None),
        ("network-policy", "1.36", "limited", "ga", "1.23"),
        ("node-log-query", "1.35", "off", "beta", "1.30"),
    ],
)
def test_a_feature_in_a_version(feature: str, version: str, support: str, stage: str | None, since: str | None) -> None:
    [status] = features("--kubernetes", version, "--feature", feature)[feature]["statuses"]
    assert status == {"versions": version, "support": support, "stage": stage, "since": since}


def test_it_answers_a_question_in_the_words_of_its_reader() -> None:
    result = run("--kubernetes", "1.34", "--feature", "Active Directory")
    assert result.exit_code == 0
    assert "Kubernetes 1.34: supported, stable since 1.18" in result.output
    assert "webhook" in result.output


def test_a_range_tells_when_a_feature_changed() -> None:
    statuses = features("--kubernetes", "1.30-1.36", "--feature", "dsr")["dsr"]["statuses"]
    assert [(one["versions"], one["stage"]) for one in statuses] == [
        ("1.30-1.32", "alpha"),
        ("1.33", "beta"),
        ("1.34-1.36", "ga"),
    ]


def test_an_upgrade_plan_names_gains_losses_and_manifests_to_change() -> None:
    plan = json.loads(run("--diff", "1.30", "1.36", "-o", "json").stdout)
    changed = {feature["id"]: (feature["before"]["stage"], feature["after"]["stage"]) for feature in plan["features"]}
    assert changed["ws2025"] == (None, "ga")
    assert changed["ws2019"] == ("ga", None)
    assert "probes" not in changed
    rules = {rule["id"]: rule for rule in plan["rules"]}
    assert rules["res-pod-level"]["before"] is None
    assert rules["res-pod-level"]["after"]["effect"] == "rejected"
    text = run("--diff", "1.30", "1.36").output
    assert text.index("Gained") < text.index("Lost") < text.index("Manifests judged differently")
    assert "Nothing changes" in run("--diff", "1.36", "1.36").output


@pytest.mark.parametrize(
    ("form", "sign"), [("markdown", "| Huge pages | never |"), ("html", "<td>Huge pages</td>"), ("text", "Huge pages")]
)
def test_forms(form: str, sign: str) -> None:
    result = run("-o", form)
    assert result.exit_code == 0
    assert sign in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--feature", "quantum"], "no feature matches 'quantum'"),
        (["--kubernetes", "1.99"], "1.14 to 1.37"),
        (["--kubernetes", "1.36-1.30"], "1.30-1.36"),
        (["--kubernetes", "latest"], "not a Kubernetes version"),
        (["--diff", "1.30", "x"], "not a Kubernetes version"),
        (["--diff", "1.30", "1.36", "--kubernetes", "1.30"], "leave --kubernetes out"),
    ],
)
def test_wrong_usage_says_what_to_write(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output
