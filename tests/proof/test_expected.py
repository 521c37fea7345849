"""What the faults must be noticed by: every fault and every requirement is thought of, in the words of the standard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import winready_sandbox
from winready.proof.expected.model import HARMLESS, Expectation, ids
from winready.proof.expected.table import PARTS, expected
from winready.spec.loader import load_standard
from winready_sandbox.faults.model import Fault
from winready_sandbox.faults.table import FAULTS
from winready_sandbox.faults.table import PARTS as FAULTS_OF_PARTS

STANDARD = load_standard()
REQUIREMENTS = {item.id for item in STANDARD.requirements}
RULES = {rule.id for rule in STANDARD.rules}
CORE = {item.id for item in STANDARD.requirements if STANDARD.level(item) == "core"}
EXPECTED = {name: expected(name) for name in FAULTS}


def test_expectations_are_cut_along_the_same_parts_as_faults() -> None:
    assert list(PARTS) == list(FAULTS_OF_PARTS)


@pytest.mark.parametrize("part", FAULTS_OF_PARTS)
def test_each_fault_has_one_expectation_in_the_table_of_its_part(part: str) -> None:
    table: dict[str, Expectation] = PARTS[part]
    faults: Sequence[Fault] = FAULTS_OF_PARTS[part]
    assert list(table) == [fault.name for fault in faults]


def test_no_fault_stands_in_two_tables() -> None:
    assert [name for table in PARTS.values() for name in table] == list(FAULTS)


def test_expectations_name_what_the_standard_knows_and_never_the_same_twice() -> None:
    for name, expectation in EXPECTED.items():
        declared = [*expectation.requirements, *expectation.blocked]
        assert set(declared) <= REQUIREMENTS | RULES, name
        assert len(declared) == len(set(declared)), name


def test_every_requirement_and_rule_is_failed_by_a_fault_and_core_ones_by_two() -> None:
    for item in REQUIREMENTS | RULES:
        least = 2 if item in CORE else 1
        assert sum(item in expectation.requirements for expectation in EXPECTED.values()) >= least, item


def test_every_requirement_of_an_extension_has_a_fault_that_concerns_its_category_alone() -> None:
    category = {item.id: item.category for item in STANDARD.requirements}
    alone: set[str] = set()
    for expectation in EXPECTED.values():
        declared = {*expectation.requirements}
        if len({category.get(name, name) for name in declared}) == 1:
            alone |= declared
    # Whoever watches a reboot sees a node that does not come back from it, too.
    assert REQUIREMENTS - CORE - alone == {*ids("P7")}
    assert any({*expectation.requirements} == {*ids("S6 P7")} for expectation in EXPECTED.values())


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
