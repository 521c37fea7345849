"""The part of the Common Expression Language that admission policies are written in.

Numbers, texts, lists, maps, messages (``JSONPatch{...}``), fields, conditions, the macros over lists, and the functions
on texts. What it does not know is an error, never a guess: a policy that cannot be evaluated fails as one does whose
evaluation goes wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, TypeVar

from winready_sandbox.pattern_search import PatternError, TooMuch, find

Part = TypeVar("Part")
Value = Any
Names = Mapping[str, Value]
Evaluate = Callable[[Names], Value]

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>\d+(?:\.\d+)?)
  | (?P<raw>[rR](?:'[^'\n]*'|"[^"\n]*"))
  | (?P<text>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])
)""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "?": "?", "`": "`"}
_BINARY = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
"""Signs by how strongly they bind, the weakest first."""
_DEEPEST = 50
MOST_STEPS = 200_000
"""Steps of one search for a pattern, about what the real limit of costs allows."""
_MACROS = ("all", "exists", "exists_one", "filter", "map")


class CelError(Exception):
    """An expression that is none, or that has no value for these names."""


def evaluate(expression: str, names: Names) -> Value:
    """The value of an expression."""
    return compiled(expression)(names)


@lru_cache(maxsize=256)
def compiled(expression: str) -> Evaluate:
    """An expression, read once."""
    return _Reader(expression).whole()


class _Reader:
    """From text to functions, by descent."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        place, text = 0, text.rstrip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None or match.lastgroup is None:
                raise CelError(f"Syntax error: token recognition error at: '{text[place : place + 10].strip()}'")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()
        self._next = 0
        self._depth = 0

    def whole(self) -> Evaluate:
        found = self._conditional()
        if self._next < len(self._tokens):
            raise CelError(f"Syntax error: extraneous input '{self._tokens[self._next][1]}'")
        return found

    def _peek(self) -> str:
        kind, text = self._tokens[self._next] if self._next < len(self._tokens) else ("end", "<EOF>")
        return text if kind in ("sign", "name", "end") else ""

    def _take(self, sign: str) -> bool:
        if self._peek() == sign:
            self._next += 1
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise CelError(f"Syntax error: missing '{sign}' at '{self._peek()}'")

    def _conditional(self) -> Evaluate:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CelError("expression recursion limit exceeded")
        condition = self._binary(0)
        if self._take("?"):
            then = self._binary(0)
            self._expect(":")
            condition = _choice(condition, then, self._conditional())
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Evaluate:
        if level == len(_BINARY):
            return self._unary()
        left = self._binary(level + 1)
        while (sign := self._peek()) in _BINARY[level]:
            self._next += 1
            left = _operation(sign, left, self._binary(level + 1))
        return left

    def _unary(self) -> Evaluate:
        if self._take("!"):
            inner = self._unary()
            return lambda names: not _bool(inner(names))
        if self._take("-"):
            number = self._unary()
            return lambda names: -_number(number(names))
        return self._member()

    def _member(self) -> Evaluate:
        found = self._primary()
        while True:
            if self._take("."):
                found = self._below(found, self._name())
            elif self._take("["):
                index = self._conditional()
                self._expect("]")
                found = _indexed(found, index)
            else:
                return found

    def _below(self, owner: Evaluate, name: str) -> Evaluate:
        if not self._take("("):
            return lambda names: _field(owner(names), name)
        if name in _MACROS:
            return self._macro(owner, name)
        arguments = self._arguments()
        if name not in _METHODS:
            raise CelError(f"undeclared reference to '{name}'")
        return lambda names: _call(_METHODS[name], name, owner(names), *(each(names) for each in arguments))

    def _macro(self, owner: Evaluate, name: str) -> Evaluate:
        variable = self._name()
        self._expect(",")
        body = self._conditional()
        self._expect(")")

        def run(names: Names) -> Value:
            items = owner(names)
            if not isinstance(items, list | dict):
                raise CelError("no such overload")
            return _over(name, [(item, partial(body, {**names, variable: item})) for item in items])

        return run

    def _arguments(self) -> list[Evaluate]:
        return self._several(")", self._conditional)

    def _several(self, end: str, one: Callable[[], Part]) -> list[Part]:
        found: list[Part] = []
        while not self._take(end):
            if found:
                self._expect(",")
            found.append(one())
        return found

    def _pairs(self, key: Callable[[], Evaluate]) -> Evaluate:
        """The inside of a map, or of a message, which is one by the names of its fields."""

        def one() -> tuple[Evaluate, Evaluate]:
            found = key()
            self._expect(":")
            return found, self._conditional()

        pairs = self._several("}", one)
        return lambda names: {name(names): value(names) for name, value in pairs}

    def _field_name(self) -> Evaluate:
        name = self._name()
        return lambda names: name

    def _name(self) -> str:
        if self._next >= len(self._tokens) or self._tokens[self._next][0] != "name":
            raise CelError(f"Syntax error: mismatched input '{self._peek()}' expecting IDENTIFIER")
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _primary(self) -> Evaluate:
        if self._take("("):
            inner = self._conditional()
            self._expect(")")
            return inner
        if self._take("["):
            items = self._several("]", self._conditional)
            return lambda names: [each(names) for each in items]
        if self._take("{"):
            return self._pairs(self._conditional)
        kind, text = self._tokens[self._next] if self._next < len(self._tokens) else ("end", "<EOF>")
        self._next += 1
        if kind == "number":
            number = float(text) if "." in text else int(text)
            return lambda names: number
        if kind in ("raw", "text"):
            said = text[2:-1] if kind == "raw" else _unescaped(text[1:-1])
            return lambda names: said
        if kind != "name":
            raise CelError(f"Syntax error: mismatched input '{text}'")
        return self._named(text)

    def _named(self, text: str) -> Evaluate:
        if text in _CONSTANTS:
            constant = _CONSTANTS[text]
            return lambda names: constant
        if self._take("{"):
            return self._pairs(self._field_name)
        if not self._take("("):
            return lambda names: _variable(names, text)
        if text == "has":
            return self._has()
        arguments = self._arguments()
        if text not in _FUNCTIONS:
            raise CelError(f"undeclared reference to '{text}'")
        return lambda names: _call(_FUNCTIONS[text], text, *(each(names) for each in arguments))

    def _has(self) -> Evaluate:
        """``has(a.b)``: whether the map a has b; a itself must be there."""
        owner, name = self._primary(), ""
        while self._take("."):
            owner, name = (_selected(owner, name) if name else owner), self._name()
        self._expect(")")
        if not name:
            raise CelError("invalid argument to has() macro")

        def run(names: Names) -> bool:
            found = owner(names)
            if not isinstance(found, Mapping):
                raise CelError("no such overload")
            return found.get(name) is not None

        return run


