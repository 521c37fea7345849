"""The smallest pieces of a script: blanks, numbers, texts, variables."""

from __future__ import annotations

import re

from winready_sandbox.programs.powershell.syntax import Expandable, Expression, ParseError, Variable
from winready_sandbox.programs.powershell.values import fitting

LEAST_STEPS, STEPS = 2000, 20
"""Steps that reading a script may take: some, and so many for each character."""

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_UNITS = {"kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40, "pb": 2**50}
NUMBER = re.compile(r"(0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?|\.\d+)(l|d|u)?([kmgtp]b)?(?!\w|\.\d)", re.IGNORECASE)
_VARIABLE = re.compile(r"(?:(?:env|global|script|local|private|using|function):)?[A-Za-z_]\w*|[$?^]|\d+", re.IGNORECASE)


def number(match: re.Match[str]) -> int | float:
    """The value of a number such as `8MB`, `0x10` or `1.5`."""
    text = match[1]
    if text.lower().startswith("0x"):
        if len(text) > 18:
            raise ParseError(f"The numeric constant {text[:40]} is not valid.")
        value: int | float = int(text, 16)
    else:
        value = float(text) if len(text) > 19 or any(char in text.lower() for char in ".e") else int(text)
    if match[3]:
        value *= _UNITS[match[3].lower()]
    return fitting(value)


class Reader:
    """A position in a script."""

    def __init__(self, text: str, left: list[int] | None = None) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self._left = left if left is not None else [LEAST_STEPS + STEPS * len(text)]
        """Steps that may still be taken, together with those who read parts of the text."""

    def spend(self, steps: int = 1) -> None:
        """Take steps; texts inside of texts inside of texts would take for ever."""
        self._left[0] -= steps
        if self._left[0] < 0:
            raise ParseError("The script is too complex.")

    def peek(self, size: int = 1) -> str:
        """The next characters."""
        return self.text[self.at : self.at + size]

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Try a pattern here, and go past it."""
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def blanks(self, *, lines: bool = False) -> None:
        """Go past blanks and comments."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\xa0" or (lines and char == "\n"):
                self.at += 1
            elif char == "`" and self.text[self.at + 1 : self.at + 2] == "\n":
                self.at += 2
            elif self.peek(2) == "<#":
                end = self.text.find("#>", self.at)
                self.at = len(self.text) if end < 0 else end + 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def expect(self, text: str) -> None:
        """Go past a text that must be here."""
        self.blanks(lines=True)
        if not self.text.startswith(text, self.at):
            found = self.peek(12).partition("\n")[0]
            raise ParseError(f"Missing '{text}' in expression or statement near '{found}'.")
        self.at += len(text)

    def beyond(self, text: str) -> int:
        """The place after a text that must follow somewhere."""
        end = self.text.find(text, self.at)
        if end < 0:
            raise ParseError(f"Missing '{text}' in expression or statement.")
        return end + len(text)

    def keyword(self) -> str:
        """The word here in lower case, without going past it."""
        found = re.compile(r"[A-Za-z]+").match(self.text, self.at)
        return found[0].lower() if found else ""

    def single_quoted(self) -> str:
        """A text in single quotes."""
        self.at += 1
        out: list[str] = []
        while True:
            end = self.text.find("'", self.at)
            if end < 0:
                raise ParseError("The string is missing the terminator: '.")
            out.append(self.text[self.at : end])
            self.at = end + 1
            if self.peek() != "'":
                return "".join(out)
            out.append("'")
            self.at += 1

    def here_string(self) -> Expression | str:
        """`@' ... '@` and `@\" ... \"@`."""
        quote = self.text[self.at + 1]
        start = self.text.find("\n", self.at) + 1
        end = self.text.find(f"\n{quote}@", start - 1)
        if end < 0 or not start:
            raise ParseError(f"The string is missing the terminator: {quote}@.")
        body = self.text[start:end]
        self.at = end + 3
        return body if quote == "'" else self.expandable(body)

    def double_quoted(self) -> Expandable:
        """A text in double quotes."""
        self.at += 1
        start = self.at
        depth = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "`":
                self.at += 1
            elif self.peek(2) == "$(":
                depth += 1
                self.at += 1
            elif char == ")" and depth:
                depth -= 1
            elif char == '"' and not depth:
                if self.text[self.at + 1 : self.at + 2] != '"':
                    body = self.text[start : self.at]
                    self.at += 1
                    return self.expandable(body)
                self.at += 1
            self.at += 1
        raise ParseError('The string is missing the terminator: ".')

    def variable(self) -> Variable:
        """What follows a `$` (or an `@` that splats)."""
        self.at += 1
        if self.peek() == "{":
            end = self.text.find("}", self.at)
            if end < 0:
                raise ParseError("Braced variable is missing its closing '}'.")
            name = self.text[self.at + 1 : end]
            self.at = end + 1
            return Variable(name.lower())
        found = self.match(_VARIABLE)
        if not found:
            raise ParseError("Variable reference is not valid.")
        return Variable(found[0].lower())

    def sub_expression(self) -> Expression:
        """See `expressions.ExpressionParser`."""
        raise NotImplementedError

    def expandable(self, body: str) -> Expandable:
        """A text in which variables and sub-expressions are replaced."""
        self.spend(len(body))
        parser = type(self)(body, self._left)
        parts: list[str | Expression] = []
        plain: list[str] = []

        def add(part: Expression) -> None:
            if plain:
                parts.append("".join(plain))
                plain.clear()
            parts.append(part)

        while parser.at < len(parser.text):
            char = parser.text[parser.at]
            following = parser.text[parser.at + 1 : parser.at + 2]
            if char == "`":
                plain.append(_ESCAPES.get(following, following))
                parser.at += 2
            elif char == '"' and following == '"':
                plain.append('"')
                parser.at += 2
            elif parser.peek(2) == "$(":
                add(parser.sub_expression())
            elif char == "$" and re.match(r"\{|[A-Za-z_]|\$|\?|\d", following):
                add(parser.variable())
            else:
                plain.append(char)
                parser.at += 1
        if plain:
            parts.append("".join(plain))
        return Expandable(parts)
