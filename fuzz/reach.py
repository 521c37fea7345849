"""How far inputs get: lines of a reader's modules that a sample of them runs. One whose inputs all die at the door
finds nothing."""

from __future__ import annotations

import contextlib
import dis
import sys
import tempfile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from fuzz.running import made
from fuzz.targets import TARGETS

SOURCE = str(Path(__file__).resolve().parent.parent / "src")
SHARE = 0.15
"""Modules of which less than this is run are only passed by."""


def reach(name: str, numbers: range) -> str:
    """The modules that these inputs run, with the share of the lines of their functions."""
    ran: dict[str, set[int]] = {}
    codes: dict[str, set[CodeType]] = {}

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            ran[frame.f_code.co_filename].add(frame.f_lineno)
        return local

    def called(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if (
            not code.co_filename.startswith(SOURCE)
            or not code.co_filename.endswith(".py")
            or code.co_name == "<module>"
        ):
            return None
        ran.setdefault(code.co_filename, set())
        codes.setdefault(code.co_filename, set()).add(code)
        return local

    target, accepted = TARGETS[name], 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number in numbers:
            place = Path(folder) / str(number)
            place.mkdir()
            data = made(name, number)
            sys.settrace(called)
            try:
                with contextlib.suppress(*target.errors):
                    target.read(data, place)
                    accepted += 1
            finally:
                sys.settrace(None)
    rows = []
    for file, lines in ran.items():
        known = _lines(Path(file))
        share = len(lines & known) / len(known) if known else 0
        if share >= SHARE:
            rows.append(f"  {share:4.0%} of {Path(file).relative_to(SOURCE)}")
    return f"{accepted} of {len(numbers)} accepted\n" + "\n".join(sorted(rows, key=lambda row: row[10:]))


def _lines(file: Path) -> set[int]:
    """The lines inside of functions."""
    found: set[int] = set()
    waiting = [compile(file.read_bytes(), str(file), "exec")]
    while waiting:
        code = waiting.pop()
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
        if code.co_flags & 2:  # CO_NEWLOCALS: a function, not a module or a class
            found |= {line for _, line in dis.findlinestarts(code) if line and line != code.co_firstlineno}
    return found
