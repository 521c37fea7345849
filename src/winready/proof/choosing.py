"""Which trials are held, and which requirements take part in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from winready.checks.registry import load_checks
from winready.engine.selection import Selection, select
from winready.proof.expected.model import Expectation
from winready.proof.expected.table import HEALTHY, expected
from winready.spec.loader import load_standard
from winready_sandbox.faults.table import FAULTS, find

LONG = 300.0
"""Cluster seconds from which an observation is long."""


class Trial(NamedTuple):
    """A run that is to prove something."""

    fault: str
    selection: Selection


def choose(categories: Sequence[str], names: Sequence[str], thorough: bool) -> list[Trial]:
    """A trial with each fault of these names; without names, one on a healthy cluster and one with every fault."""
    standard = load_standard()
    selected = {item.id for item in select(standard, Selection(categories=list(categories)))}
    verified = selected & set(load_checks())
    if names or not categories:
        verified |= {rule.id for rule in standard.rules}
    faults = [find(name).name for name in names]
    for fault in faults:
        if not _concerns(expected(fault), verified):
            raise ValueError(f"no check of the selected categories verifies what {fault} concerns")
    if not names:
        faults = [HEALTHY, *(fault for fault in FAULTS if _concerns(expected(fault), verified))]
    return [Trial(fault, selection(fault, categories, thorough)) for fault in faults]


def selection(fault: str, categories: Sequence[str], thorough: bool) -> Selection:
    """What runs with a fault: what takes minutes only where it is at stake."""
    if fault == HEALTHY or thorough:
        return Selection(categories=list(categories))
    long = [name for name, check in load_checks().items() if check.expected_s + check.expected_s_per_node >= LONG]
    at_stake = expected(fault).requirements
    return Selection(categories=list(categories), skip=[name for name in long if name not in at_stake])


def _concerns(expectation: Expectation, verified: set[str]) -> bool:
    """Whether anything that is verified has to notice the fault, or to survive it."""
    return not expectation.noticed_by or not verified.isdisjoint(expectation.requirements)
