"""`test` and `[`."""

from __future__ import annotations

from collections.abc import Callable

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.files import FileSystem
from winready_sandbox.machine.tree import Device, Directory, File, Node, Symlink
from winready_sandbox.machine.users import Identity


class TestFailure(Exception):
    """The expression is wrong."""


class Condition:
    """One expression over files, texts and numbers."""

    def __init__(self, words: list[str], files: FileSystem, cwd: str, who: Identity | None) -> None:
        self.words = words
        self.at = 0
        self.files = files
        self.cwd = cwd
        self.who = who

    def evaluate(self) -> bool:
        """The whole expression."""
        if not self.words:
            return False
        result = self._or()
        if self.at < len(self.words):
            raise TestFailure(f"{self.words[self.at]}: unknown operand")
        return result

    def _next(self) -> str:
        if self.at >= len(self.words):
            raise TestFailure("argument expected")
        self.at += 1
        return self.words[self.at - 1]

    def _peek(self, ahead: int = 0) -> str | None:
        return self.words[self.at + ahead] if self.at + ahead < len(self.words) else None

    def _or(self) -> bool:
        result = self._and()
        while self._peek() == "-o":
            self.at += 1
            other = self._and()
            result = result or other
        return result

    def _and(self) -> bool:
        result = self._not()
        while self._peek() == "-a":
            self.at += 1
            other = self._not()
            result = result and other
        return result

    def _not(self) -> bool:
        if self._peek() == "!" and self._peek(1) is not None:
            self.at += 1
            return not self._not()
        return self._primary()

    def _primary(self) -> bool:
        if self._peek() == "(" and self._peek(1) is not None:
            self.at += 1
            result = self._or()
            if self._next() != ")":
                raise TestFailure("closing paren expected")
            return result
        operator = self._peek(1)
        if operator in _BINARY:
            left, name, right = self._next(), self._next(), self._next()
            return self._binary(left, name, right)
        word = self._next()
        if len(word) == 2 and word[0] == "-" and word[1] in "abcdefghLnprsuwxzS" and self._peek() is not None:
            return self._unary(word[1], self._next())
        return word != ""

    def _binary(self, left: str, name: str, right: str) -> bool:
        if name in ("=", "!="):
            return (left == right) == (name == "=")
        numbers = _number(left), _number(right)
        return _NUMERIC[name](*numbers)

    def _node(self, path: str, *, follow: bool = True) -> Node | None:
        try:
            return self.files.find(path, self.cwd, follow=follow).node
        except FileError:
            return None

    def _unary(self, letter: str, word: str) -> bool:
        if letter in "nz":
            return (word == "") == (letter == "z")
        node = self._node(word, follow=letter not in "hL")
        if node is None:
            return False
        if letter in "rwx":
            if letter == "x":
                return isinstance(node, Directory) or bool(node.mode & 0o111) or word.lower().endswith(".exe")
            return self.files.access(word, self.cwd, self.who, letter)
        answers: dict[str, bool] = {
            "f": isinstance(node, File),
            "d": isinstance(node, Directory),
            "h": isinstance(node, Symlink),
            "L": isinstance(node, Symlink),
            "s": bool(node.data) if isinstance(node, File) else True,
            "c": isinstance(node, Device),
        }
        return answers.get(letter, letter in "ae")


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise TestFailure(f"{text}: bad number" if text else "argument expected") from None


_NUMERIC: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}
_BINARY = {"=", "!=", *_NUMERIC}
