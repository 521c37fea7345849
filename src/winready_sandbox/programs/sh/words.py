"""Reading words: quotes, parameters, substitutions."""

from __future__ import annotations

import re

from winready_sandbox.programs.sh.syntax import Arithmetic, Literal, Parameter, Part, Substitution, Word

_NAME = re.compile(r"[A-Za-z_]\w*|[0-9]|[@*#?$!-]")
META = " \t\n;&|<>()"


class ShellSyntaxError(Exception):
    """The script cannot be parsed."""


class WordReader:
    """A position in a script's text, and how to read a word there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self, size: int = 1) -> str:
        """The next characters."""
        return self.text[self.at : self.at + size]

    def word(self, stop: str = META) -> Word | None:
        """One word, or None if there is none here."""
        parts: Word = []
        found = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in stop:
                break
            found = True
            if char == "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    raise ShellSyntaxError("unterminated quoted string")
                parts.append(Literal(self.text[self.at + 1 : end], quoted=True))
                self.at = end + 1
            elif char == '"':
                self.at += 1
                parts += self.quoted('"')
            elif char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                self.at += 2
                if following != "\n":
                    parts.append(Literal(following or "\\", quoted=True))
            elif char in "$`":
                parts.append(self.dollar(quoted=False))
            else:
                start = self.at
                while self.at < len(self.text) and self.text[self.at] not in stop + "'\"\\$`":
                    self.at += 1
                parts.append(Literal(self.text[start : self.at]))
        return parts if found else None

    def quoted(self, end: str) -> Word:
        """The inside of double quotes (or of a here-document, with an end that never comes)."""
        parts: Word = [Literal("", quoted=True)]
        plain: list[str] = []

        def flush() -> None:
            if plain:
                parts.append(Literal("".join(plain), quoted=True))
                plain.clear()

        while True:
            if self.at >= len(self.text):
                if end:
                    raise ShellSyntaxError("unterminated quoted string")
                break
            char = self.text[self.at]
            if end and char == end:
                self.at += 1
                break
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                if self.text[self.at + 1] != "\n":
                    plain.append(self.text[self.at + 1])
                self.at += 2
            elif char in "$`":
                flush()
                parts.append(self.dollar(quoted=True))
            else:
                plain.append(char)
                self.at += 1
        flush()
        return parts

    def dollar(self, *, quoted: bool) -> Part:
        """What a `$` or a backtick introduces."""
        if self.peek() == "`":
            self.at += 1
            script: list[str] = []
            while self.at < len(self.text) and self.text[self.at] != "`":
                if self.text[self.at] == "\\" and self.text[self.at + 1 : self.at + 2] in ("`", "$", "\\"):
                    self.at += 1
                script.append(self.text[self.at])
                self.at += 1
            self.at += 1
            return Substitution("".join(script), quoted)
        if self.peek(3) == "$((":
            inner = self.enclosed(3, "))")
            return Arithmetic(WordReader(inner).quoted(""), quoted)
        if self.peek(2) == "$(":
            return Substitution(self.enclosed(2, ")"), quoted)
        if self.peek(2) == "${":
            return self._braced(quoted)
        match = _NAME.match(self.text, self.at + 1)
        if not match:
            self.at += 1
            return Literal("$", quoted)
        self.at = match.end()
        return Parameter(match[0], quoted=quoted)

    def enclosed(self, skip: int, end: str) -> str:
        """The text up to the parenthesis that matches the one just opened."""
        self.at += skip
        start = self.at
        depth = len(end)
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self.at += 1
            elif char == "'":
                close = self.text.find("'", self.at + 1)
                self.at = close if close > 0 else self.at
            elif char == '"':
                self.at += 1
                self.quoted('"')
                continue
            elif char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth == 0:
                    inner = self.text[start : self.at - len(end) + 1]
                    self.at += 1
                    return inner
            self.at += 1
        raise ShellSyntaxError(f'unexpected end of file (expecting "{end}")')

    def _braced(self, quoted: bool) -> Part:
        self.at += 2
        if self.peek() == "#" and self.text[self.at + 1 : self.at + 2] not in ("}", ":", "-", "="):
            self.at += 1
            match = _NAME.match(self.text, self.at)
            if not match:
                raise ShellSyntaxError("bad substitution")
            self.at = match.end() + 1
            return Parameter(match[0], "length", quoted=quoted)
        match = re.compile(r"[A-Za-z_]\w*|\d+|[@*#?$!-]").match(self.text, self.at)
        if not match:
            raise ShellSyntaxError("bad substitution")
        self.at = match.end()
        operator = re.compile(r":[-=?+]|##|%%|//|[-=?+#%/:]|").match(self.text, self.at)
        found = operator[0] if operator else ""
        self.at += len(found)
        word: Word = []
        while self.peek() != "}":
            if self.at >= len(self.text):
                raise ShellSyntaxError('unexpected end of file (expecting "}")')
            before = self.at
            piece = self.word("}")
            if piece:
                word += piece
            if self.at == before:
                break
        self.at += 1
        return Parameter(match[0], found, word, quoted)
