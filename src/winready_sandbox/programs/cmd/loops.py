"""The values that a `for` goes through."""

from __future__ import annotations

import re


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


def fields(line: str, variable: str, tokens: str, delimiters: str) -> dict[str, str]:
    """One line of `for /f`, taken apart into loop variables."""
    if not delimiters:
        return {variable: line}
    parts = list(re.finditer(f"[^{re.escape(delimiters)}]+", line))
    values: dict[str, str] = {}
    letter = variable
    for token in tokens.split(","):
        if token.endswith("*"):
            head = token[:-1]
            index = int(head) if head else 0
            if head and index <= len(parts):
                values[letter] = parts[index - 1][0]
                letter = chr(ord(letter) + 1)
            values[letter] = line[parts[index].start() :] if index < len(parts) else ""
            continue
        first, _, last = token.partition("-")
        for index in range(int(first), int(last or first) + 1):
            values[letter] = parts[index - 1][0] if index <= len(parts) else ""
            letter = chr(ord(letter) + 1)
    return values
