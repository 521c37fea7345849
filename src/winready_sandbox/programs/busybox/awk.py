"""A small awk: patterns, `print` and `printf` of fields, texts and counts; what it cannot do it refuses."""

from __future__ import annotations

import re

from winready_sandbox.programs.busybox import printing
from winready_sandbox.programs.busybox.tool import Applet, Tool

_RULE = re.compile(r"\s*(BEGIN|END|/(?:[^/\\]|\\.)*/|[^{/]+?)?\s*(?:\{([^}]*)\})?\s*;?", re.DOTALL)
_TERM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\$\(?NF(?:-\d+)?\)?|\$\d+|NF|NR|\d+(?:\.\d+)?|,)')
_TEST = re.compile(r"(\$\d+|\$NF|NR|NF)\s*(==|!=|>=|<=|>|<|~)\s*(.+)")


class AwkError(Exception):
    """The program uses something that this awk does not know."""


class _Line:
    """One input line with its fields."""

    def __init__(self, text: str, number: int, separator: str | None) -> None:
        self.text = text
        self.number = number
        plain = separator is None or separator == " "
        self.fields = (
            text.split()
            if plain
            else re.split(re.escape(separator or "") if separator == "." else separator or "", text)
        )

    def value(self, term: str) -> str:
        """What a term stands for."""
        if term.startswith('"'):
            return printing.unescape(term[1:-1])[0]
        if term in ("NF", "NR"):
            return str(len(self.fields) if term == "NF" else self.number)
        if not term.startswith("$"):
            return term
        back = re.fullmatch(r"\$\(?NF(?:-(\d+))?\)?", term)
        index = len(self.fields) - int(back[1] or 0) if back else int(term[1:])
        if index == 0:
            return self.text
        return self.fields[index - 1] if 0 < index <= len(self.fields) else ""


def _printed(action: str, line: _Line) -> str:
    out: list[str] = []
    for statement in filter(None, (part.strip() for part in re.split(r";(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", action))):
        command, _, rest = statement.partition(" ") if " " in statement else (statement, "", "")
        if command not in ("print", "printf"):
            raise AwkError(statement)
        groups: list[list[str]] = [[]]
        at = 0
        while at < len(rest.rstrip()):
            match = _TERM.match(rest, at)
            if not match:
                raise AwkError(rest[at:])
            at = match.end()
            if match[1] == ",":
                groups.append([])
            else:
                groups[-1].append(line.value(match[1]))
        values = ["".join(group) for group in groups]
        if command == "print":
            out.append((" ".join(values) if rest.strip() else line.text) + "\n")
        else:
            out.append(printing.printf(values))
    return "".join(out)


def _applies(pattern: str, line: _Line) -> bool:
    if not pattern:
        return True
    if pattern.startswith("/"):
        return re.search(pattern[1:-1], line.text) is not None
    match = _TEST.fullmatch(pattern.strip())
    if not match:
        raise AwkError(pattern)
    left, right = line.value(match[1]), match[3].strip()
    if match[2] == "~":
        return re.search(right.strip("/"), left) is not None
    wanted = line.value(right)
    numbers = re.fullmatch(r"-?\d+(\.\d+)?", left) and re.fullmatch(r"-?\d+(\.\d+)?", wanted)
    order = (
        (float(left) > float(wanted)) - (float(left) < float(wanted)) if numbers else (left > wanted) - (left < wanted)
    )
    return {"==": order == 0, "!=": order != 0, ">": order > 0, "<": order < 0, ">=": order >= 0, "<=": order <= 0}[
        match[2]
    ]


async def awk(tool: Tool) -> int:
    """Run a program over lines."""
    operands = tool.options("F:v:")
    if not operands:
        tool.usage("no program")
    program, names = operands[0], operands[1:]
    rules = [match for match in _RULE.finditer(program) if match[0].strip()]
    separator = tool.flags.get("F")
    lines = [_Line(text, number, separator) for number, text in enumerate(await tool.lines(names), 1)]
    last = lines[-1] if lines else _Line("", 0, separator)
    try:
        for rule in rules:
            if rule[1] == "BEGIN":
                tool.out(_printed(rule[2] or "", _Line("", 0, separator)))
        for line in lines:
            for rule in rules:
                if rule[1] not in ("BEGIN", "END") and _applies(rule[1] or "", line):
                    tool.out(_printed(rule[2] if rule[2] is not None else "print", line))
        for rule in rules:
            if rule[1] == "END":
                tool.out(_printed(rule[2] or "", last))
    except AwkError as error:
        tool.usage(f"cmd. line:1: Unexpected token near '{error}'")
    return tool.code


APPLETS: dict[str, Applet] = {"awk": awk}
