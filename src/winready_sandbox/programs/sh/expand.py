"""From words to fields: parameters, command substitution, splitting, globbing."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from winready_sandbox.machine.errors import FileError
from winready_sandbox.programs.arithmetic import ArithmeticFailure, evaluate
from winready_sandbox.programs.sh.syntax import Arithmetic, Literal, Parameter, Part, Substitution, Word

if TYPE_CHECKING:
    from winready_sandbox.programs.sh.shell import Shell


class ExpansionError(Exception):
    """`${NAME:?message}`, unset variables under `set -u`, bad arithmetic."""


_FIELD = 64
"""Bytes that a field costs beside its text."""
Piece = tuple[str, bool]
"""A text and whether it was quoted (then it is neither split nor globbed)."""


async def fields(shell: Shell, words: list[Word]) -> list[str]:
    """All words expanded into the arguments of a command."""
    result: list[str] = []
    size = 0
    for word in words:
        for pieces in await _split(shell, word):
            found = _glob(shell, pieces)
            size += sum(len(each) + _FIELD for each in found)
            shell.relatives.holding.check(size)
            shell.pace.work(_FIELD)
            await shell.pace.rest()
            result += found
    return result


async def text(shell: Shell, word: Word) -> str:
    """A word as one text, without splitting or globbing (assignments, redirections, `case`)."""
    out: list[str] = []
    size = 0
    for part in _home(shell, word):
        values = await _part(shell, part)
        out.append(" ".join(values) if isinstance(values, list) else values)
        size += len(out[-1])
        shell.relatives.holding.check(size)
    shell.pace.work(size)
    return "".join(out)


async def pattern(shell: Shell, word: Word) -> str:
    """A word as a pattern in which quoted characters stand for themselves."""
    out: list[str] = []
    for part in word:
        values = await _part(shell, part)
        value = " ".join(values) if isinstance(values, list) else values
        out.append(re.sub(r"([*?\[])", r"[\1]", value) if part.quoted else value)
    return "".join(out)


def _home(shell: Shell, word: Word) -> Word:
    first = word[0] if word else None
    if isinstance(first, Literal) and not first.quoted and (first.text == "~" or first.text.startswith("~/")):
        return [Literal(shell.get("HOME") or "/", quoted=True), Literal(first.text[1:]), *word[1:]]
    return word


async def _split(shell: Shell, word: Word) -> list[list[Piece]]:
    """One word as fields, each a list of pieces."""
    result: list[list[Piece]] = []
    current: list[Piece] = []
    started = False
    separators = shell.get("IFS")
    separators = " \t\n" if separators is None else separators
    for part in _home(shell, word):
        values = await _part(shell, part)
        if isinstance(values, list):
            for index, value in enumerate(values):
                if index:
                    result.append(current)
                    current = []
                current.append((value, True))
            started = started or bool(values)
            continue
        if isinstance(part, Literal) or part.quoted:
            current.append((values, part.quoted))
            started = True
            continue
        shell.relatives.holding.check(sum(values.count(each) for each in separators) * _FIELD)
        pieces = re.split(f"[{re.escape(separators)}]+", values) if separators else [values]
        for index, piece in enumerate(pieces):
            if index:
                if started:
                    result.append(current)
                current, started = [], False
            if piece:
                current.append((piece, False))
                started = True
    if started:
        result.append(current)
    return result


async def _part(shell: Shell, part: Part) -> str | list[str]:
    if isinstance(part, Literal):
        return part.text
    if isinstance(part, Substitution):
        return (await shell.substitute(part.script)).rstrip("\n")
    if isinstance(part, Arithmetic):
        expression = await text(shell, part.expression)
        try:
            return str(await arithmetic(shell, expression))
        except ArithmeticFailure as error:
            raise ExpansionError("divide by zero" if "zero" in str(error) else "arithmetic syntax error") from None
    return await _parameter(shell, part)


async def arithmetic(shell: Shell, expression: str) -> int:
    """`$(( ))`, assignments included."""
    assigned = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*([-+*/%]?)=(?!=)(.*)", expression)
    if assigned:
        value = evaluate(assigned[3], lambda name: shell.get(name) or "0")
        if assigned[2]:
            value = evaluate(f"({shell.get(assigned[1]) or 0}){assigned[2]}({value})", lambda name: "0")
        shell.set(assigned[1], str(value))
        return value
    step = re.fullmatch(r"\s*(?:(\+\+|--)([A-Za-z_]\w*)|([A-Za-z_]\w*)(\+\+|--))\s*", expression)
    if step:
        name = step[2] or step[3]
        old = evaluate(shell.get(name) or "0", lambda name: "0")
        new = old + (1 if "+" in (step[1] or step[4]) else -1)
        shell.set(name, str(new))
        return new if step[1] else old
    return evaluate(expression, lambda name: shell.get(name) or "0")


async def _parameter(shell: Shell, part: Parameter) -> str | list[str]:
    if part.name in "@*" and part.name:
        values = list(shell.arguments[1:])
        if part.operator == "length":
            return str(len(values))
        if part.name == "@" and part.quoted:
            return values
        return " ".join(values)
    value = shell.get(part.name)
    operator = part.operator
    if operator == "length":
        return str(len(value or ""))
    empty = value is None or (operator.startswith(":") and value == "")
    word = part.word or []
    if operator in (":-", "-"):
        return await text(shell, word) if empty else value or ""
    if operator in (":+", "+"):
        return "" if empty else await text(shell, word)
    if operator in (":=", "="):
        if empty:
            value = await text(shell, word)
            shell.set(part.name, value)
        return value or ""
    if operator in (":?", "?"):
        if empty:
            message = await text(shell, word)
            raise ExpansionError(f"{part.name}: {message or 'parameter not set or null'}")
        return value or ""
    try:
        return await _edited(shell, value or "", operator, word)
    except ArithmeticFailure:
        raise ExpansionError("arithmetic syntax error") from None


async def _edited(shell: Shell, value: str, operator: str, word: Word) -> str:
    if operator in ("#", "##", "%", "%%"):
        wanted = await pattern(shell, word)
        sizes = range(len(value) + 1)
        for size in sizes if operator in ("#", "%%") else reversed(sizes):
            if operator.startswith("#") and fnmatch.fnmatchcase(value[:size], wanted):
                return value[size:]
            if operator.startswith("%") and fnmatch.fnmatchcase(value[size:], wanted):
                return value[:size]
            shell.pace.work(size if operator.startswith("#") else len(value) - size)
            await shell.pace.rest()
        return value
    if operator in ("/", "//"):
        old, _, new = (await text(shell, word)).partition("/")
        if not old:
            return value
        times = value.count(old) if operator == "//" else 1
        shell.relatives.holding.check(len(value) + times * max(0, len(new) - len(old)))
        return value.replace(old, new, times)
    if operator == ":":
        start, _, length = (await text(shell, word)).partition(":")
        begin = evaluate(start or "0", lambda name: shell.get(name) or "0")
        rest = value[begin:]
        return rest[: evaluate(length, lambda name: shell.get(name) or "0")] if length else rest
    return value


def _glob(shell: Shell, pieces: list[Piece]) -> list[str]:
    plain = "".join(piece for piece, _ in pieces)
    if not any(not quoted and any(char in piece for char in "*?[") for piece, quoted in pieces):
        return [plain]
    wanted = "".join(re.sub(r"([*?\[])", r"[\1]", piece) if quoted else piece for piece, quoted in pieces)
    return _matches(shell, wanted) or [plain]


def _matches(shell: Shell, wanted: str) -> list[str]:
    found = ["/"] if wanted.startswith("/") else [""]
    for step in [part for part in wanted.split("/") if part]:
        following: list[str] = []
        for folder in found:
            prefix = folder if folder in ("", "/") or folder.endswith("/") else f"{folder}/"
            if not any(char in step for char in "*?["):
                if shell.process.files.exists(f"{prefix}{step}", shell.cwd):
                    following.append(f"{prefix}{step}")
                continue
            try:
                entries = shell.process.files.list(folder or ".", shell.cwd, who=shell.process.identity)
            except FileError:
                continue
            hidden = step.startswith(".")
            following += [
                f"{prefix}{name}"
                for name, _ in entries
                if fnmatch.fnmatchcase(name, step) and (hidden or not name.startswith("."))
            ]
        found = following
    return sorted(found)
