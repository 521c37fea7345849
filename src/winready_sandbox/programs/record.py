"""What containers execute, written down for whoever asks.

`WINREADY_SANDBOX_RECORD` names a file that gets one line of JSON for everything that the containers of a namespace
execute for the first time: programs, applets, built-ins, cmdlets, and the options they are given. Without it nothing
is kept. `tools/fidelity.py` reads it, to say what Kubernetes' own tests need of the simulated programs.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from winready_sandbox.machine.process import Process, Program

VARIABLE = "WINREADY_SANDBOX_RECORD"


class Record:
    """A file of what was executed, each thing once per namespace."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: set[tuple[str, str, str, str]] = set()

    def note(self, pod: str, kind: str, name: str, options: Iterable[str]) -> None:
        """Write down what is new of this."""
        namespace = pod.partition("/")[0]
        fresh = {(namespace, kind, name, option) for option in ("", *options)} - self._known
        if not fresh:
            return
        self._known |= fresh
        found = sorted(option for _, _, _, option in fresh if option)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"namespace": namespace, "kind": kind, "name": name, "options": found}) + "\n")


def flags(words: Iterable[str]) -> list[str]:
    """The options among arguments, as most programs write them: `-x`, `--name`, without their values."""
    return [word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z#0]", word)]


def switches(words: Iterable[str]) -> list[str]:
    """The options among arguments, as tools of Windows write them: `/x`, in small letters and without their values."""
    return [word.partition(":")[0].lower() for word in words if re.match(r"/[A-Za-z]", word)]


_record = Record(Path(os.environ[VARIABLE])) if VARIABLE in os.environ else None


def note(process: Process, kind: str, name: str, options: Iterable[str] = ()) -> None:
    """A process has executed this."""
    if _record is not None:
        _record.note(process.container.pod, kind, name, options)


def noted(programs: dict[str, Program]) -> dict[str, Program]:
    """Programs that note their own start; those with tables of options note these by themselves."""

    def one(name: str, program: Program) -> Program:
        async def run(process: Process) -> int:
            words = process.argv[1:] if name.endswith(".exe") else []
            note(process, "program", name, [*flags(words), *switches(words)])
            return await program(process)

        return run

    return {name: one(name, program) for name, program in programs.items()} if _record is not None else programs
