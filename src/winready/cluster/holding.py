"""What many connections to one place came to, counted once; whether that is enough and how it is told follow from it.

Nobody is judged by one unlucky connection: a first loss makes the sample larger, and what counts is the share that was
lost. TCP repeats what the wire loses, so that few connections fail even where every thirtieth packet does; a datagram
and its answer are sent once each, and nobody repeats them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from winready.cluster.commands import Ask, Dialled

Pool = Literal["connections", "datagrams"]
BOUNDS: dict[Pool, float] = {"connections": 0.05, "datagrams": 0.2}
"""Shares that may be lost. Through a NodePort a datagram and its answer cross up to three bad wires each."""
ENOUGH = 60
"""So many make a share out of single losses."""


@dataclass
class Count:
    """How one kind of question fared."""

    asked: int = 0
    failed: int = 0
    error: str = ""
    """How the last failure was told."""
    answering: bool = True
    """Whether any of the last ones was answered."""
    seen: set[str] = field(default_factory=set)
    """Who answered."""

    @property
    def silent(self) -> bool:
        """Whether nothing was answered at all."""
        return 0 < self.asked == self.failed


@dataclass
class Sample:
    """All that was asked of one place, and who answered."""

    names: Collection[str]
    """Who may answer."""
    kinds: dict[Ask, Count] = field(default_factory=dict)
    """By what was asked, one try of each."""
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, asks: Sequence[Ask], dialled: Sequence[Dialled]) -> None:
        """Count what came of some questions."""
        for ask, result in zip(asks, dialled, strict=True):
            count = self.kinds.setdefault(ask.one, Count())
            echoed = ask.body and ask.back
            right = [text for text in result.answers if not echoed or text == ask.text]
            # Without a list of answers only the errors tell how many there were.
            failed = ask.tries - len(right) if result.understood else min(len(result.errors), ask.tries)
            count.asked += ask.tries
            count.failed += failed
            count.answering = failed < ask.tries
            if failed:
                count.error = result.errors[-1] if result.errors else "an answer was not what had been sent"
            if not echoed:
                self.seen.update(right)
                count.seen.update(right)

    def pool(self, which: Pool) -> Count:
        """All connections, or all datagrams."""
        counts = [count for ask, count in self.kinds.items() if pool_of(ask) == which]
        errors = [count.error for count in counts if count.error]
        return Count(sum(c.asked for c in counts), sum(c.failed for c in counts), errors[-1] if errors else "")

    @property
    def strangers(self) -> list[str]:
        """Who answered and should not have."""
        return sorted(set(self.seen) - set(self.names))

    def broken(self, which: Pool) -> bool:
        """Whether more of them were lost than may be."""
        count = self.pool(which)
        return count.failed > BOUNDS[which] * count.asked

    def decided(self, which: Pool) -> bool:
        """Whether more were lost already than may be among enough."""
        return self.pool(which).failed > BOUNDS[which] * ENOUGH

    def undecided(self, which: Pool) -> bool:
        """Whether some were lost, and too few were tried to call that a share."""
        count = self.pool(which)
        return bool(count.failed) and not self.decided(which) and count.asked < ENOUGH

    @property
    def ok(self) -> bool:
        """Whether this is what it should be."""
        return not self.strangers and not any(self.broken(which) for which in BOUNDS)

    @property
    def clean(self) -> bool:
        """Whether nothing at all was lost, and nobody answered who should not."""
        return not self.strangers and not any(count.failed for count in self.kinds.values())

    def suspects(self) -> list[Ask]:
        """The kinds of questions of which some were lost, where that decides nothing yet."""
        return [ask for ask, count in self.kinds.items() if count.failed and self.undecided(pool_of(ask))]

    def lost_kinds(self, main: Ask) -> list[Ask]:
        """Kinds of questions that nobody answers any more, while the main one is answered as it should be."""
        sound = self.kinds[main].failed <= BOUNDS[pool_of(main)] * self.kinds[main].asked
        return [ask for ask, count in self.kinds.items() if not count.answering] if sound else []

    def text(self) -> str:
        """The sample for people; computed from the numbers that it is judged by."""
        parts = []
        for which, bound in BOUNDS.items():
            count = self.pool(which)
            if not count.asked:
                continue
            told = f"{count.asked - count.failed} of {count.asked} {which} answered"
            for size, large in self._large(which):
                told += f" ({large.asked - large.failed} of {large.asked} with {size:,} bytes each way)"
            if count.failed:
                told += f", {count.failed / count.asked:.1%} lost (bound {bound:.0%}): {count.error}"
            parts.append(told)
        return f"{'; '.join(parts)}; by {tally(self.seen)}"

    def _large(self, which: Pool) -> list[tuple[int, Count]]:
        return [(ask.body, count) for ask, count in self.kinds.items() if ask.body and pool_of(ask) == which]


def pool_of(ask: Ask) -> Pool:
    """What a question is counted among."""
    return "datagrams" if ask.protocol == "udp" else "connections"


def tally(seen: Counter[str]) -> str:
    """Who answered how often."""
    return ", ".join(f"{name} {count}" for name, count in sorted(seen.items())) or "nobody"
