"""The table of faults: each is described, cites a fact, and fits the part that it breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from winready_sandbox.faults.table import FAULTS, UnknownFault, find
from winready_sandbox.machine.machine import MachineDefects
from winready_sandbox.nodes.defects import NodeDefects
from winready_sandbox.plan import Plan
from winready_sandbox.state import Place
from winready_sandbox.up import Sandbox


def test_faults_are_described_in_a_sentence_and_cite_a_fact() -> None:
    for fault in FAULTS.values():
        assert fault.description[0].isupper(), fault.name
        assert fault.description.endswith("."), fault.name
        assert fault.fact, fault.name


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
        "gmsa": sandbox.embedded.credential_specs.defects,
    }
    for fault in FAULTS.values():
        root, _, field = fault.part.partition(".")
        defects = getattr(parts[root], field) if field else parts[root]
        for name, value in fault.changes.items():
            assert getattr(defects, name) != value, fault.name


def test_an_unknown_fault_is_met_with_the_nearest_name() -> None:
    with pytest.raises(UnknownFault, match=r"did you mean 'dns\.windows\.dead'"):
        find("dns.windows.ded")
