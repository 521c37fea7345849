"""What hooks are answered: they start or poll, and never wait for anything longer than a moment."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from winready.deploy.capi import words
from winready.deploy.capi.deciding import decide
from winready.deploy.capi.facts import Asked, Book, Why
from winready.deploy.capi.hooks import CREATED, DELETE, HOLDING, Call, Named
from winready.deploy.capi.running import Runner
from winready.deploy.capi.terms import Terms, asked_again, chosen
from winready.store.errors import StoreError

MOMENT = 0.6
"""Seconds that an answer waits for the place where facts are kept."""
DELETE_POLL = 5.0


class Answer(NamedTuple):
    """What a controller hears; more than no seconds is a hold."""

    message: str = ""
    retry: int = 0


@dataclass
class Gate:
    """One for all clusters."""

    book: Book
    runner: Runner
    terms: Terms
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    held: dict[tuple[Named, str], str] = field(default_factory=dict)
    """What is held now, and since when it was asked for the last time."""

    def __post_init__(self) -> None:
        self._asking: dict[tuple[Named, str], asyncio.Task[None]] = {}
        self._before: dict[tuple[Named, str], float] = {}
        self._deleting: dict[Named, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, call: Call) -> Answer:
        """To one question; the same question may come every second, and from several at once."""
        if call.hook in HOLDING:
            found = await self._hold(call)
            self._note(call, found)
        elif call.hook == CREATED:
            found = await self._created(call)
        elif call.hook == DELETE:
            found = self._delete(call)
        else:
            found = Answer()
        self.answered[call.hook, "hold" if found.retry else "release"] += 1
        return found

    def take_up(self) -> int:
        """Go on with what an earlier server left unfinished; how many runs."""
        found = list(self.book.unfinished())
        for cluster, step, attempt in found:
            self.runner.submit(cluster, step, attempt, again=bool(attempt.taken))
        return len(found)

    async def _hold(self, call: Call) -> Answer:
        key = (call.cluster, call.step)
        asking = self._asking.get(key)
        policy, _ = chosen(call, self.terms)
        message = ""
        if asking is None or policy == "off":
            attempts = self.book.attempts(*key)
            if attempts and attempts[-1].ended is None and key not in self.runner.jobs:
                # Another server may know more about it.
                with contextlib.suppress(StoreError, TimeoutError):
                    await asyncio.wait_for(self.book.refresh(call.cluster), MOMENT)
            now = time.time()
            decision = decide(
                call, self.book.attempts(*key), now, self.terms,
                doing=self.runner.doing(*key), before=self._before.get(key, 0.0),
            )  # fmt: skip
            self._before[key] = now
            if decision.start is None:
                return Answer(decision.message, self._poll() if decision.hold else 0)
            message = decision.message
            # Somebody may have asked the same while we looked.
            asking = self._asking.get(key) or self._start(call, decision.start)
        try:
            async with asyncio.timeout(MOMENT):
                await asyncio.shield(asking)
        except TimeoutError:
            pass
        except StoreError as error:
            return Answer(words.not_kept(call, error.message, policy), 0 if policy == "warn" else self._poll())
        return Answer(message or words.being_kept(call), self._poll())

    async def _created(self, call: Call) -> Answer:
        policy, source = chosen(call, self.terms)
        if policy == "off":
            return Answer(words.switched_off(call, source))
        key = (call.cluster, call.step)
        if not self.book.attempts(*key) or key in self._asking:
            try:
                async with asyncio.timeout(MOMENT):
                    await asyncio.shield(self._asking.get(key) or self._start(call, "hook"))
            except TimeoutError:
                pass
            except StoreError as error:
                return Answer(words.not_kept(call, error.message, "warn"))
        return Answer(words.queued(call))

    def _delete(self, call: Call) -> Answer:
        cluster, now = call.cluster, time.time()
        began = min(self._deleting.setdefault(cluster, now), call.deleted or now)
        left = began + self.terms.delete_limit - now
        doing = self.runner.stop(cluster)
        if doing and left > 0:
            return Answer(
                words.deletion_waits(call, doing[0], now + left), math.ceil(min(DELETE_POLL, left, self._poll()))
            )
        if doing:
            self.runner.kill(cluster)
        self._deleting.pop(cluster, None)
        for known in (self.held, self._before):
            for key in [key for key in known if key[0] == cluster]:
                del known[key]
        if cluster in self.book.clusters():
            self._beside(asyncio.create_task(self._forget(cluster)))
        return Answer()

    def _start(self, call: Call, why: Why) -> asyncio.Task[None]:
        key = (call.cluster, call.step)
        asked = Asked(time.time(), why, asked_again(call))
        task = self._asking[key] = asyncio.create_task(self._ask(call, asked))
        task.add_done_callback(lambda done: (self._asking.pop(key, None), done.cancelled() or done.exception()))
        return task

    async def _ask(self, call: Call, asked: Asked) -> None:
        attempt = await self.book.ask(call.cluster, call.step, asked)
        if attempt is not None:
            self.runner.submit(call.cluster, call.step, attempt)

    async def _forget(self, cluster: Named) -> None:
        try:
            await self.book.forget(cluster)
        except StoreError as error:
            self.runner.say(f"error: facts about cluster {cluster}, which is gone, cannot be removed: {error.message}")

    def _beside(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _note(self, call: Call, found: Answer) -> None:
        """Say in the log what has changed, not what is asked every few seconds."""
        key = (call.cluster, call.step)
        if found.retry and key not in self.held:
            self.held[key] = call.hook
            self.runner.say(f"{call.hook} of cluster {call.cluster} is held: {found.message}")
        elif not found.retry and self.held.pop(key, ""):
            self.runner.say(f"{call.hook} of cluster {call.cluster} goes on: {found.message}")

    def _poll(self) -> int:
        return max(1, math.ceil(self.terms.poll))
