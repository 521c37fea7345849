"""Files in Windows containers: written and read by the containers themselves, compared to the last letter.

Files are small and large, one command reads them all, and what differs is told by file and line.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from winready.checks.context import Context
from winready.cluster.commands import lines, read_file, read_shown, remove_folder, show_files, write_file, write_lines
from winready.cluster.errors import ClusterError, ExecFailed
from winready.cluster.execution import Execution
from winready.cluster.failures import CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import CONTAINER, Pod
from winready.cluster.probes import Try, describe

REMOVALS = 3
"""How often a folder is removed that is there again."""
LARGE = 100
"""Lines of a large file: with some hundred letters in each it is larger than what fits into a page or two."""
Files = Mapping[str, Sequence[str]]
"""The lines that files must have, by path; no lines: the file must not be there."""


def marker() -> str:
    """A text that was never written anywhere before; it ends in a letter, as `write_file` wants it."""
    return f"winready-{random.randbytes(6).hex()}z"


def long_marker() -> str:
    """The same, for the lines of a large file."""
    return f"{marker()} {'large ' * 15}file"


async def read(pod: Pod, paths: Sequence[str], container: str = CONTAINER) -> tuple[dict[str, list[str]], Execution]:
    """The lines of several files of a container as one command saw them."""
    result = await pod.run(show_files(paths), container=container)
    return read_shown(result.stdout), result


def difference(path: str, found: Sequence[str], wanted: Sequence[str]) -> str:
    """How the lines of a file differ from what they must be; empty when they do not."""
    if list(found) == list(wanted):
        return ""
    if not found:
        return f"{path} is empty or not there"
    if not wanted:
        return f"{path} is there: {_short(found[0])}"
    for number, (line, right) in enumerate(zip(found, wanted, strict=False), 1):
        if line != right:
            return f"line {number} of {path} is {_short(line)}, not {_short(right)}"
    return f"{path} has {len(found)} lines, not {len(wanted)}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def differences(found: Mapping[str, Sequence[str]], wanted: Files, result: Execution) -> str:
    """How files differ from what they must be, with what the command complained about."""
    told = [text for path, right in wanted.items() if (text := difference(path, found.get(path, []), right))]
    if not told:
        return ""
    error = lines(result.stderr)
    return "; ".join(told[:3]) + (f" ({error[-1]})" if error and result.exit_code else "")


async def expect_files(
    ctx: Context,
    pod: Pod,
    wanted: Files,
    what: str,
    *,
    window: float = 0.0,
    container: str = CONTAINER,
    hint: str = "",
) -> None:
    """Require that files hold exactly these lines, within ``window`` cluster seconds."""

    async def attempt() -> Try:
        found, result = await read(pod, list(wanted), container)
        wrong = differences(found, wanted, result)
        return Try(not wrong, wrong or _whole(wanted), result)

    done = await ctx.probe.until(
        f"{who(pod, container)} reads {what}",
        attempt,
        window=window,
        pod=pod,
        command=show_files(list(wanted)),
        expected=_whole(wanted),
        target=", ".join(wanted),
    )
    if not done.ok:
        waited = f" after {window:g} s" if window else ""
        raise CheckFailed(
            f"{within(pod, container)} does not see {what}{waited}: {done.seen}",
            expected=_whole(wanted),
            observed=done.seen,
            next_step=hint or f"look at the kubelet's log and the volumes of the pod on node {pod.node.name}",
        )


def _whole(wanted: Files) -> str:
    count = sum(len(right) for right in wanted.values())
    return f"{len(wanted)} files with {count} lines in all, as written"


async def write_line(
    ctx: Context,
    pod: Pod,
    path: str,
    text: str,
    what: str,
    *,
    append: bool = False,
    container: str = CONTAINER,
) -> None:
    """Require that a container can write a line; a file that is open elsewhere is tried again."""
    command = write_file(pod.os, path, text, append=append)
    await _write(ctx, pod, path, command, what, container, only_once=text if append else "")


async def write_large(ctx: Context, pod: Pod, path: str, text: str, what: str, *, container: str = CONTAINER) -> None:
    """The same for a large file, whose lines are numbered."""
    await _write(ctx, pod, path, write_lines(path, text, LARGE), what, container)


async def _write(
    ctx: Context, pod: Pod, path: str, command: list[str], what: str, container: str, only_once: str = ""
) -> None:
    async def attempt() -> Try:
        try:
            result = await pod.run(command, container=container, again=not only_once)
        except ExecFailed:
            if not only_once:
                raise
            # Whether the line was added before the stream broke, only the file can tell.
            await ctx.timing.pause(ctx.times.poll)
            result = await pod.run(read_file(pod.os, path), container=container)
            return Try(only_once in lines(result.stdout), "the stream broke before it was written", result)
        error = result.stderr.decode(errors="replace").strip()
        return Try(result.exit_code == 0, error or f"exit code {result.exit_code}", result)

    done = await ctx.probe.until(
        f"{who(pod, container)} writes {what}",
        attempt,
        window=ctx.times.sharing_retry,
        pod=pod,
        command=command,
        expected="exit code 0",
        target=path,
    )
    if not done.ok:
        raise CheckFailed(
            f"{within(pod, container)} cannot write {what} to {path}: {done.seen}",
            expected="the file is written",
            observed=done.seen,
            next_step=f"look at the access rights of that folder on node {pod.node.name}",
        )


@asynccontextmanager
async def node_folder(ctx: Context, node: Node, name: str) -> AsyncIterator[tuple[str, Pod]]:
    """A folder on a node, with the pod that sees it there; removed at the end, or said to be left behind."""
    host = await ctx.host(node)
    path = f"{ctx.world.host_folder}\\{name}"
    try:
        yield path, host
    finally:
        await remove_from_node(ctx, host, path)


async def remove_from_node(ctx: Context, host: Pod, path: str) -> None:
    """Remove a folder of a node, and those above it once they are empty; one that stays is said to be left behind."""
    place = f"folder {path} on node {host.node.name}"
    try:
        for _ in range(REMOVALS):
            result = await host.run(remove_folder(path))
            gone = await host.run(["cmd", "/c", "if", "exist", path, "exit", "1"])
            if not gone.exit_code:
                break
            # A pod that was just starting when the run was interrupted makes its folder anew.
            await ctx.timing.pause(ctx.times.poll)
        # The folders above are shared by all checks: the last one to leave finds them empty.
        for above in (ctx.world.host_folder, ctx.world.host_folder.rpartition("\\")[0]):
            await host.run(["cmd", "/c", "rmdir", above])
        if gone.exit_code:
            ctx.world.leftovers.append(f"{place} ({lines(result.stderr or result.stdout) or 'no reason given'})")
    except ClusterError as error:
        ctx.world.leftovers.append(f"{place} ({error.message})")


def who(pod: Pod, container: str) -> str:
    """A container as titles of probes name it."""
    return pod.name if container == CONTAINER else f"{pod.name}/{container}"


def within(pod: Pod, container: str) -> str:
    """A container as reasons name it."""
    return describe(pod) if container == CONTAINER else f"container {container} of {describe(pod)}"
