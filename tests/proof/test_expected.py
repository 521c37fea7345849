"""What the faults must be noticed by: every fault and every requirement is thought of, in the words of the standard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import winready_sandbox
from winready.proof.expected.control_plane import CONTROL_PLANE
from winready.proof.expected.model import HARMLESS, Expectation, ids
from winready.proof.expected.network import NETWORK
from winready.proof.expected.nodes import NODES
from winready.proof.expected.table import expected
from winready.proof.expected.volumes import VOLUMES
from winready.spec.loader import load_standard
from winready_sandbox.faults.control_plane import CONTROL_PLANE_FAULTS
from winready_sandbox.faults.model import Fault
from winready_sandbox.faults.network import NETWORK_FAULTS
from winready_sandbox.faults.nodes import NODE_FAULTS
from winready_sandbox.faults.table import FAULTS
from winready_sandbox.faults.volumes import VOLUME_FAULTS

STANDARD = load_standard()
REQUIREMENTS = {item.id for item in STANDARD.requirements}
RULES = {rule.id for rule in STANDARD.rules}
CORE = {item.id for item in STANDARD.requirements if STANDARD.level(item) == "core"}
EXPECTED = {name: expected(name) for name in FAULTS}


@pytest.mark.parametrize(
    ("table", "faults"),
    [
        (NETWORK, NETWORK_FAULTS),
        (NODES, NODE_FAULTS),
        (VOLUMES, VOLUME_FAULTS),
        (CONTROL_PLANE, CONTROL_PLANE_FAULTS),
    ],
)
def test_each_fault_has_one_expectation_in_the_table_of_its_part(
    table: dict[str, Expectation], faults: Sequence[Fault]
) -> None:
    assert list(table) == [fault.name for fault in faults]


def test_no_fault_stands_in_two_tables() -> None:
    assert [*NETWORK, *NODES, *VOLUMES, *CONTROL_PLANE] == list(FAULTS)


def test_expectations_name_what_the_standard_knows_and_never_the_same_twice() -> None:
    for name, expectation in EXPECTED.items():
        declared = [*expectation.requirements, *expectation.blocked]
        assert set(declared) <= REQUIREMENTS | RULES, name
        assert len(declared) == len(set(declared)), name


def test_every_requirement_and_rule_is_failed_by_a_fault_and_core_ones_by_two() -> None:
    for item in REQUIREMENTS | RULES:
        least = 2 if item in CORE else 1
        assert sum(item in expectation.requirements for expectation in EXPECTED.values()) >= least, item


def test_there_are_faults_that_nobody_may_take_for_a_finding() -> None:
    harmless = {name for name, expectation in EXPECTED.items() if expectation == HARMLESS}
    assert {"api.slow", "api.resets", "link.windows.slow", "kubelet.windows.slow-start"} <= harmless


def test_faults_of_linux_conformance_name_the_tests_that_they_fail() -> None:
    for name, expectation in EXPECTED.items():
        assert bool(expectation.conformance) == ("linux-conformance" in expectation.noticed_by.split()), name
        assert all(test.endswith("[Conformance]") for test in expectation.conformance), name


def test_short_names_are_the_keys_and_rules_of_the_standard() -> None:
    assert ids("N1 W4 images") == [
        "core.network.windows-to-linux-service-ip",
        "extend.worker.remote-access",
        "rule.images",
    ]
    with pytest.raises(ValueError, match="'N99'"):
        ids("N1 N99")


def test_a_fault_without_an_expectation_is_not_taken_for_a_harmless_one() -> None:
    with pytest.raises(ValueError, match=r"'dns\.windows\.new'.*winready/proof/expected"):
        expected("dns.windows.new")


def test_the_sandbox_knows_nothing_of_the_standard() -> None:
    for path in Path(winready_sandbox.__path__[0]).rglob("*.py"):
        text = path.read_text()
        assert [item for item in REQUIREMENTS | RULES if item in text] == [], path
