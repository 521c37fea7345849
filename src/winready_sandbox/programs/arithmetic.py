"""Integer expressions of `set /a` and of `$(( ))`."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(r"\s*(0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|\*\*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!()<>?:])")
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)


class ArithmeticFailure(Exception):
    """The expression is wrong; the text is for the user."""


def _wrapped(value: int) -> int:
    """What is left of a number in 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def _number(text: str) -> int:
    text = text.strip() or "0"
    try:
        return _wrapped(int(text, 0) if not re.fullmatch(r"-?0\d+", text) else int(text, 8))
    except ValueError:
        raise ArithmeticFailure("Missing operand.") from None


class _Evaluator:
    def __init__(self, tokens: list[str], lookup: Callable[[str], str]) -> None:
        self.tokens = tokens
        self.at = 0
        self.lookup = lookup

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise ArithmeticFailure("Missing operand.")
        self.at += 1
        return token

    def expression(self) -> int:
        value = self.level(0)
        if self._peek() == "?":
            self.at += 1
            yes = self.expression()
            if self._next() != ":":
                raise ArithmeticFailure("Missing operator.")
            no = self.expression()
            return yes if value else no
        return value

    def level(self, depth: int) -> int:
        if depth == len(_LEVELS):
            return self.unary()
        value = self.level(depth + 1)
        while self._peek() in _LEVELS[depth] and self._peek():
            value = _apply(self._next(), value, self.level(depth + 1))
        return value

    def unary(self) -> int:
        symbol = self._next()
        if symbol == "(":
            value = self.expression()
            if self._next() != ")":
                raise ArithmeticFailure("Unbalanced parenthesis.")
            return value
        if symbol in "+-~!" and len(symbol) == 1:
            value = self.unary()
            return {"+": value, "-": -value, "~": ~value, "!": int(not value)}[symbol]
        if symbol[0].isalpha() or symbol[0] == "_":
            return _number(self.lookup(symbol))
        if symbol[0].isdigit():
            return _number(symbol)
        raise ArithmeticFailure("Missing operand.")


def _apply(operator: str, left: int, right: int) -> int:
    if operator in "/%" and right == 0:
        raise ArithmeticFailure("Divide by zero error.")
    if operator in ("/", "%"):
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    results: dict[str, Callable[[], int]] = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "<<": lambda: left << max(0, min(right, 63)),
        ">>": lambda: left >> max(0, min(right, 63)),
        "&": lambda: left & right,
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "&&": lambda: int(bool(left and right)),
        "||": lambda: int(bool(left or right)),
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<": lambda: int(left < right),
        "<=": lambda: int(left <= right),
        ">": lambda: int(left > right),
        ">=": lambda: int(left >= right),
    }
    return _wrapped(results[operator]())


def evaluate(text: str, lookup: Callable[[str], str]) -> int:
    """The value of an integer expression; ``lookup`` gives the text of a variable."""
    tokens: list[str] = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if not match:
            raise ArithmeticFailure("Invalid number.  Numeric constants are either decimal, hexadecimal, or octal.")
        tokens.append(match[1])
        at = match.end()
    evaluator = _Evaluator(tokens or ["0"], lookup)
    value = evaluator.expression()
    if evaluator.at < len(evaluator.tokens):
        raise ArithmeticFailure("Missing operator.")
    return value
