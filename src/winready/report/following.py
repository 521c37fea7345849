"""Following a run: every event goes to each handler in turn, to the journal first.

A handler that cannot go on (a full disk, a closed pipe) ends the run, with cleanup: what nobody hears or keeps is not
worth disturbing a cluster for. Without its journal no run has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Protocol

import msgspec

from winready.engine import events
from winready.engine.checking import own_failure
from winready.engine.run import Run
from winready.engine.verdict import refused


class Handler(Protocol):
    """Follows a run: a file that is written, a terminal that shows it."""

    @property
    def name(self) -> str:
        """What people know it by."""

    def start(self) -> None:
        """Make ready; raises ``OSError`` when that cannot be."""

    def handle(self, event: events.AnyEvent) -> None:
        """Take in one event."""

    def close(self) -> None:
        """No more events will come, whether or not there was a verdict."""


class CannotStart(Exception):
    """A handler cannot begin its work, so that nothing was begun; the message names it and says why."""


async def follow(run: Run, journal: Handler, others: Sequence[Handler]) -> dict[str, str]:
    """Do a run; by name, what went wrong with the handlers. Raises `CannotStart`."""
    handlers = [journal, *others]
    started: list[Handler] = []
    troubles: dict[str, str] = {}
    try:
        for handler in handlers:
            try:
                handler.start()
            except OSError as error:
                raise CannotStart(_words(handler, error)) from None
            started.append(handler)
        async with aclosing(run.stream()) as story:
            async for event in story:
                for handler in handlers:
                    if handler.name in troubles:
                        continue
                    try:
                        handler.handle(_vouched_for(event, troubles.get(journal.name)))
                    except Exception as error:
                        troubles[handler.name] = _words(handler, error)
                        run.stop(troubles[handler.name], interrupted=False, trouble=True)
    finally:
        # The journal last: as long as it is open, nobody takes the run for one that was cut off.
        for handler in reversed(started):
            try:
                handler.close()
            except Exception as error:
                troubles.setdefault(handler.name, _words(handler, error))
    return troubles


def _vouched_for(event: events.AnyEvent, trouble: str | None) -> events.AnyEvent:
    """What may be told when the journal has this trouble: everything but a Pass."""
    if trouble is None or not isinstance(event, events.RunFinished):
        return event
    return msgspec.structs.replace(event, verdict=refused(event.verdict, trouble))


def _words(handler: Handler, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{handler.name} cannot be written: {error.strerror or error}"
    return f"{handler.name} cannot be written: {own_failure(error)}"
