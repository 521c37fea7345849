"""What the values of a session weigh.

Values come and go without anybody telling. So what is made is added up, and whenever enough has come together, stock
is taken: everything that variables and half-finished pipelines hold, and what the running statements have made.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from winready_sandbox.programs.holding import MOST, Holding
from winready_sandbox.programs.pacing import Pace
from winready_sandbox.programs.powershell.values import ITEM, Hash, NetArray, PSObject

if TYPE_CHECKING:
    from winready_sandbox.programs.powershell.session import Session

OFTEN = 4 * 2**20
"""Bytes made between two looks at everything."""


def weight(values: Iterable[Any]) -> int:
    """Bytes of values and of all that they hold, each once; counting ends where it is too much anyway."""
    total = 0
    seen: set[int] = set()
    pending = list(values)
    while pending and total <= MOST:
        value = pending.pop()
        if isinstance(value, str | list | Hash | NetArray | PSObject):
            if id(value) in seen:
                continue
            seen.add(id(value))
        total += sys.getsizeof(value) if isinstance(value, str | int) else ITEM
        if isinstance(value, list):
            total += ITEM * len(value)
            pending += value
        elif isinstance(value, Hash):
            for pair in value.items():
                pending += pair
        elif isinstance(value, PSObject):
            pending += value.properties.values()
        elif isinstance(value, NetArray):
            pending += value.items.values()
    return total


class Gathered(list[Any]):
    """The output of a pipeline on its way."""

    def __init__(self, account: Account) -> None:
        super().__init__()
        self._account = account

    def append(self, value: Any) -> None:
        """One value more."""
        super().append(value)
        self._account.grown(ITEM)


class Account:
    """The memory of one session."""

    def __init__(self, session: Session, pace: Pace) -> None:
        self._session = session
        self._pace = pace
        self._holding = Holding(session.process)
        self._gathering: list[Gathered] = []
        self._fresh = 0
        self.unfinished = 0
        """Bytes that the statements which are running now have made."""

    def check(self, size: int) -> None:
        """May a value of that size be made? Raises `OutOfMemory`."""
        self._holding.check(size)

    def made(self, value: Any) -> Any:
        """A value that there was not before."""
        size = sys.getsizeof(value) if isinstance(value, str) else ITEM * len(value) if isinstance(value, list) else 0
        if size > ITEM:
            self._holding.check(size)
            self._pace.work(size)
            self.unfinished += size
            self.grown(size)
        return value

    def grown(self, size: int) -> None:
        """Something has become larger."""
        self._fresh += size
        if self._fresh >= OFTEN:
            self._fresh = 0
            session = self._session
            held = [*session.scopes, session.errors, *self._gathering]
            values = [value for each in held for value in (each.values() if isinstance(each, dict) else [each])]
            self._holding.book(self.unfinished + weight([*values, *session.process.env.values()]))

    def begin(self) -> Gathered:
        """A list that counts from now on."""
        found = Gathered(self)
        self._gathering.append(found)
        return found

    def drop(self, found: Gathered) -> None:
        """Somebody else has what is in it now."""
        self._gathering = [each for each in self._gathering if each is not found]

    @contextlib.contextmanager
    def gathering(self) -> Iterator[Gathered]:
        """A list for output that belongs to nobody until it is complete."""
        found = self.begin()
        try:
            yield found
        finally:
            self.drop(found)
            self.unfinished += weight(found) if len(found) > 1 or (found and isinstance(found[0], str | list)) else 0
