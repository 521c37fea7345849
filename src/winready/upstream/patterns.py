"""Patterns out of files of strangers, searched as Go does it: in time that grows with the text, whatever they are.

Python's own engine goes back and tries again, which takes years for some patterns; so it is only asked for those that
repeat one thing at most. For all others every way through the pattern is followed at once, and remembered. What that
cannot do (to look around, to refer back) Go cannot do either, and test cases of op-readiness are written for Go.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

LONGEST, MOST_GROUPS = 4000, 200
"""Characters, and groups; the longest name of a spec has some hundred characters."""
MOST_NODES = 4000
MOST_KNOWN = 20_000
"""Steps that are remembered; then it begins anew."""
_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT)
_CLASSES = {
    op.CATEGORY_DIGIT: re.compile(r"\d"),
    op.CATEGORY_NOT_DIGIT: re.compile(r"\D"),
    op.CATEGORY_SPACE: re.compile(r"\s"),
    op.CATEGORY_NOT_SPACE: re.compile(r"\S"),
    op.CATEGORY_WORD: re.compile(r"\w"),
    op.CATEGORY_NOT_WORD: re.compile(r"\W"),
}
_MATCH = -1


class PatternError(ValueError):
    """No pattern, or one that nobody can search for in a reasonable time."""


class _Node(NamedTuple):
    """Takes a character (``test``), looks at a place (``at``), or only leads on."""

    nexts: tuple[int, ...]
    test: tuple[Any, Any, int] | None = None
    at: Any = None


class Pattern:
    """A pattern; ``found_in`` searches."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST or text.count("(") > MOST_GROUPS:
            raise PatternError("it is too long, or nested too deeply")
        try:
            # Python warns about what it may read in another way some day; nobody here can do anything about it.
            with warnings.catch_warnings(action="ignore"):
                tree = parser.parse(text)
                self._plain = re.compile(text) if _plain(tree) else None
            self._nodes: list[_Node] = []
            self._start = _MATCH if self._plain else self._build(tree, _MATCH, tree.state.flags)
        except re.error as error:
            raise PatternError(str(error)) from None
        except (RecursionError, OverflowError):
            raise PatternError("it repeats too often") from None
        self._known: dict[tuple[frozenset[int], bool, bool, str], tuple[bool, frozenset[int]]] = {}

    def found_in(self, text: str) -> bool:
        """Whether it matches anywhere in a text."""
        if self._plain is not None:
            return self._plain.search(text) is not None
        states: frozenset[int] = frozenset()
        first, word = True, False
        for character in (*text, ""):
            key = (states, first, word, character)
            known = self._known.get(key)
            if known is None:
                if len(self._known) > MOST_KNOWN:
                    self._known.clear()
                known = self._known[key] = self._step(*key)
            matched, states = known
            if matched:
                return True
            first, word = False, _is_word(character)
        return False

    def _step(self, states: frozenset[int], first: bool, word: bool, character: str) -> tuple[bool, frozenset[int]]:
        """Whether it has matched before a character, and where each way leads by it."""
        waiting, seen, after = [*states, self._start], set[int](), set[int]()
        while waiting:
            number = waiting.pop()
            if number == _MATCH:
                return True, frozenset()
            if number in seen:
                continue
            seen.add(number)
            node = self._nodes[number]
            if node.test is not None:
                if character and _takes(node.test, character):
                    after.update(node.nexts)
            elif node.at is None or _stands(node.at, first, word, character):
                waiting.extend(node.nexts)
        return False, frozenset(after)

    def _add(self, node: _Node) -> int:
        if len(self._nodes) >= MOST_NODES:
            raise PatternError("it repeats too much")
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _build(self, tree: Iterable[tuple[Any, Any]], then: int, flags: int) -> int:
        """Nodes for a part of a pattern that leads on to ``then``; where it begins."""
        for code, argument in reversed(list(tree)):
            if code in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY):
                then = self._add(_Node((then,), test=(code, argument, flags)))
            elif code is op.AT:
                then = self._add(_Node((then,), at=argument))
            elif code is op.SUBPATTERN:
                _, more, less, inside = argument
                then = self._build(inside, then, (flags | more) & ~less)
            elif code is op.BRANCH:
                then = self._add(_Node(tuple(self._build(each, then, flags) for each in argument[1])))
            elif code in _REPEATS:
                least, most, inside = argument
                then = self._repeat(least, most, inside, then, flags)
            else:
                raise PatternError("it looks around or refers back, which Go's patterns cannot")
        return then

    def _repeat(self, least: int, most: int, inside: Any, then: int, flags: int) -> int:
        if most is op.MAXREPEAT:
            loop = self._add(_Node(()))
            self._nodes[loop] = _Node((self._build(inside, loop, flags), then))
            then = loop
        else:
            end = then
            for _ in range(most - least):
                then = self._add(_Node((self._build(inside, then, flags), end)))
        for _ in range(least):
            then = self._build(inside, then, flags)
        return then


def _plain(tree: Any) -> bool:
    """Whether one character at most is repeated in it, and nothing of it is what Go does not have."""
    repeats, waiting = 0, [list(tree)]
    while waiting:
        for code, argument in waiting.pop():
            if code in _REPEATS:
                repeats += 1
                if repeats > 1 or len(argument[2]) != 1 or argument[2][0][0] not in (op.LITERAL, op.IN, op.ANY):
                    return False
            elif code is op.SUBPATTERN:
                waiting.append(list(argument[3]))
            elif code is op.BRANCH:
                waiting += [list(each) for each in argument[1]]
            elif code not in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY, op.AT):
                return False
    return True


def _takes(test: tuple[Any, Any, int], character: str) -> bool:
    code, argument, flags = test
    if code is op.ANY:
        return character != "\n" or bool(flags & re.DOTALL)
    kinds = {character, character.lower(), character.upper()} if flags & re.IGNORECASE else {character}
    if code is op.LITERAL:
        return chr(argument) in kinds
    if code is op.NOT_LITERAL:
        return chr(argument) not in kinds
    items = list(argument)
    negated = items[0][0] is op.NEGATE
    return negated != any(_holds(item, kind) for item in items[negated:] for kind in kinds)


def _holds(item: tuple[Any, Any], character: str) -> bool:
    code, argument = item
    if code is op.LITERAL:
        return bool(ord(character[0]) == argument) if len(character) == 1 else False
    if code is op.RANGE:
        return len(character) == 1 and bool(argument[0] <= ord(character) <= argument[1])
    return _CLASSES[argument].match(character) is not None


def _stands(at: Any, first: bool, word: bool, character: str) -> bool:
    if at in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
        return first
    if at in (op.AT_END, op.AT_END_STRING):
        return not character
    return (word != _is_word(character)) == (at is op.AT_BOUNDARY)


def _is_word(character: str) -> bool:
    return bool(character) and _CLASSES[op.CATEGORY_WORD].match(character) is not None
