"""How features can be shown: every row of the matrix once, each with a way that exists."""

from __future__ import annotations

import pytest

from winready.checks.registry import load_checks, load_feature_checks
from winready.engine.selection import Selection, SelectionError, select
from winready.features import catalogue
from winready.features.choosing import find, requirements_of, selected
from winready.lint import matrix
from winready.proof.expected.table import EXPECTATIONS
from winready.proof.judgement import UNSEEN
from winready.spec.loader import load_standard
from winready.upstream.mapping import load_mapping

ROWS = catalogue.load()
STANDARD = load_standard()


def test_every_feature_of_the_matrix_stands_in_it_once_and_in_the_same_order() -> None:
    assert list(ROWS) == [feature.id for feature in matrix.load()]
    assert len(ROWS) == 110


@pytest.mark.parametrize("entry", ROWS.values(), ids=lambda entry: entry.id)
def test_each_has_a_way_or_says_why_there_is_none(entry: catalogue.Entry) -> None:
    shown = bool(entry.requirements or entry.check or entry.tests)
    assert shown != bool(entry.data)
    assert not entry.data or (entry.data.endswith(".") and "yet" not in entry.data.split()[:4])
    assert set(entry.requirements) <= load_checks().keys()
    assert set(entry.tests) <= load_mapping().tests.keys()
    disruptive = {item.id for item in STANDARD.requirements if item.disruptive}
    assert disruptive.isdisjoint(entry.requirements), "a look at a feature disturbs nobody"


def test_checks_of_features_are_those_of_the_catalogue() -> None:
    assert set(load_feature_checks()) == {name for name, entry in ROWS.items() if entry.check}


def test_sixty_features_and_more_are_shown_by_winready_itself() -> None:
    ways = [entry.way for entry in ROWS.values()]
    assert ways.count("check") + ways.count("requirement") >= 60
    assert "upstream" in ways


def test_every_check_of_a_feature_has_a_fault_or_a_cluster_on_which_it_does_not_pass() -> None:
    declared = {name for expectation in EXPECTATIONS.values() for name in expectation.unshown}
    assert declared <= ROWS.keys()
    # On the sandbox as it comes up these are not there.
    assert set(load_feature_checks()) - declared == UNSEEN


def test_every_feature_that_requirements_show_has_a_fault_that_breaks_one_of_them() -> None:
    broken = {name for expectation in EXPECTATIONS.values() for name in expectation.requirements}
    assert [entry.id for entry in ROWS.values() if entry.requirements and broken.isdisjoint(entry.requirements)] == []


@pytest.mark.parametrize(
    ("feature", "minor", "text"),
    [
        ("host-process", 36, "supported since 1.26"),
        ("session-affinity", 36, "supported since 1.19 with limits"),
        ("graceful-node-shutdown", 33, "off by default since 1.32 (alpha, gate WindowsGracefulNodeShutdown)"),
        ("graceful-node-shutdown", 31, "not in this version"),
        ("ws2019", 36, "gone since 1.35"),
        ("lcow", 36, "never"),
        ("kubeadm", 36, "supported since 1.18 (beta)"),
        ("node-support", 36, "supported with limits"),
    ],
)
def test_what_the_data_says_is_told_in_words(feature: str, minor: int, text: str) -> None:
    assert catalogue.documented(ROWS[feature].feature, minor).text == text
    statements = catalogue.wanted(ROWS[feature]).statements
    assert [each for each in statements if each.since <= minor][-1].text == text


def test_features_are_found_by_words_and_areas() -> None:
    assert find(["active directory"]) == ["gmsa"]
    pods = find([], ["Pods"])
    assert "probes" in pods
    assert "gmsa" not in pods
    assert set(find(["gmsa"], ["pods"])) == {"gmsa", *pods}
    assert find([]) == list(ROWS)
    with pytest.raises(SelectionError, match="no feature matches 'teleport'"):
        find(["teleport"])
    with pytest.raises(SelectionError, match="did you mean 'networking'"):
        find([], ["network"])


def test_a_selection_of_features_selects_what_shows_them_and_nothing_else() -> None:
    chosen = selected(Selection(), ["svc-clusterip", "probes"])
    assert [item.id for item in select(STANDARD, chosen)] == requirements_of(["svc-clusterip"])
    assert select(STANDARD, selected(Selection(), ["probes"])) == []
    assert len(select(STANDARD, Selection(profile="full", features=["probes"]))) == len(STANDARD.requirements)
    whole = selected(Selection(profile="full"), ["svc-clusterip"])
    assert len(select(STANDARD, whole)) == len(STANDARD.requirements), "features never narrow a run down"
    left_out = selected(Selection(skip=requirements_of(["svc-clusterip"])), ["svc-clusterip"])
    assert select(STANDARD, left_out) == []
