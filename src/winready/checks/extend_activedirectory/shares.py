"""What pods do with shares and folders: list, write, read and delete, by commands that every Windows has."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from winready.checks.context import Context
from winready.checks.hosting import said
from winready.cluster.commands import lines, list_folder, numbered, read_file, write_lines
from winready.cluster.errors import ClusterError
from winready.cluster.execution import Execution
from winready.cluster.pods import CONTAINER, Pod
from winready.cluster.probes import Try

LINES = 200
"""Some kilobytes: more than one packet."""
LOOKS = 5
"""Accesses of one command, a second apart: one that fails now and then does not fall between commands."""
SEEN = "winready-seen"
_WAIT = "ping -n 2 127.0.0.1 >nul 2>nul"
_DENIED = re.compile(
    r"access is denied|user ?name or password|password is not correct|logon failure|logon type|permission to access",
    re.IGNORECASE,
)
_ABSENT = ("network name cannot be found", "network path was not found", "cannot find the path")


@dataclass(frozen=True)
class Marked:
    """A file that somebody wrote, and what is in it."""

    path: str
    text: str

    @property
    def content(self) -> list[str]:
        """Its lines."""
        return numbered(self.text, LINES)


def new_file(ctx: Context, folder: str) -> Marked:
    """A file that nobody else has, in a share or a folder."""
    mark = random.randbytes(4).hex()
    return Marked(f"{folder}\\winready-{ctx.settings.run_id}-{mark}.txt", f"written-{mark}-by-winready")


def absent(result: Execution) -> bool:
    """Whether what was asked for is not there, rather than refused. Windows containers speak English."""
    return any(words in said(result).lower() for words in _ABSENT)


def denied(result: Execution) -> bool:
    """Whether somebody who knows what was asked for refused it."""
    return bool(_DENIED.search(said(result)))


def look_often(folder: str) -> str:
    """Look into a folder several times, and tell each time that it worked; what is in it stays there."""
    return f"for /l %i in (1,1,{LOOKS}) do @(dir {folder} >nul && echo {SEEN}& {_WAIT})"


def write_often(file: Marked) -> list[str]:
    """Write a line to a file and print the file, several times; see `often`."""
    return [
        "cmd",
        "/c",
        f"for /l %i in (1,1,{LOOKS}) do @((echo %i {file.text})>{file.path} && type {file.path}& {_WAIT})",
    ]


def often(file: Marked) -> list[str]:
    """The lines that `write_often` prints."""
    return numbered(file.text, LOOKS)


async def run(pod: Pod, command: list[str], container: str = CONTAINER, *, waits: int = 1) -> Execution:
    """Run a command that may have to wait for the domain, ``waits`` times."""
    return await pod.run(command, container=container, seconds=waits * pod.settings.timing.table.domain_answer)


def look_into(folder: str) -> list[str]:
    """List a folder. Not in its short form, which says the same of an empty one and of one that may not be listed."""
    return ["cmd", "/c", "dir", folder]


async def lists(pod: Pod, folder: str, container: str = CONTAINER) -> Try:
    """Look into a folder, once. What others keep there is no evidence, and is not told."""
    result = await run(pod, look_into(folder), container)
    if result.exit_code == 0:
        return Try(True, f"a list of {len(lines(result.stdout))} lines", result)
    return Try(False, said(result), result)


async def writes(pod: Pod, file: Marked, container: str = CONTAINER) -> Try:
    """Write a file, once."""
    result = await run(pod, write_lines(file.path, file.text, LINES), container)
    # Windows complains, and ends the line as if nothing had happened.
    return Try(result.exit_code == 0 and not result.stderr.strip(), said(result), result)


async def reads(pod: Pod, file: Marked, container: str = CONTAINER) -> Try:
    """Read a file, once; right when everything is there."""
    result = await run(pod, read_file("windows", file.path), container)
    found = lines(result.stdout)
    if found == file.content:
        return Try(True, f"{len(found)} lines as they were written", result)
    return Try(False, said(result) if result.exit_code else f"{len(found)} lines, not those that were written", result)


async def remove(ctx: Context, pods: list[Pod], files: list[Marked]) -> None:
    """Delete files, by the first of several pods that can; what stays is named."""
    for file in files:
        for pod in pods:
            if await _removed(pod, file):
                break
        else:
            ctx.world.leftovers.append(f"file {file.path}, written by {pods[0].name} on node {pods[0].node.name}")


async def _removed(pod: Pod, file: Marked) -> bool:
    try:
        await run(pod, ["cmd", "/c", "del", "/q", file.path])
        found = await run(pod, list_folder(file.path))
    except ClusterError:
        return False
    return found.exit_code != 0 and not denied(found)
