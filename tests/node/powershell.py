"""A reader of PowerShell for tests: does it parse, and is it the language that 5.1 and 7 share?"""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter_pwsh
from tree_sitter import Language, Node, Parser

_PARSER = Parser(Language(tree_sitter_pwsh.language()))
_STRINGS = {"string_literal", "expandable_string_literal", "expandable_here_string_literal"}

FORBIDDEN_CODE = {
    r"&&|\|\|": "pipeline chains are of PowerShell 7",
    r"\?\?=?": "?? is of PowerShell 7",
    r"\?\.(?!\d)|\?\[": "?. and ?[ are of PowerShell 7",
    r"(?i)(?<![\w-])(?:class|enum)\s+\w+\s*[:{]": "classes differ between versions",
    r"(?i)\bclean\s*\{": "clean blocks are of PowerShell 7",
    r"(?i)-parallel\b": "-Parallel is of PowerShell 7",
    r"(?i)-AsHashtable\b": "ConvertFrom-Json has no -AsHashtable in 5.1",
    r"(?i)-AsByteStream\b": "-AsByteStream is of PowerShell 7",
    r"(?i)-SkipCertificateCheck\b": "of PowerShell 7, and never right",
    r"(?i)utf8NoBOM": "this encoding is of PowerShell 7",
    r"(?i)\b(?:Remove-Service|Test-Json|Join-String|Get-Error|Get-Uptime)\b": "a cmdlet of PowerShell 7",
    r"(?i)Set-Service\b[^\n|;]*-BinaryPathName": "Set-Service has no -BinaryPathName in 5.1",
    r"(?i)\$(?:IsWindows|IsLinux|IsMacOS|IsCoreCLR|PSNativeCommandUseErrorActionPreference)\b": "not set in 5.1",
    r"(?i)\b(?:Invoke-Expression|iex)\b|\[scriptblock\]::Create": "text is never run as code",
    r"(?i)\[(?:System\.)?IO\.Path\]::Join\(": "Path.Join is not in .NET Framework",
    r"(?i)Join-Path\s+(?:-Path\s+)?\S+\s+(?:-ChildPath\s+)?\S+\s+[^\s|;)\-]": "Join-Path takes two parts in 5.1",
    r"(?i)\[(?:System\.)?IO\.File\]::Move\([^()]*,[^()]*,": "File.Move does not overwrite in .NET Framework",
    r"(?i)Get-(?:Wmi|Cim)\w+": "the record of a machine must not need CIM",
}  # fmt: skip
"""Searched for outside of comments and strings."""
_COLON = re.compile(r"\$(?!(?:env|script|global|local|private|using|function|variable):)(\w+):(?!:)", re.IGNORECASE)


def parse(source: bytes) -> Node:
    """The tree of a script."""
    return _PARSER.parse(source).root_node


def walk(node: Node) -> Iterator[Node]:
    """A node and everything below it."""
    yield node
    for child in node.children:
        yield from walk(child)


def problems(source: bytes) -> list[str]:
    """Everything that is wrong with a script, each with its line."""
    found = [
        f"line {source[: match.start()].count(10) + 1}: not ASCII" for match in re.finditer(rb"[^\t\n -~]", source)
    ]
    root = parse(source)
    for node in walk(root):
        line = node.start_point[0] + 1
        if node.type == "ERROR" or node.is_missing:
            found.append(f"line {line}: does not parse")
        if node.type == "ternary_expression":
            found.append(f"line {line}: the conditional operator is of PowerShell 7")
        if node.type == "try_statement" and not {"catch_clauses", "finally_clause"} & {c.type for c in node.children}:
            found.append(f"line {line}: try without catch and finally")
        if node.type in ("expandable_string_literal", "expandable_here_string_literal"):
            text = source[node.start_byte : node.end_byte].decode()
            found += [f"line {line}: ${match[1]}: is read as a scope" for match in _COLON.finditer(text)]
    code = _code(source, root)
    for form, why in FORBIDDEN_CODE.items():
        for match in re.finditer(form, code):
            found.append(f"line {code[: match.start()].count(chr(10)) + 1}: {why}: {match[0].strip()!r}")
    return found


def _code(source: bytes, root: Node) -> str:
    """The source with comments and strings blanked, lines kept; code inside of strings stays."""
    text = bytearray(source)
    for node in walk(root):
        if node.type == "comment" or (node.type in _STRINGS and not _has_code(node)):
            _blank(text, node, keep=0 if node.type == "comment" else 1)
    return text.decode("ascii", errors="replace")


def _has_code(node: Node) -> bool:
    return any(child.type == "sub_expression" for child in walk(node))


def _blank(text: bytearray, node: Node, keep: int) -> None:
    for index in range(node.start_byte + keep, node.end_byte - keep):
        if text[index] != 10:
            text[index] = ord("_") if keep else ord(" ")


def functions(source: bytes) -> dict[str, Node]:
    """The functions that a script defines, by name in small letters."""
    found = {}
    for node in walk(parse(source)):
        if node.type == "function_statement":
            name = next(child for child in node.children if child.type == "function_name")
            found[source[name.start_byte : name.end_byte].decode().lower()] = node
    return found


def commands(source: bytes) -> set[str]:
    """The commands that a script calls by name, in small letters."""
    found = set()
    for node in walk(parse(source)):
        if node.type == "command_name":
            found.add(source[node.start_byte : node.end_byte].decode().lower())
    return found


def calls(source: bytes) -> Iterator[tuple[str, int, list[str]]]:
    """Every call by name: the command, its line, the names of the parameters that it is given."""
    for node in walk(parse(source)):
        if node.type != "command":
            continue
        name = next((child for child in node.children if child.type == "command_name"), None)
        if name is None:
            continue
        given = []
        for elements in (child for child in node.children if child.type == "command_elements"):
            for child in elements.children:
                if child.type == "command_parameter":
                    text = source[child.start_byte : child.end_byte].decode()
                    given.append(text.lstrip("-").partition(":")[0].lower())
        yield source[name.start_byte : name.end_byte].decode().lower(), node.start_point[0] + 1, given


def parameters_of(source: bytes, function: Node) -> set[str]:
    """The names of a function's parameters, in small letters."""
    block = next((node for node in walk(function) if node.type == "param_block"), None)
    if block is None:
        return set()
    found = set()
    for node in walk(block):
        if node.type == "script_parameter":
            variable = next(child for child in node.children if child.type == "variable")
            found.add(source[variable.start_byte : variable.end_byte].decode().lstrip("$").lower())
    return found


def unknown_variables(source: bytes, scope: Node, known: set[str]) -> set[str]:
    """Variables that are read below a node and never set there."""
    read: set[str] = set()
    written: set[str] = set()
    for node in walk(scope):
        if node.type != "variable":
            continue
        name = source[node.start_byte : node.end_byte].decode().lower().strip("$@{}")
        if ":" in name:
            continue
        (written if _is_set(node) else read).add(name)
    return read - written - known


def _is_set(node: Node) -> bool:
    """Whether it stands left of an assignment, is a parameter, or is what a loop counts with."""
    if node.parent is not None and node.parent.type == "script_parameter":
        return True
    if node.parent is not None and node.parent.type == "foreach_statement":
        return node.parent.children.index(node) <= 3
    above = node.parent
    while above is not None and above.start_byte == node.start_byte and above.end_byte == node.end_byte:
        if above.type == "left_assignment_expression":
            return True
        above = above.parent
    while above is not None and above.start_byte == node.start_byte:
        if above.type == "left_assignment_expression":
            return True
        above = above.parent
    return False
