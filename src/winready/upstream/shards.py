"""Which specs share a process: as few as end with the longest spec, and nobody beside one that wants to be alone.

A process costs two seconds of CPU, a quarter of a gigabyte and the suite's own set-up before its first spec, whatever
it runs; those of a stage are started at once, and delay each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SETUP_S = 300.0
LEAST_PATIENCE_S = 900.0
PATIENCE = 3.0
ROOM = 0.8
"""Of the time of the longest spec: what processes with several specs are expected to take at most, to end with it."""
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
    """All end together, by as few processes as that takes: none with several specs comes near the longest one."""
    most = max(1, min(parallel, len(specs)))
    enough = ROOM * max(spec.expected_s for spec in specs)
    tried = (_spread(specs, count) for count in range(1, most + 1))
    fitting = (piles for piles in tried if all(len(pile) == 1 or _seconds(pile) <= enough for pile in piles))
    piles = next(fitting, None) or _spread(specs, most)
    return [Shard(f"parallel-{number}", tuple(pile)) for number, pile in enumerate(piles, 1)]


def _spread(specs: Sequence[Selected], count: int) -> list[list[Selected]]:
    """The longest spec first, always to the pile that has the least to do."""
    piles: list[list[Selected]] = [[] for _ in range(count)]
    for spec in sorted(specs, key=lambda item: -item.expected_s):
        min(piles, key=_seconds).append(spec)
    return piles


def _seconds(pile: Iterable[Selected]) -> float:
    return sum(spec.expected_s for spec in pile)
