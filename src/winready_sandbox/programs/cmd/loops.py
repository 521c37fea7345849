"""The values that a `for` goes through."""

from __future__ import annotations


class Counting:
    """The numbers of `for /l`, which may go on for ever."""

    def __init__(self, variable: str, start: int = 0, step: int = 1, end: int = 0) -> None:
        self._variable, self._start, self._step, self._end = variable, start, step, end

    def __iter__(self) -> Counting:
        return self

    def __next__(self) -> dict[str, str]:
        over = self._start > self._end if self._step >= 0 else self._start < self._end
        if over:
            raise StopIteration
        value = {self._variable: str(self._start)}
        self._start += self._step
        return value
