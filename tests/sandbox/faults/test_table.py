"""The table of faults is complete, and what it says fits the standard and the parts it breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from winready.spec.loader import load_standard
from winready_sandbox.faults import ids
from winready_sandbox.faults.table import FAULTS, UnknownFault, find
from winready_sandbox.machine.machine import MachineDefects
from winready_sandbox.nodes.defects import NodeDefects
from winready_sandbox.plan import Plan
from winready_sandbox.state import Place
from winready_sandbox.up import Sandbox

STANDARD = load_standard()
KNOWN = {item.id for item in STANDARD.requirements} | {rule.id for rule in STANDARD.rules}


def test_the_ids_are_those_of_the_standard() -> None:
    by_key = {item.key: item.id for item in STANDARD.requirements}
    named = {key: value for key, value in vars(ids).items() if key.isupper()}
    assert {key: value for key, value in named.items() if key in by_key} == by_key
    assert set(named.values()) <= KNOWN


def test_faults_declare_known_requirements_and_never_the_same_twice() -> None:
    for fault in FAULTS.values():
        declared = [*fault.requirements, *fault.blocks]
        assert set(declared) <= KNOWN, fault.name
        assert len(declared) == len(set(declared)), fault.name


def test_faults_are_described_in_a_sentence_and_cite_a_fact() -> None:
    for fault in FAULTS.values():
        assert fault.description[0].isupper(), fault.name
        assert fault.description.endswith("."), fault.name
        assert fault.fact, fault.name


def test_every_requirement_and_rule_is_failed_by_a_fault_and_core_ones_by_two() -> None:
    for name in KNOWN:
        least = 2 if name.startswith("core.") else 1
        assert sum(name in fault.requirements for fault in FAULTS.values()) >= least, name


def test_there_are_faults_that_nobody_may_take_for_a_finding() -> None:
    harmless = {name for name, fault in FAULTS.items() if not fault.requirements and not fault.blocks}
    assert {"api.slow", "api.resets", "link.windows.slow", "kubelet.windows.slow-start"} <= harmless


def test_what_a_fault_changes_is_there_to_be_changed(tmp_path: Path) -> None:
    sandbox = Sandbox(Plan(windows=1, linux=1), Place("t", tmp_path))
    sandbox.fabric.add_node("n", "windows", ["10.0.0.1"], [])
    parts = {
        "network": sandbox.fabric.nodes["n"].defects,
        "node": NodeDefects(),
        "machine": MachineDefects(),
        "domain": sandbox.domain.defects,
        "scheduler": sandbox.embedded.manager.context.placement["n"],
        "controllers": sandbox.embedded.manager.context.defects,
        "tokens": sandbox.embedded.tokens.defects,
        "api": sandbox.embedded.trouble.defects,
    }
    for fault in FAULTS.values():
        root, _, field = fault.part.partition(".")
        defects = getattr(parts[root], field) if field else parts[root]
        for name, value in fault.changes.items():
            assert getattr(defects, name) != value, fault.name


def test_an_unknown_fault_is_met_with_the_nearest_name() -> None:
    with pytest.raises(UnknownFault, match=r"did you mean 'dns\.windows\.dead'"):
        find("dns.windows.ded")


def test_faults_of_linux_conformance_name_the_tests_that_they_fail() -> None:
    for fault in FAULTS.values():
        assert bool(fault.conformance) == (ids.LINUX_CONFORMANCE in fault.requirements), fault.name
        assert all(name.endswith("[Conformance]") for name in fault.conformance), fault.name
