"""What is expected of the checks when a cluster has a certain fault."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from winready.spec.loader import load_standard


@dataclass(frozen=True)
class Expectation:
    """Who notices a fault, as follows from the facts and from what a requirement states; everybody else must pass.

    Requirements stand here by their key in the standard (``N1``), rules by their id without ``rule.`` (``images``),
    with spaces between.
    """

    noticed_by: str = ""
    """Those that must fail."""
    blocks: str = ""
    """Those that the fault makes impossible to judge."""
    survived_by: str = ""
    """Those that must pass although they are long observations, which trials of other faults leave out."""
    features: str = ""
    """Features of the matrix that must not be shown as documented, by their ids; they take part in no other trial but
    those of the same kind, and sound ones."""
    conformance: tuple[str, ...] = ()
    """Kubernetes' own conformance tests that such a cluster fails: winready imports their result, it runs none."""

    @property
    def requirements(self) -> list[str]:
        """The ids of those that must notice."""
        return ids(self.noticed_by)

    @property
    def unshown(self) -> list[str]:
        """The ids of the features that must not be shown."""
        return self.features.split()

    @property
    def at_stake(self) -> list[str]:
        """The ids of those that a trial is about."""
        return ids(f"{self.noticed_by} {self.survived_by}")

    @property
    def blocked(self) -> list[str]:
        """The ids of those that cannot judge."""
        return ids(self.blocks)


HARMLESS = Expectation()
"""Slow, or trouble on the way: whatever is verified must survive it."""


def ids(names: str) -> list[str]:
    """The ids that those short names have in the standard."""
    known = _ids_by_name()
    if unknown := [name for name in names.split() if name not in known]:
        raise ValueError(f"the standard has no requirement with the key and no rule of the name {unknown[0]!r}")
    return [known[name] for name in names.split()]


@functools.cache
def _ids_by_name() -> dict[str, str]:
    standard = load_standard()
    rules = {rule.id.removeprefix("rule."): rule.id for rule in standard.rules}
    return {item.key: item.id for item in standard.requirements} | rules
