"""What a node itself goes on to reach: asked by scripts on it, counted and judged as what pods reach (`holding`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from winready.cluster.commands import Ask, Dialled
from winready.cluster.holding import BOUNDS, Sample, pool_of
from winready.cluster.timing import Timing, uneven

ROUNDS, TRIES = 3, 4
"""A dozen without a loss is enough, spread over the whole time."""
MORE = 6
"""Tries in one command once some were lost: lost ones take their time, and the command has to end."""


@dataclass
class Holding:
    """Several places, each with its own count."""

    whose: str
    names: Mapping[Ask, Collection[str]]
    """Who may answer at each place."""
    ask: Callable[[Sequence[Ask]], Awaitable[Sequence[Dialled]]]
    timing: Timing
    samples: dict[Ask, Sample] = field(default_factory=dict)

    async def begin(self) -> dict[Ask, str]:
        """The first round: places that do not answer yet, and what is seen there instead."""
        self.samples = {}
        await self._count(list(self.names), TRIES)
        silent = {
            ask: _instead(sample) for ask, sample in self.samples.items() if not set(sample.seen) & set(sample.names)
        }
        if not all(sample.clean for sample in self.samples.values()):
            # Tables may still be changing: what gets lost meanwhile does not count.
            self.samples = {}
        return silent

    async def go_on(self, seconds: float) -> None:
        """Ask on over so many cluster seconds, and where some were lost, until the share says something."""
        if not self.samples:
            await self._count(list(self.names), TRIES)
        for pause in uneven(seconds, ROUNDS - 1, self.whose):
            if not any(sample.decided(pool_of(ask)) for ask, sample in self.samples.items()):
                await self.timing.pause(pause)
                await self._count(list(self.names), TRIES)
        while suspects := [ask for ask, sample in self.samples.items() if sample.suspects()]:
            await self._count(suspects[:1], MORE)

    async def _count(self, places: Sequence[Ask], tries: int) -> None:
        asks = [replace(place, tries=tries) for place in places]
        for place, ask, dialled in zip(places, asks, await self.ask(asks), strict=True):
            self.samples.setdefault(place, Sample(self.names[place])).add([ask], [dialled])

    @property
    def broken(self) -> dict[Ask, Sample]:
        """Places where more got lost than may be, or somebody else answered."""
        return {ask: sample for ask, sample in self.samples.items() if not sample.ok}

    @staticmethod
    def bound(ask: Ask) -> str:
        """What may get lost, for people."""
        which = pool_of(ask)
        return f"at most {BOUNDS[which]:.0%} of {which} lost"


def _instead(sample: Sample) -> str:
    (count,) = sample.kinds.values()
    return f"answered by {', '.join(sample.strangers)}" if sample.strangers else count.error
