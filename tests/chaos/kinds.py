"""What can be wrong between a run and its API server: kinds of trouble by name, and who meets which when.

Which request meets what follows from a seed, the request and how often it was made before, never from who was faster: a
storm that was seen once can be had again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Verb = Literal["read", "list", "write", "delete", "watch", "exec"]
EVERY: frozenset[Verb] = frozenset({"read", "list", "write", "delete", "watch", "exec"})
CALLS: frozenset[Verb] = frozenset({"read", "list", "write", "delete"})
WATCH: frozenset[Verb] = frozenset({"watch"})
EXEC: frozenset[Verb] = frozenset({"exec"})

KINDS: dict[str, frozenset[Verb]] = {
    # Refused, and nothing was done.
    "too-many-requests": EVERY,
    "internal-error": EVERY,
    "bad-gateway": EVERY,
    "unavailable": EVERY,
    "gateway-timeout": EVERY,
    "unauthorized": EVERY,
    "conflict": frozenset({"write", "delete"}),
    "gone": frozenset({"list", "watch"}),
    # No answer.
    "handshake-fails": EVERY,
    "reset-before": EVERY,
    "reset-after": CALLS,
    "hangs": EVERY,
    "hangs-after": CALLS,
    # An answer, but not that of an API server.
    "cut-body": CALLS,
    "half-a-document": CALLS,
    "html": CALLS,
    "empty": CALLS,
    "not-json": CALLS,
    "other-kind": CALLS,
    "slow-bytes": CALLS,
    # Watches.
    "watch-ends-at-once": WATCH,
    "watch-cut": WATCH,
    "watch-garbage": WATCH,
    "watch-silent": WATCH,
    "events-twice": WATCH,
    "events-out-of-order": WATCH,
    "bookmarks-lost": WATCH,
    # Exec.
    "upgrade-refused": EXEC,
    "stream-cut": EXEC,
    "stream-garbage": EXEC,
    "stream-hangs": EXEC,
}
"""Every kind, and the requests that can meet it."""

LASTING = frozenset({"hangs", "hangs-after", "slow-bytes", "watch-silent", "stream-hangs"})
"""Those that take their time; on the wall clock everybody would wait for it."""


@dataclass
class Weather:
    """Which kinds there are, how often, and what has happened so far."""

    rates: Mapping[str, float]
    seed: str
    met: Counter[str] = field(default_factory=Counter)
    """How often each kind was met."""
    requests: int = 0
    trusted: int = 0
    """So many requests at first are never refused for who asks: credentials that nobody ever took are wrong ones."""
    _made: Counter[str] = field(default_factory=Counter)

    def chance(self, what: str) -> random.Random:
        """What is left to chance about the next request of this description."""
        self._made[what] += 1
        return random.Random(f"{self.seed} {what} {self._made[what]}")

    def strikes(self, verb: Verb, chance: random.Random) -> str:
        """The kind that a request meets; empty for most."""
        self.requests += 1
        hits = [kind for kind, rate in self.rates.items() if verb in KINDS[kind] and chance.random() < rate]
        if self.requests <= self.trusted:
            hits = [kind for kind in hits if kind != "unauthorized"]
        if not hits:
            return ""
        kind = chance.choice(hits)
        self.met[kind] += 1
        return kind


def storm(rate: float, kinds: Iterable[str] = tuple(KINDS)) -> dict[str, float]:
    """All kinds at one rate each."""
    return dict.fromkeys(kinds, rate)


def alone(kind: str) -> float:
    """A rate at which a kind is met often when it comes alone: of watches there are few, of exec streams some."""
    return {WATCH: 0.9, EXEC: 0.3}.get(KINDS[kind], 0.2)
