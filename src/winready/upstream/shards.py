"""Which specs share a process: as few processes as the cluster allows, and nobody beside a spec that wants to be alone.

A process costs seconds of CPU and the suite's own set-up before its first spec, whatever it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SETUP_S = 300.0
LEAST_PATIENCE_S = 900.0
PATIENCE = 3.0
PER_NODE, MOST = 4, 8
"""A Windows node starts about four pods at a time; every process costs this machine seconds of CPU."""


@dataclass(frozen=True)
class Selected:
    """A spec to run."""

    name: str
    text: str
    expected_s: float = 40.0
    alone: bool = False

    @property
    def serial(self) -> bool:
        """Whether nothing may run beside it."""
        return self.alone or "[Serial]" in self.text or self.disruptive

    @property
    def disruptive(self) -> bool:
        """Whether it harms nodes; it then has a process of its own, last."""
        return "[Disruptive]" in self.text


@dataclass(frozen=True)
class Shard:
    """The specs of one process."""

    name: str
    specs: tuple[Selected, ...]

    @property
    def deadline(self) -> float:
        """Wall seconds: upstream's own timeouts are generous, and a run must end all the same."""
        return SETUP_S + sum(max(LEAST_PATIENCE_S, PATIENCE * spec.expected_s) for spec in self.specs)

    @property
    def expected(self) -> float:
        """Wall seconds on a healthy cluster."""
        return sum(spec.expected_s for spec in self.specs)


def at_once(windows_nodes: int) -> int:
    """How many processes a cluster of that size bears at the same time."""
    return min(MOST, PER_NODE * max(windows_nodes, 1))


def split(selected: Iterable[Selected], parallel: int) -> list[list[Shard]]:
    """Stages, one after the other; the shards of a stage run side by side."""
    specs = list(selected)
    side_by_side = [spec for spec in specs if not spec.serial]
    serial = [spec for spec in specs if spec.serial and not spec.disruptive]
    stages = [_balanced(side_by_side, parallel)] if side_by_side else []
    if serial:
        stages.append([Shard("serial", tuple(serial))])
    disruptive = [spec for spec in specs if spec.disruptive]
    stages += [[Shard(f"disruptive-{number}", (spec,))] for number, spec in enumerate(disruptive, 1)]
    return stages


def _balanced(specs: Sequence[Selected], parallel: int) -> list[Shard]:
    """The longest spec first, always to the shard that has the least to do."""
    piles: list[list[Selected]] = [[] for _ in range(max(1, min(parallel, len(specs))))]
    for spec in sorted(specs, key=lambda item: -item.expected_s):
        min(piles, key=lambda pile: sum(item.expected_s for item in pile)).append(spec)
    return [Shard(f"parallel-{number}", tuple(pile)) for number, pile in enumerate(piles, 1)]
