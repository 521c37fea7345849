"""As much of the Common Expression Language as policies need that look at an object and patch it.

Fields, ``has()``, ``in``, comparisons, logic, the conditional, and literals of text, numbers, lists, maps and messages
(`JSONPatch{...}`). Whatever else an expression holds is not understood, which counts as a failure of the policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{}]))""",
    re.VERBOSE,
)
DEEPEST = 100
Value = Any
Scope = Mapping[str, Value]
Part = Callable[[Scope], Value]


class NotUnderstood(Exception):
    """An expression that this reader does not know, or that cannot be computed."""


def evaluate(expression: str, **scope: Value) -> Value:
    """The value of an expression; raises `NotUnderstood`."""
    return _Reader(expression).whole()(scope)


class _Reader:
    """Reads an expression from left to right, each method one level of binding."""

    def __init__(self, expression: str) -> None:
        self._tokens = _tokens(expression)
        self._at = 0
        self._depth = 0

    def whole(self) -> Part:
        part = self._conditional()
        if self._at < len(self._tokens):
            raise NotUnderstood(f"unexpected {self._tokens[self._at][1]!r}")
        return part

    def _conditional(self) -> Part:
        self._depth += 1
        if self._depth > DEEPEST:
            raise NotUnderstood("nested too deeply")
        condition = self._any()
        if self._next("?"):
            yes = self._conditional()
            self._expect(":")
            no = self._conditional()
            condition = _choice(condition, yes, no)
        self._depth -= 1
        return condition

    def _any(self) -> Part:
        part = self._all()
        while self._next("||"):
            part = _either(part, self._all())
        return part

    def _all(self) -> Part:
        part = self._relation()
        while self._next("&&"):
            part = _both(part, self._relation())
        return part

    def _relation(self) -> Part:
        part = self._unary()
        for sign, compare in _RELATIONS.items():
            if self._next(sign):
                return _related(part, self._unary(), compare)
        return part

    def _unary(self) -> Part:
        if self._next("!"):
            part = self._unary()
            return lambda scope: not _truth(part(scope))
        return self._member()

    def _member(self) -> Part:
        part = self._primary()
        while True:
            if self._next("."):
                part = _field(part, self._name())
            elif self._next("["):
                index = self._conditional()
                self._expect("]")
                part = _item(part, index)
            else:
                return part

    def _primary(self) -> Part:
        if self._next("("):
            part = self._conditional()
            self._expect(")")
            return part
        if self._next("["):
            items = self._several("]", self._conditional)
            return lambda scope: [item(scope) for item in items]
        if self._next("{"):
            pairs = self._several("}", lambda: self._pair(self._conditional))
            return lambda scope: {key(scope): value(scope) for key, value in pairs}
        kind, text = self._take()
        if kind == "text":
            value: Value = re.sub(r"\\(.)", r"\1", text[1:-1])
            return lambda _: value
        if kind == "number":
            return lambda _: int(text)
        if kind == "name":
            return self._named(text)
        raise NotUnderstood(f"unexpected {text!r}")

    def _named(self, name: str) -> Part:
        if name in _WORDS:
            return lambda _: _WORDS[name]
        if name == "has" and self._next("("):
            part = self._member()
            self._expect(")")
            return lambda scope: _present(part, scope)
        if self._next("{"):
            fields = self._several("}", lambda: self._pair(self._field_name))
            return lambda scope: {key(scope): value(scope) for key, value in fields}
        if self._next("("):
            raise NotUnderstood(f"the function {name} is not known here")
        return lambda scope: _known(scope, name)

    def _field_name(self) -> Part:
        name = self._name()
        return lambda _: name

    def _pair(self, key: Callable[[], Part]) -> tuple[Part, Part]:
        found = key()
        self._expect(":")
        return found, self._conditional()

    def _several(self, end: str, one: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        while not self._next(end):
            if found:
                self._expect(",")
            found.append(one())
        return found

    def _name(self) -> str:
        kind, text = self._take()
        if kind != "name":
            raise NotUnderstood(f"expected a name instead of {text!r}")
        return text

    def _take(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise NotUnderstood("the expression ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _next(self, text: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] in (("sign", text), ("name", text)):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._next(text):
            raise NotUnderstood(f"expected {text!r}")


_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None}
_RELATIONS: dict[str, Callable[[Value, Value], bool]] = {
    "==": lambda one, other: bool(one == other),
    "!=": lambda one, other: bool(one != other),
    "<=": lambda one, other: bool(one <= other),
    ">=": lambda one, other: bool(one >= other),
    "<": lambda one, other: bool(one < other),
    ">": lambda one, other: bool(one > other),
    "in": lambda one, other: one in other,
}


def _tokens(expression: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at, end = 0, len(expression.rstrip())
    while at < end:
        match = _TOKEN.match(expression, at)
        if match is None:
            raise NotUnderstood(f"cannot be read from {expression[at : at + 20]!r} on")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return found


def _truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise NotUnderstood("no such overload: logic needs true or false")
    return value


def _choice(condition: Part, yes: Part, no: Part) -> Part:
    return lambda scope: yes(scope) if _truth(condition(scope)) else no(scope)


def _either(one: Part, other: Part) -> Part:
    return lambda scope: _truth(one(scope)) or _truth(other(scope))


def _both(one: Part, other: Part) -> Part:
    return lambda scope: _truth(one(scope)) and _truth(other(scope))


def _related(one: Part, other: Part, compare: Callable[[Value, Value], bool]) -> Part:
    def related(scope: Scope) -> bool:
        try:
            return compare(one(scope), other(scope))
        except TypeError:
            raise NotUnderstood("no such overload") from None

    return related


def _field(part: Part, name: str) -> Part:
    def field(scope: Scope) -> Value:
        value = part(scope)
        if not isinstance(value, dict) or name not in value:
            raise NotUnderstood(f"no such key: {name}")
        return value[name]

    return field


def _item(part: Part, index: Part) -> Part:
    def item(scope: Scope) -> Value:
        try:
            return part(scope)[index(scope)]
        except (KeyError, IndexError, TypeError):
            raise NotUnderstood("no such key or index") from None

    return item


def _present(part: Part, scope: Scope) -> bool:
    """``has``: the last step may be missing. What a field would hold by default is not there for it, either."""
    try:
        value = part(scope)
    except NotUnderstood as error:
        if str(error).startswith("no such key"):
            return False
        raise
    return value is not None


def _known(scope: Scope, name: str) -> Value:
    if name not in scope:
        raise NotUnderstood(f"undeclared reference to {name!r}")
    return scope[name]
