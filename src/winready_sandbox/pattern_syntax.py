"""How regular expressions are written, as .NET reads them: what `pattern_search` runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

MOST_INSTRUCTIONS = 20_000
Test = Callable[[str], bool]
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "e": "\x1b", "a": "\a", "0": "\0"}
_CLASSES: dict[str, Test] = {
    "d": str.isdecimal,
    "w": lambda char: char.isalnum() or char == "_",
    "s": str.isspace,
}
_COUNT = re.compile(r"\{(\d{1,9})(,(\d{0,9}))?\}", re.ASCII)
_GROUP_NAME = re.compile(r"\(\?P?(?:<([A-Za-z_]\w*)>|'([A-Za-z_]\w*)')", re.ASCII)
_FLAGS = re.compile(r"\(\?([imsnx]*)(?:-([imsnx]+))?([:)])")


class PatternError(Exception):
    """The pattern is wrong, or larger than anybody can run; the text says why."""


@dataclass
class Instruction:
    """One step: which kind, and what it needs."""

    kind: str
    """`char`, `split`, `jump`, `save`, `at`, `same`, `look`, `atomic`, `mark`, `progress` or `end`."""
    test: Test | None = None
    first: int = 0
    second: int = 0
    name: str = ""
    inner: list[Instruction] = field(default_factory=list)


@dataclass
class Pattern:
    """A pattern that can be run."""

    program: list[Instruction]
    groups: int
    names: dict[str, int]
    remembers: bool
    """It compares with what it found before, so that where it stands does not say what it can still find."""


@dataclass
class _Flags:
    ignore_case: bool
    lines: bool = False
    dot_all: bool = False
    spaced: bool = False


def compiled(text: str, *, ignore_case: bool) -> Pattern:
    """A pattern from its text; raises `PatternError`."""
    reader = _Reader(text, _Flags(ignore_case))
    try:
        body = reader.alternatives()
    except RecursionError:
        raise PatternError("nested too deeply") from None
    if reader.at < len(text):
        raise PatternError("Too many )'s.")
    program = _joined([Instruction("save", first=0)], body, [Instruction("save", first=1), Instruction("end")])
    return Pattern(program, reader.groups + 1, reader.names, reader.remembers)


def _moved(program: list[Instruction], by: int) -> list[Instruction]:
    """Places in a program are told from its beginning; this one begins later."""
    return [
        Instruction(each.kind, each.test, each.first + by, each.second + by, each.name, each.inner)
        if each.kind in ("split", "jump")
        else each
        for each in program
    ]


def _joined(*programs: list[Instruction]) -> list[Instruction]:
    whole: list[Instruction] = []
    for program in programs:
        if len(whole) + len(program) > MOST_INSTRUCTIONS:
            raise PatternError("too large")
        whole += _moved(program, len(whole))
    return whole


def _split(first: int, second: int, greedy: bool) -> Instruction:
    one, other = (first, second) if greedy else (second, first)
    return Instruction("split", first=one, second=other)


class _Reader:
    def __init__(self, text: str, flags: _Flags) -> None:
        self.text = text
        self.at = 0
        self.flags = flags
        self.groups = 0
        self.names: dict[str, int] = {}
        self.marks = 0
        self.remembers = False

    def alternatives(self) -> list[Instruction]:
        branches = [self._sequence()]
        size = len(branches[0])
        while self.text.startswith("|", self.at):
            self.at += 1
            branches.append(self._sequence())
            size += len(branches[-1]) + 2
            if size > MOST_INSTRUCTIONS:
                raise PatternError("too large")
        whole: list[Instruction] = []
        for branch in branches[:-1]:
            start = len(whole) + 1
            whole += [_split(start, start + len(branch) + 1, True), *_moved(branch, start)]
            whole.append(Instruction("jump", first=size))
        return [*whole, *_moved(branches[-1], len(whole))]

    def _sequence(self) -> list[Instruction]:
        parts: list[list[Instruction]] = []
        size = 0
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.flags.spaced and (self.text[self.at].isspace() or self.text[self.at] == "#"):
                end = self.text.find("\n", self.at) if self.text[self.at] == "#" else self.at
                self.at = len(self.text) if end < 0 else end + 1
                continue
            atom = self._atom()
            parts.append(self._repeated(atom))
            size += len(parts[-1])
            if size > MOST_INSTRUCTIONS:
                raise PatternError("too large")
        return _joined(*parts)

    def _repeated(self, atom: list[Instruction]) -> list[Instruction]:
        while self.at < len(self.text):
            char, count = self.text[self.at], _COUNT.match(self.text, self.at)
            if char in "*+?":
                least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
                self.at += 1
            elif count:
                least = int(count[1])
                most = least if count[2] is None else int(count[3]) if count[3] else None
                self.at = count.end()
                if most is not None and most < least:
                    raise PatternError("Illegal {x,y} with x > y.")
            else:
                return atom
            lazy = self.text.startswith("?", self.at)
            self.at += lazy
            atom = self._times(atom, least, most, not lazy)
            if self.at < len(self.text) and self.text[self.at] in "*+?" and not lazy:
                raise PatternError("Nested quantifier.")
        return atom

    def _times(self, atom: list[Instruction], least: int, most: int | None, greedy: bool) -> list[Instruction]:
        if len(atom) * max(least, most or 0) > MOST_INSTRUCTIONS:
            raise PatternError("too large")
        needed = [atom] * least
        if most is None:
            self.marks += 1
            mark, moved = Instruction("mark", first=self.marks), Instruction("progress", first=self.marks)
            size = len(atom)
            loop = [_split(1, size + 4, greedy), mark, *_moved(atom, 2), moved, Instruction("jump", first=0)]
            return _joined(*needed, loop)
        rest: list[Instruction] = []
        each, end = 1 + len(atom), (most - least) * (1 + len(atom))
        for start in range(0, end, each):
            rest += [_split(start + 1, end, greedy), *_moved(atom, start + 1)]
        return _joined(*needed, rest)

    def _atom(self) -> list[Instruction]:
        char = self.text[self.at]
        self.at += 1
        if char == "(":
            return self._group()
        if char == "[":
            return [Instruction("char", self._set())]
        if char == ".":
            return [Instruction("char", (lambda each: True) if self.flags.dot_all else (lambda each: each != "\n"))]
        if char == "^":
            return [Instruction("at", name="line" if self.flags.lines else "begin")]
        if char == "$":
            return [Instruction("at", name="line-end" if self.flags.lines else "last")]
        if char in "*+?":
            raise PatternError("Quantifier {x,y} following nothing.")
        return self._escape() if char == "\\" else [Instruction("char", self._one(char))]

    def _one(self, char: str) -> Test:
        if self.flags.ignore_case:
            forms = {char, char.lower(), char.upper()}
            return forms.__contains__
        return char.__eq__

    def _group(self) -> list[Instruction]:
        rest = self.text[self.at : self.at + 3]
        before = _Flags(**vars(self.flags))
        for mark, ahead, wanted in (("?=", 1, 1), ("?!", 1, 0), ("?<=", 0, 1), ("?<!", 0, 0)):
            if rest.startswith(mark):
                self.at += len(mark)
                body = [*self._closed(before), Instruction("end")]
                return [Instruction("look", first=ahead, second=wanted, inner=body)]
        if rest.startswith("?>"):
            self.at += 2
            return [Instruction("atomic", inner=[*self._closed(before), Instruction("end")])]
        flags = _FLAGS.match(self.text, self.at - 1)
        if flags:
            self.at = flags.end()
            for letters, on in ((flags[1], True), (flags[2] or "", False)):
                for letter in letters:
                    flag = {"i": "ignore_case", "m": "lines", "s": "dot_all", "x": "spaced"}.get(letter)
                    if flag:
                        setattr(self.flags, flag, on)
            return [] if flags[3] == ")" else self._closed(before)
        name = _GROUP_NAME.match(self.text, self.at - 1)
        if rest.startswith("?") and not name:
            raise PatternError("Unrecognized grouping construct.")
        self.groups += 1
        number = self.groups
        if name:
            self.at = name.end()
            self.names[name[1] or name[2]] = number
        inside = self._closed(before)
        return _joined([Instruction("save", first=2 * number)], inside, [Instruction("save", first=2 * number + 1)])

    def _closed(self, before: _Flags) -> list[Instruction]:
        body = self.alternatives()
        if not self.text.startswith(")", self.at):
            raise PatternError("Not enough )'s.")
        self.at += 1
        self.flags = before
        return body

    def _escape(self) -> list[Instruction]:
        if self.at >= len(self.text):
            raise PatternError("Illegal \\ at end of pattern.")
        char = self.text[self.at]
        places = {"b": "boundary", "B": "inside", "A": "begin", "Z": "last", "z": "end", "G": "begin"}
        if char in places:
            self.at += 1
            return [Instruction("at", name=places[char])]
        again = re.compile(r"([1-9]\d?)|k<(\w+)>|k'(\w+)'", re.ASCII).match(self.text, self.at)
        if again:
            self.at = again.end()
            number = int(again[1]) if again[1] else self.names.get(again[2] or again[3], -1)
            if not 0 < number <= self.groups:
                raise PatternError("Reference to undefined group.")
            self.remembers = True
            return [Instruction("same", first=number, second=int(self.flags.ignore_case))]
        return [Instruction("char", self._escaped())]

    def _escaped(self) -> Test:
        """What a backslash and what follows stand for, in a set or outside of one."""
        if self.at >= len(self.text):
            raise PatternError("Illegal \\ at end of pattern.")
        char = self.text[self.at]
        self.at += 1
        if char.lower() in _CLASSES:
            test = _CLASSES[char.lower()]
            return test if char.islower() else (lambda each: not test(each))
        return self._one(self._character(char))

    def _character(self, char: str) -> str:
        sizes = {"x": 2, "u": 4}
        if char in sizes:
            digits = self.text[self.at : self.at + sizes[char]]
            if len(digits) < sizes[char] or not re.fullmatch(r"[0-9a-fA-F]+", digits):
                raise PatternError("Insufficient hexadecimal digits.")
            self.at += sizes[char]
            return chr(int(digits, 16))
        return _ESCAPES.get(char, char)

    def _set(self) -> Test:
        negated = self.text.startswith("^", self.at)
        self.at += negated
        tests: list[Test] = []
        first = True
        while True:
            if self.at >= len(self.text):
                raise PatternError("Unterminated [] set.")
            char = self.text[self.at]
            self.at += 1
            if char == "]" and not first:
                break
            first = False
            low: str | None = char
            if char == "\\":
                letter = self.text[self.at : self.at + 1]
                if letter.lower() in _CLASSES and letter:
                    tests.append(self._escaped())
                    low = None
                else:
                    self.at += 1
                    low = "\b" if letter == "b" else self._character(letter) if letter else ""
            if low is not None:
                tests.append(self._span(low))
        found = tuple(tests)
        return (
            (lambda each: not any(test(each) for test in found))
            if negated
            else (lambda each: any(test(each) for test in found))
        )

    def _span(self, low: str) -> Test:
        """A character of a set, or all from it to another one."""
        if self.text[self.at : self.at + 1] != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
            return self._one(low)
        self.at += 1
        high = self.text[self.at]
        self.at += 1
        if high == "\\":
            letter = self.text[self.at : self.at + 1]
            self.at += 1
            high = self._character(letter) if letter else ""
        if high < low:
            raise PatternError("[x-y] range in reverse order.")
        if self.flags.ignore_case:
            return lambda each: low <= each <= high or low <= each.lower() <= high or low <= each.upper() <= high
        return lambda each: low <= each <= high
