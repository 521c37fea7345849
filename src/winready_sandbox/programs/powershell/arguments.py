"""Arguments of commands: bare words, texts, variables, lists."""

from __future__ import annotations

import re

from winready_sandbox.programs.powershell.expressions import ExpressionParser
from winready_sandbox.programs.powershell.reader import NUMBER, number
from winready_sandbox.programs.powershell.syntax import (
    ArrayLiteral,
    Constant,
    Expandable,
    Expression,
    ParseError,
    Variable,
)

_WORD_END = set(" \t\n;|&(){},<>")


class ArgumentParser(ExpressionParser):
    """The part of the parser that reads arguments."""

    def bare_word(self) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in _WORD_END:
            if self.text[self.at] in "'\"":
                break
            self.at += 2 if self.text[self.at] == "`" else 1
        if self.at == start:
            raise ParseError(f"Unexpected token '{self.peek()}' in expression or statement.")
        return self.text[start : self.at].replace("`", "")

    def argument(self) -> Expression | None:
        """One argument in argument mode; commas make an array."""
        items: list[Expression] = []
        while True:
            item = self._one_argument()
            if item is None:
                return None
            items.append(item)
            mark = self.at
            self.blanks()
            if self.peek() != ",":
                self.at = mark
                return items[0] if len(items) == 1 else ArrayLiteral(items)
            self.at += 1
            self.blanks(lines=True)

    def _one_argument(self) -> Expression | None:
        char = self.peek()
        if char in ("'", '"', "(", "{", "[") or self.peek(2) in ("@(", "@{", "@'", '@"', "$("):
            if char == "[" and not re.compile(r"\[[\w.\[\]]+\](::|['\"$(@])").match(self.text, self.at):
                return Constant(self.bare_word())
            value = self.postfix()
            if self.peek() and self.peek() not in _WORD_END | {"'", '"'} and isinstance(value, Constant | Expandable):
                return self._joined(value)
            return value
        if char == "$" and re.match(r"[\w{?$]", self.text[self.at + 1 : self.at + 2]):
            mark = self.at
            value = self.postfix()
            if not self.peek() or self.peek() in _WORD_END:
                return value
            self.at = mark
        if char == "@" and self.text[self.at + 1 : self.at + 2].isalpha():
            variable = self.variable()
            return Variable(f"@{variable.name}")
        match = NUMBER.match(self.text, self.at)
        if match and (match.end() >= len(self.text) or self.text[match.end()] in _WORD_END):
            self.at = match.end()
            return Constant(number(match))
        if char in _WORD_END:
            return None
        word = self._argument_word()
        return self.expandable(word) if "$" in word or "`" in word else Constant(word)

    def _joined(self, first: Constant | Expandable) -> Expression:
        parts: list[str | Expression] = [str(first.value)] if isinstance(first, Constant) else list(first.parts)
        word = self._argument_word()
        parts += self.expandable(word).parts
        return Expandable(parts)

    def _argument_word(self) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in _WORD_END:
            if self.peek(2) == "$(":
                self.sub_expression()
                continue
            if self.peek() == "$" and self.text[self.at + 1 : self.at + 2] == "{":
                self.at = self.beyond("}") - 1
            if self.text[self.at] in "'\"" and self.at > start and "=" not in self.text[start : self.at]:
                break
            self.at += 2 if self.text[self.at] == "`" else 1
        return self.text[start : self.at]
