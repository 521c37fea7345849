"""The table of faults is complete, and what it says fits the standard and the parts it breaks."""

from __future__ import annotations

import pytest

from winready.sandbox.faults import ids
from winready.sandbox.faults.table import FAULTS, UnknownFault, find
from winready.spec.loader import load_standard

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


def test_every_network_requirement_is_failed_by_at_least_two_faults() -> None:
    for item in STANDARD.requirements:
        if item.category == "Core.Network":
            assert sum(item.id in fault.requirements for fault in FAULTS.values()) >= 2, item.id


def test_an_unknown_fault_is_met_with_the_nearest_name() -> None:
    with pytest.raises(UnknownFault, match=r"did you mean 'dns\.windows\.dead'"):
        find("dns.windows.ded")
