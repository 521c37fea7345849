"""Files in Windows containers: written and read by the containers themselves, compared to the last letter."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from winready.checks.context import Context
from winready.cluster.commands import lines, read_file, remove_folder, write_file
from winready.cluster.errors import ClusterError
from winready.cluster.failures import CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import CONTAINER, Pod
from winready.cluster.probes import Try, describe


def marker() -> str:
    """A text that was never written anywhere before; it ends in a letter, as `write_file` wants it."""
    return f"winready-{secrets.token_hex(6)}z"


async def expect_lines(
    ctx: Context,
    pod: Pod,
    path: str,
    wanted: Sequence[str],
    what: str,
    *,
    window: float = 0.0,
    container: str = CONTAINER,
    hint: str = "",
) -> None:
    """Require that a file holds exactly these lines, within ``window`` cluster seconds."""
    command = read_file(pod.os, path)
    expected = " | ".join(wanted)

    async def attempt() -> Try:
        result = await pod.run(command, container=container)
        found = lines(result.stdout)
        error = result.stderr.decode(errors="replace").strip()
        seen = " | ".join(found) if result.exit_code == 0 else error or f"exit code {result.exit_code}"
        return Try(result.exit_code == 0 and found == list(wanted), seen or "nothing", result)

    title = f"{_who(pod, container)} reads {what}"
    found = await ctx.probe.until(
        title, attempt, window=window, pod=pod, command=command, expected=expected, target=path
    )
    if not found.ok:
        waited = f" after {window:g} s" if window else ""
        raise CheckFailed(
            f"{describe(pod)} does not see {what} in {path}{waited}: {found.seen}",
            expected=expected,
            observed=found.seen,
            next_step=hint or f"look at the kubelet's log and the volumes of the pod on node {pod.node.name}",
        )


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

    async def attempt() -> Try:
        result = await pod.run(command, container=container, again=False)
        error = result.stderr.decode(errors="replace").strip()
        return Try(result.exit_code == 0, error or f"exit code {result.exit_code}", result)

    done = await ctx.probe.until(
        f"{_who(pod, container)} writes {what}",
        attempt,
        window=ctx.times.sharing_retry,
        pod=pod,
        command=command,
        expected="exit code 0",
        target=path,
    )
    if not done.ok:
        raise CheckFailed(
            f"{describe(pod)} cannot write {what} to {path}: {done.seen}",
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
        await _remove(ctx, host, path)


async def _remove(ctx: Context, host: Pod, path: str) -> None:
    place = f"folder {path} on node {host.node.name}"
    try:
        result = await host.run(remove_folder(path))
        gone = await host.run(["cmd", "/c", "if", "exist", path, "exit", "1"])
        # The folders above are shared by all checks: the last one to leave finds them empty.
        for above in (ctx.world.host_folder, ctx.world.host_folder.rpartition("\\")[0]):
            await host.run(["cmd", "/c", "rmdir", above])
        if gone.exit_code:
            ctx.world.leftovers.append(f"{place} ({lines(result.stderr or result.stdout) or 'no reason given'})")
    except ClusterError as error:
        ctx.world.leftovers.append(f"{place} ({error.message})")


def _who(pod: Pod, container: str) -> str:
    return pod.name if container == CONTAINER else f"{pod.name}/{container}"
