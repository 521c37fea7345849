"""Windows command lines: one text, which each program takes apart by itself."""

from __future__ import annotations

from collections.abc import Iterable


def quote(argument: str) -> str:
    """One argument, escaped the way hcsshim and Go do it."""
    if argument and not any(char in argument for char in ' \t"'):
        return argument
    text: list[str] = []
    backslashes = 0
    for char in argument:
        if char == "\\":
            backslashes += 1
        elif char == '"':
            text.append("\\" * (backslashes * 2 + 1) + '"')
            backslashes = 0
        else:
            text.append("\\" * backslashes + char)
            backslashes = 0
    return '"' + "".join(text) + "\\" * (backslashes * 2) + '"'


def join(arguments: Iterable[str]) -> str:
    """Arguments as one command line."""
    return " ".join(quote(argument) for argument in arguments)


def split(line: str) -> list[str]:
    """A command line as arguments, by the rules of CommandLineToArgvW."""
    arguments: list[str] = []
    index, size = 0, len(line)
    while index < size:
        while index < size and line[index] in " \t":
            index += 1
        if index >= size:
            break
        text: list[str] = []
        quoted = False
        while index < size and (quoted or line[index] not in " \t"):
            char = line[index]
            if char == "\\":
                start = index
                while index < size and line[index] == "\\":
                    index += 1
                count = index - start
                if index < size and line[index] == '"':
                    text.append("\\" * (count // 2))
                    if count % 2:
                        text.append('"')
                        index += 1
                else:
                    text.append("\\" * count)
                continue
            if char == '"':
                if quoted and index + 1 < size and line[index + 1] == '"':
                    text.append('"')
                    index += 1
                else:
                    quoted = not quoted
            else:
                text.append(char)
            index += 1
        arguments.append("".join(text))
    return arguments
