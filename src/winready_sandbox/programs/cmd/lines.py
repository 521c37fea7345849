"""Lines of batch files, and the name at the start of a command."""

from __future__ import annotations

import re
from collections.abc import Sequence


def logical_line(lines: Sequence[str], at: int) -> tuple[str, int]:
    """One line, or several as long as a parenthesis is open or a caret continues it."""
    text = lines[at]
    at += 1
    while at < len(lines) and (_open_parentheses(text) > 0 or (text.endswith("^") and not text.endswith("^^"))):
        text = f"{text}\n{lines[at]}"
        at += 1
    return text, at


def _open_parentheses(text: str) -> int:
    depth = 0
    quoted = False
    starts = True
    for char in text:
        if char == '"':
            quoted = not quoted
        elif not quoted and char == "(" and (starts or depth):
            depth += 1
        elif not quoted and char == ")" and depth:
            depth -= 1
        starts = char in "& \t\n(|" and (starts or char in "&|\n(" or bool(re.search(r"(?i)\b(do|else|if)\b", text)))
    return depth


def label_position(lines: Sequence[str], label: str) -> int:
    """The line after a label, or -1."""
    wanted = label.lstrip(":").strip().lower()
    if wanted == "eof":
        return len(lines)
    for index, line in enumerate(lines):
        text = line.strip()
        if text.startswith(":") and text[1:].split(" ")[0].lower() == wanted:
            return index + 1
    return -1


def split_name(text: str) -> tuple[str, str]:
    """The command's name and the rest of its text."""
    if text.startswith('"'):
        end = text.find('"', 1)
        if end > 0:
            return text[1:end], text[end + 1 :]
    match = re.match(r"[^\s,;=]+", text)
    name = match[0] if match else text
    return name, text[len(name) :]
