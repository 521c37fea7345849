"""Which trials are held, and which requirements take part in each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from winready.checks.registry import load_checks
from winready.engine.selection import Selection, select
from winready.features import catalogue
from winready.features.choosing import selected
from winready.proof.expected.model import HARMLESS, Expectation
from winready.proof.expected.table import HEALTHY, expected
from winready.proof.furnishing import on_request
from winready.proof.healthy.model import Variant
from winready.proof.healthy.table import VARIANTS, variant
from winready.spec.loader import load_standard
from winready_sandbox.faults.table import FAULTS, find

LONG = 300.0
"""Cluster seconds from which an observation is long."""


class Trial(NamedTuple):
    """A run that is to prove something."""

    name: str
    """Of the fault, or of the sound cluster."""
    selection: Selection
    sound: bool = False
    seed: int = 0
    """Of chance: who starts when, what gets lost, who gets which address."""

    @property
    def seconds(self) -> float:
        """Cluster seconds of all that runs in it, one after the other: a measure of the work."""
        checks = load_checks()
        return sum(checks[item.id].expected_s for item in select(load_standard(), self.selection) if item.id in checks)


def choose(categories: Sequence[str], names: Sequence[str], thorough: bool) -> list[Trial]:
    """A trial with each fault of these names; without names, one with every fault."""
    standard = load_standard()
    selected = {item.id for item in select(standard, _everything(categories))}
    verified = selected & set(load_checks())
    if names or not categories:
        verified |= {rule.id for rule in standard.rules}
    faults = [find(name).name for name in names]
    for fault in faults:
        if categories and only_features(expected(fault)):
            raise ValueError(f"{fault} concerns features of the matrix, and no category")
        if not _concerns(expected(fault), verified):
            raise ValueError(f"no check of the selected categories verifies what {fault} concerns")
    if not names:
        faults = [
            fault
            for fault in FAULTS
            if _concerns(expected(fault), verified) and not (categories and only_features(expected(fault)))
        ]
    return [
        Trial(fault, _with_features(_with_fault(fault, verified, categories, thorough), fault, categories, thorough))
        for fault in faults
    ]


def choose_sound(categories: Sequence[str], names: Sequence[str], thorough: bool) -> list[Trial]:
    """A trial on each sound cluster of these names; without names, on every one."""
    chosen = [variant(name) for name in names] or [
        each
        for each in VARIANTS.values()
        # A cluster that refuses something proves nothing in a category that it refuses nothing of.
        if not each.blocked or not categories
    ]
    return [Trial(each.name, _on_sound(each, categories, thorough), sound=True) for each in chosen]


def _with_fault(fault: str, verified: set[str], categories: Sequence[str], thorough: bool) -> Selection:
    """What runs with a fault: the core, and those extensions that it concerns."""
    if thorough:
        return _everything(categories)
    expectation = expected(fault)
    if only_features(expectation):
        # To all requirements such a cluster is the one of `(healthy)`.
        return Selection(features=cheap_features())
    at_stake = [name for name in expectation.at_stake if name in verified]
    if find(fault).after_reboot:
        # Nodes are rebooted last: whatever runs before sees the cluster of `(healthy)`.
        return Selection(requirements=at_stake)
    skipped = _long_beside(at_stake)
    if categories:
        return Selection(categories=list(categories), skip=skipped)
    standard = load_standard()
    extensions = {item.id: item.category for item in standard.requirements if standard.level(item) != "core"}
    blocked = [name for name in expectation.blocked if name in verified & load_checks().keys()]
    concerned = at_stake or blocked
    if concerned and extensions.keys() >= set(concerned):
        # Such a fault breaks what no core requirement uses, or what those do that it makes impossible to judge. Its
        # cluster is the one of `(healthy)` to all others, and dozens of trials would show the same once more.
        near = sorted({extensions[name] for name in concerned})
        return Selection(categories=near, requirements=blocked, skip=skipped)
    if expectation == HARMLESS:
        return _everything(skip=skipped)
    core = [category.name for category in standard.document.categories if category.level == "core"]
    return Selection(categories=core, requirements=[name for name in at_stake if name in extensions], skip=skipped)


def _on_sound(this: Variant, categories: Sequence[str], thorough: bool) -> Selection:
    """What runs on a sound cluster: the core; where it says so, everything."""
    skipped = [] if thorough else _long_beside(this.at_stake)
    if categories:
        return Selection(categories=list(categories), skip=skipped)
    if this.features and not thorough:
        core = [category.name for category in load_standard().document.categories if category.level == "core"]
        return selected(Selection(categories=core, skip=skipped), this.features.split())
    # What is blocked by a refusal is listed for the core alone.
    if this.blocked or not (this.whole or thorough):
        return Selection(skip=skipped)
    if not this.plan and not thorough:
        # The sandbox as it comes up is like most clusters, which have one IP family, for instance.
        skipped += on_request(load_standard())
    everything = _everything(skip=skipped)
    return _all_features(everything) if this.name == HEALTHY else everything


def _all_features(selection: Selection) -> Selection:
    return msgspec.structs.replace(selection, features=shown_by(selection))


def _with_features(selection: Selection, fault: str, categories: Sequence[str], thorough: bool) -> Selection:
    """The same, with the features that must notice the fault and with what shows them."""
    if categories:
        return selection
    if thorough:
        return _all_features(selection)
    names = expected(fault).unshown
    return selected(selection, names) if names else selection


def only_features(expectation: Expectation) -> bool:
    """Whether no requirement and no rule has to do with a fault."""
    return bool(expectation.features) and not expectation.at_stake and not expectation.blocked


def cheap_features() -> list[str]:
    """Those that a check of their own shows, and nothing else."""
    return [name for name, entry in catalogue.load().items() if entry.check and not entry.requirements]


def shown_by(selection: Selection) -> list[str]:
    """Every feature that a run of this selection can show."""
    chosen = {item.id for item in select(load_standard(), selection)}
    rows = catalogue.load().items()
    return [
        name for name, entry in rows if entry.way in ("check", "requirement") and chosen.issuperset(entry.requirements)
    ]


def _everything(categories: Sequence[str] = (), skip: Sequence[str] = ()) -> Selection:
    """All of these categories, or all that has a check."""
    if categories:
        return Selection(categories=list(categories), skip=list(skip))
    unchecked = [item.id for item in load_standard().requirements if item.id not in load_checks()]
    return Selection(profile="full", skip=[*skip, *unchecked])


def _long_beside(at_stake: Collection[str]) -> list[str]:
    """What takes minutes and is not at stake."""
    long = [name for name, check in load_checks().items() if check.expected_s + check.expected_s_per_node >= LONG]
    return [name for name in long if name not in at_stake]


def _concerns(expectation: Expectation, verified: set[str]) -> bool:
    """Whether anything that is verified has to notice the fault, or to survive it."""
    return not expectation.noticed_by or not verified.isdisjoint(expectation.requirements)
