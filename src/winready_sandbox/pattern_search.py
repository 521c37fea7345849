"""Regular expressions whose search can be interrupted after any step.

Python's own engine holds everything up until it has an answer, and for some patterns it never has. This one goes step
by step, so that whoever searches decides how long, and lets everybody else go on meanwhile. Where the pattern does not
look back at what it found, no state is tried twice: the steps are at most those of the pattern times the text.
"""

from __future__ import annotations

import functools
from collections.abc import Generator
from dataclasses import dataclass

from winready_sandbox.pattern_syntax import Instruction, Pattern, PatternError, compiled

TURN = 2000
"""Steps between interruptions."""
MOST_STATES = 2**27
"""States of which it is known whether they were tried, a bit each."""
MOST_PENDING = 1_000_000
"""Ways that were not gone yet, and what is to be taken back before them."""
_GO, _TAKE_BACK, _NOTHING = 0, 1, -1
Search = Generator[int, None, "Found | None"]
"""Yields after every turn how many steps it took."""

__all__ = ["Found", "PatternError", "TooMuch", "find", "search"]


class TooMuch(Exception):
    """The search needs more memory than anybody has, or more steps than it was given."""


@dataclass(frozen=True)
class Found:
    """The first match: all of it and its groups without a name, and those that have one."""

    groups: list[str | None]
    names: dict[str, str | None]


@functools.lru_cache(128)
def _pattern(text: str, ignore_case: bool) -> Pattern:
    return compiled(text, ignore_case=ignore_case)


def search(form: str, text: str, *, ignore_case: bool = False) -> Search:
    """Search for a pattern, turn by turn; raises `PatternError` and `TooMuch`."""
    pattern = _pattern(form, ignore_case)
    run = _Run(pattern, text)
    for start in range(len(text) + 1):
        saved = yield from run.match(pattern.program, start)
        if saved is not None:
            ends = [(saved.get(2 * number, -1), saved.get(2 * number + 1, -1)) for number in range(pattern.groups)]
            groups = [text[low:high] if min(low, high) >= 0 else None for low, high in ends]
            named = set(pattern.names.values())
            plain = [group for number, group in enumerate(groups) if number not in named]
            return Found(plain, {name: groups[number] for name, number in pattern.names.items()})
    return None


def find(form: str, text: str, *, steps: int) -> Found | None:
    """Search at once, for at most so many steps."""
    going = search(form, text)
    while True:
        try:
            steps -= next(going)
        except StopIteration as ended:
            found: Found | None = ended.value
            return found
        if steps <= 0:
            raise TooMuch


class _Run:
    def __init__(self, pattern: Pattern, text: str) -> None:
        self.text = text
        self.remembers = pattern.remembers
        self.tried: dict[int, bytearray] = {}
        self.steps = 0

    def _seen(self, program: list[Instruction]) -> bytearray | None:
        """The states of a program that were tried, whoever runs it: they do not end otherwise the next time."""
        if self.remembers:
            return None
        found = self.tried.get(id(program))
        if found is None:
            states = len(program) * (len(self.text) + 1)
            if states > MOST_STATES:
                raise TooMuch
            found = self.tried[id(program)] = bytearray(states // 8 + 1)
        return found

    def match(
        self, program: list[Instruction], start: int, *, end: int | None = None, fresh: bool = False
    ) -> Generator[int, None, dict[int, int] | None]:
        """Where a program leads from a place: what it saved, with the end under -1; None if nowhere."""
        text, seen = self.text, None if fresh else self._seen(program)
        width = len(text) + 1
        # What was saved is kept once, and changes are taken back on the way to what is pending: a copy for each would
        # cost as much as there are groups.
        saved: dict[int, int] = {}
        pending: list[tuple[int, int, int]] = [(0, start, _GO)]
        while pending:
            at, place, what = pending.pop()
            if what == _TAKE_BACK:
                self.steps += 1
                if self.steps >= TURN:
                    yield self.steps
                    self.steps = 0
                if place == _NOTHING:
                    del saved[at]
                else:
                    saved[at] = place
                continue
            while True:
                self.steps += 1
                if self.steps >= TURN:
                    yield self.steps
                    self.steps = 0
                if seen is not None:
                    state = at * width + place
                    if seen[state >> 3] >> (state & 7) & 1:
                        break
                    seen[state >> 3] |= 1 << (state & 7)
                step = program[at]
                kind = step.kind
                if kind == "char":
                    if place >= len(text) or not (step.test and step.test(text[place])):
                        break
                    at, place = at + 1, place + 1
                elif kind == "split":
                    if len(pending) > MOST_PENDING:
                        raise TooMuch
                    pending.append((step.second, place, _GO))
                    at = step.first
                elif kind == "jump":
                    at = step.first
                elif kind in ("save", "mark"):
                    key = step.first if kind == "save" else -1 - step.first
                    pending.append((key, saved.get(key, _NOTHING), _TAKE_BACK))
                    saved[key] = place
                    at += 1
                elif kind == "end":
                    if end is not None and place != end:
                        break
                    return {**saved, -1: place}
                elif kind == "progress":
                    # A round in which nothing was found is the last one.
                    at += 2 if saved.get(-1 - step.first) == place else 1
                elif kind == "at":
                    if not self._stands(step.name, place):
                        break
                    at += 1
                elif kind == "same":
                    low, high = saved.get(2 * step.first, -1), saved.get(2 * step.first + 1, -1)
                    wanted, here = text[low:high], text[place : place + high - low]
                    alike = wanted == here or (step.second and wanted.lower() == here.lower())
                    if low < 0 or high < low or not alike:
                        break
                    self.steps += len(wanted) // 16
                    at, place = at + 1, place + len(wanted)
                elif kind == "atomic":
                    inside = yield from self.match(step.inner, place, fresh=True)
                    if inside is None:
                        break
                    at, place = at + 1, inside.pop(-1)
                    self._take_over(inside, saved, pending)
                else:
                    looked = yield from self._look(step, place)
                    if looked is None:
                        break
                    at += 1
                    self._take_over(looked, saved, pending)
        return None

    def _take_over(self, found: dict[int, int], saved: dict[int, int], pending: list[tuple[int, int, int]]) -> None:
        """Save what was found aside."""
        self.steps += len(found)
        pending += [(key, saved.get(key, _NOTHING), _TAKE_BACK) for key in found]
        saved.update(found)

    def _look(self, step: Instruction, place: int) -> Generator[int, None, dict[int, int] | None]:
        """Look around without going anywhere."""
        found: dict[int, int] | None = None
        for begin in [place] if step.first else range(place, -1, -1):
            found = yield from self.match(step.inner, begin, end=None if step.first else place, fresh=True)
            if found is not None:
                break
        if (found is not None) != bool(step.second):
            return None
        return {key: value for key, value in (found or {}).items() if key != -1}

    def _stands(self, name: str, place: int) -> bool:
        text, size = self.text, len(self.text)
        if name in ("begin", "line"):
            return place == 0 or (name == "line" and text[place - 1] == "\n")
        if name == "end":
            return place == size
        if name in ("last", "line-end"):
            return place == size or (text[place] == "\n" and (name == "line-end" or place == size - 1))
        sides = [0 <= each < size and (text[each].isalnum() or text[each] == "_") for each in (place - 1, place)]
        return (sides[0] != sides[1]) == (name == "boundary")