def _choice(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    return lambda names: then(names) if _bool(condition(names)) else otherwise(names)


def _selected(owner: Evaluate, name: str) -> Evaluate:
    return lambda names: _field(owner(names), name)


def _variable(names: Names, text: str) -> Value:
    if text not in names:
        raise CelError(f"undeclared reference to '{text}'")
    return names[text]


def _field(owner: Value, name: str) -> Value:
    if not isinstance(owner, Mapping):
        raise CelError("no such overload")
    try:
        return owner[name]
    except KeyError:
        raise CelError(f"no such key: {name}") from None


def _indexed(owner: Evaluate, index: Evaluate) -> Evaluate:
    def run(names: Names) -> Value:
        found, place = owner(names), index(names)
        if isinstance(found, Mapping):
            return _field(found, place)
        if not isinstance(found, list) or type(place) is not int:
            raise CelError("no such overload")
        if not 0 <= place < len(found):
            raise CelError(f"index out of bounds: {place}")
        return found[place]

    return run


def _operation(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    if sign in ("&&", "||"):
        decides = sign == "||"
        return lambda names: _either(decides, [lambda: left(names), lambda: right(names)])
    return lambda names: _call(_SIGNS[sign], f"_{sign}_", left(names), right(names))


def _either(decides: bool, sides: list[Callable[[], Value]]) -> bool:
    """One side may decide although the other one has no value, whichever comes first."""
    trouble: CelError | None = None
    for side in sides:
        try:
            if _bool(side()) is decides:
                return decides
        except CelError as error:
            trouble = trouble or error
    if trouble is not None:
        raise trouble
    return not decides


def _over(name: str, items: list[tuple[Value, Callable[[], Value]]]) -> Value:
    if name == "map":
        return [body() for _, body in items]
    if name == "filter":
        return [item for item, body in items if _bool(body())]
    if name == "exists_one":
        return sum(_bool(body()) for _, body in items) == 1
    return _either(name == "exists", [body for _, body in items])


def _bool(value: Value) -> bool:
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return value


def _number(value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CelError("no such overload")
    return value


def _call(function: Callable[..., Value], name: str, *arguments: Value) -> Value:
    try:
        return function(*arguments)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError, re.error):
        raise CelError(f"no such overload: {name}") from None


def _added(one: Value, other: Value) -> Value:
    if type(one) is not type(other) or isinstance(one, bool):
        raise TypeError
    return one + other


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    return bool(one == other)


def _text(method: Callable[..., Value]) -> Callable[..., Value]:
    def run(owner: Value, *arguments: Value) -> Value:
        if not isinstance(owner, str):
            raise TypeError
        return method(owner, *arguments)

    return run


def _matches(owner: str, form: str) -> bool:
    try:
        return find(form, owner, steps=MOST_STEPS) is not None
    except PatternError as error:
        raise CelError(f"error parsing regexp: {error}: `{form}`") from None
    except TooMuch:
        raise CelError("operation cancelled: actual cost limit exceeded") from None


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise CelError(f"invalid escape sequence in '{text}'")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", one, text)


_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}
_SIGNS: dict[str, Callable[[Value, Value], Value]] = {
    "==": _same,
    "!=": lambda one, other: not _same(one, other),
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "in": lambda one, other: one in other,
    "+": _added,
    "-": lambda one, other: _number(one) - _number(other),
    "*": lambda one, other: _number(one) * _number(other),
    "/": lambda one, other: _number(one) // _number(other) if type(one) is int else one / other,
    "%": lambda one, other: _number(one) % _number(other),
}
_METHODS: dict[str, Callable[..., Value]] = {
    "contains": _text(lambda owner, other: other in owner),
    "startsWith": _text(str.startswith),
    "endsWith": _text(str.endswith),
    "matches": _text(_matches),
    "lowerAscii": _text(lambda owner: re.sub("[A-Z]", lambda match: match[0].lower(), owner)),
    "upperAscii": _text(lambda owner: re.sub("[a-z]", lambda match: match[0].upper(), owner)),
    "replace": _text(str.replace),
    "split": _text(str.split),
    "trim": _text(str.strip),
    "size": len,
}
_FUNCTIONS: dict[str, Callable[..., Value]] = {"size": len, "string": str, "int": int}
