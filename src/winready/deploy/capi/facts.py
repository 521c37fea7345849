"""What is known of a gate, as facts that are written once: a run was asked for, somebody took it, it ended.

Nothing is ever written anew, so that no crash leaves half of a state, and of two who want to write the same fact one
learns that it is there already. In memory stands what was read or written; whoever does not find a fact reads again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from winready.deploy.capi.hooks import Named
from winready.store.errors import AlreadyThere, NoSuchPlace, StoreError
from winready.store.objects import Objects

BASE = "capi"
MOST_BYTES = 64 * 1024
MOST_CLUSTERS = 10_000
MOST_ATTEMPTS = 9_999
Why = Literal["hook", "schedule", "annotation", "lost", "stale"]


class Asked(msgspec.Struct, frozen=True):
    """A run is wanted."""

    at: float
    why: Why = "hook"
    run_again: str = ""
    """The annotation at that time; another value asks for another run."""


class Taken(msgspec.Struct, frozen=True):
    """A server has begun with it."""

    at: float
    by: str = ""


class Ended(msgspec.Struct, frozen=True):
    """What came of it."""

    at: float
    verdict: Literal["Pass", "Fail"] | None = None
    """None where there is none: it could not begin, was lost, or was stopped."""
    run_id: str = ""
    words: str = ""
    first: str = ""
    """What failed first."""
    lost: bool = False
    """Nothing is known against the cluster; it is tried again at once."""


@dataclass
class Attempt:
    """One run that was asked for, as far as it came."""

    number: int
    asked: Asked
    taken: list[Taken] = field(default_factory=list)
    ended: Ended | None = None


Steps = dict[str, list[Attempt]]
Fact = Asked | Taken | Ended
KINDS: dict[str, type[Asked] | type[Taken] | type[Ended]] = {"asked": Asked, "taken": Taken, "ended": Ended}


class TooMany(StoreError):
    """More than anybody has."""


class Book:
    """The facts of all clusters, in memory and in a place."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._clusters: dict[Named, Steps] = {}
        self.passed_over: list[str] = []
        """Keys of objects that are no facts."""

    def load(self) -> None:
        """Read everything; raises `StoreError`."""
        self._read(BASE)

    def clusters(self) -> Iterator[Named]:
        """All that something is known of."""
        yield from self._clusters

    def attempts(self, cluster: Named, step: str) -> list[Attempt]:
        """The runs for a step, in their order."""
        return self._clusters.get(cluster, {}).get(step, [])

    def unfinished(self) -> Iterator[tuple[Named, str, Attempt]]:
        """Runs that nobody has told the end of."""
        for cluster, steps in self._clusters.items():
            for step, attempts in steps.items():
                if attempts and attempts[-1].ended is None:
                    yield cluster, step, attempts[-1]

    async def ask(self, cluster: Named, step: str, asked: Asked) -> Attempt | None:
        """One more run, or None if somebody else has just asked for it; raises `StoreError`."""
        if cluster not in self._clusters and len(self._clusters) >= MOST_CLUSTERS:
            raise TooMany(f"{MOST_CLUSTERS} clusters are known already", "remove the facts of those that are gone")
        number = len(self.attempts(cluster, step)) + 1
        if number > MOST_ATTEMPTS:
            raise TooMany(f"{MOST_ATTEMPTS} runs were asked for already", "find out why none of them passes")
        try:
            await self._create(cluster, step, f"{number:04}-asked", asked)
        except AlreadyThere:
            await self.refresh(cluster)
            return None
        attempt = Attempt(number, asked)
        self._clusters.setdefault(cluster, {}).setdefault(step, []).append(attempt)
        return attempt

    async def take(self, cluster: Named, step: str, attempt: Attempt, taken: Taken) -> bool:
        """Begin with it; False if somebody else has. Raises `StoreError`."""
        try:
            await self._create(cluster, step, f"{attempt.number:04}-taken-{len(attempt.taken) + 1:02}", taken)
        except AlreadyThere:
            return False
        attempt.taken.append(taken)
        return True

    async def end(self, cluster: Named, step: str, attempt: Attempt, ended: Ended) -> None:
        """Tell what came of it. In memory it stands at once, also if it cannot be written; raises `StoreError`."""
        attempt.ended = attempt.ended or ended
        try:
            await self._create(cluster, step, f"{attempt.number:04}-ended", ended)
        except AlreadyThere:
            await self.refresh(cluster)

    async def refresh(self, cluster: Named) -> None:
        """Read what others have written about a cluster; raises `StoreError`."""
        await asyncio.to_thread(self._read, f"{BASE}/{cluster.key}")

    async def forget(self, cluster: Named) -> None:
        """Remove all facts about a cluster that goes away; raises `StoreError`."""
        self._clusters.pop(cluster, None)

        def remove() -> None:
            for entry in list(self._objects.list(f"{BASE}/{cluster.key}")):
                self._objects.delete(entry.key)

        await asyncio.to_thread(remove)

    async def _create(self, cluster: Named, step: str, name: str, fact: Fact) -> None:
        key = f"{BASE}/{cluster.key}/{step}/{name}.json"
        await asyncio.to_thread(self._objects.create, key, msgspec.json.encode(fact))

    def _read(self, prefix: str) -> None:
        try:
            keys = sorted(entry.key for entry in self._objects.list(prefix))
        except NoSuchPlace:
            # A folder comes with its first fact; a bucket or a share that is not there is a mistake.
            if self._objects.place.remote:
                raise
            return
        for key in keys:
            if not self._note(key):
                self.passed_over.append(key)

    def _note(self, key: str) -> bool:
        """Take one object into memory; False if it is no fact."""
        match key.removesuffix(".json").split("/"):
            case [_, namespace, name, uid, step, fact]:
                number, _, kind = fact.partition("-")
                kind = kind.partition("-")[0]
            case _:
                return False
        if kind not in KINDS or not number.isdecimal():
            return False
        try:
            found: Fact = msgspec.json.decode(self._objects.read(key, MOST_BYTES).data, type=KINDS[kind])
        except (StoreError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        attempts = self._clusters.setdefault(Named(namespace, name, uid), {}).setdefault(step, [])
        return _added(attempts, int(number), found)


def _added(attempts: list[Attempt], number: int, fact: Fact) -> bool:
    known = attempts[number - 1] if 0 < number <= len(attempts) else None
    if isinstance(fact, Asked):
        if known is None and number == len(attempts) + 1:
            attempts.append(Attempt(number, fact))
            return True
        return known is not None
    if known is None:
        return False
    if isinstance(fact, Ended):
        known.ended = fact
    elif fact not in known.taken:
        known.taken.append(fact)
    return True
