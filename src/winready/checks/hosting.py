"""Work on the Windows nodes themselves, in HostProcess containers: scripts, ports, servers."""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from winready.checks.context import Context
from winready.cluster.client import Object
from winready.cluster.commands import lines, powershell
from winready.cluster.errors import ClusterError, ExecFailed
from winready.cluster.evidence import bounded
from winready.cluster.execution import Execution
from winready.cluster.host_scripts import STOP, encoded
from winready.cluster.inventory import Node
from winready.cluster.pods import (
    Pod,
    from_the_start,
    host_process_spec,
    idle_container,
    pinned,
    pod_object,
    pod_spec,
)
from winready.cluster.probes import Try
from winready.cluster.resources import PODS

MOUNT_POINT = "%CONTAINER_SANDBOX_MOUNT_POINT%"
PORTS = range(20000, 30000)
"""Below the NodePorts and below the ports that Windows gives away by itself."""
_FIELD = re.compile(r"([a-z][a-z0-9 -]*)=(.*)")
_LISTENS = re.compile(r"\s(?:TCP|UDP)\s+(\S+):(\d{1,5})\s")


async def run_script(ctx: Context, host: Pod, script: str, *, again: bool = True) -> Execution:
    """Run a script on the node that a HostProcess pod is on."""
    return await host.run(encoded(script), seconds=ctx.times.host_script, again=again)


def fields(result: Execution) -> dict[str, str]:
    """What a script told in lines of the form ``name=value``; of several with one name the last."""
    found = (_FIELD.fullmatch(line) for line in lines(result.stdout))
    return {match[1]: match[2] for match in found if match}


def said(result: Execution) -> str:
    """What a script said, complaints first."""
    return bounded("; ".join([*lines(result.stderr), *lines(result.stdout)]), 300) or "nothing"


def record_script(ctx: Context, title: str, ok: bool, seen: str, host: Pod, script: str, expected: str) -> None:
    """Keep a script and what came of it as evidence, readable."""
    ctx.probe.record(title, Try(ok, seen), host, powershell(script), expected, host.node.name)


async def free_port(host: Pod) -> int:
    """A port that nothing on the node listens on."""
    taken = {port for _, port in await listeners(host)}
    return random.choice([port for port in PORTS if port not in taken])


async def listeners(host: Pod) -> set[tuple[str, int]]:
    """Addresses and ports that something on the node listens on."""
    result = await host.run(["netstat.exe", "-ano"])
    found = _LISTENS.findall(" " + result.stdout.decode(errors="replace").replace("\n", "\n "))
    return {(address, int(port)) for address, port in found}


async def host_server(ctx: Context, suffix: str, name: str, node: Node, port: int, user: str) -> Pod:
    """A HostProcess pod that answers with its name on a port of the node, run as a user.

    Not netexec, which runs commands for whoever asks: here these would be commands on the node. The program needs a
    name that Windows starts, in a folder that every user may make. No readiness probe: being reached is the question.
    """
    namespace = await ctx.world.namespace(suffix)
    folder = f"{MOUNT_POINT}\\winready"
    program = f"{folder}\\agnhost.exe"
    command = ["cmd", "/c", "mkdir", folder, "&&", "copy", f"{MOUNT_POINT}\\agnhost", program, "&&"]
    env = [{"name": f"SERVE_PORT_{port}", "value": name}]
    container = idle_container(ctx.settings, command=[*command, program, "porter"], args=[], env=env)
    spec: Object = host_process_spec(pinned(pod_spec("windows", [container], ctx.settings, [node]), node), user)
    await namespace.create(PODS, pod_object(name, spec, ctx.settings))
    return ctx.witnesses([await namespace.ready_pod(name)])[0]


@asynccontextmanager
async def open_firewall(ctx: Context, host: Pod, port: int) -> AsyncIterator[str]:
    """Let a TCP port of a node in through its firewall, with a rule of our own that goes again; why not, if not."""
    rule = f"winready-{ctx.settings.run_id}-{port}"
    words = f"-Name {rule} -DisplayName {rule} -Direction Inbound -Action Allow -Protocol TCP -LocalPort {port}"

    async def attempt() -> Execution:
        try:
            return await run_script(ctx, host, f"{STOP}New-NetFirewallRule {words} | Out-Null; exit 0", again=False)
        except ExecFailed:
            # It may have been made all the same; two of one name there cannot be.
            await run_script(ctx, host, _removal(rule))
            raise

    made = await from_the_start(attempt)
    refusal = said(made) if made.exit_code else ""
    ctx.evidence.fact(f"firewall rule {rule} on {host.node.name}", refusal or "added")
    try:
        yield refusal
    finally:
        if not refusal:
            await _close_firewall(ctx, host, rule)


def _removal(rule: str) -> str:
    return f"{STOP}Remove-NetFirewallRule -Name {rule}; exit 0"


async def _close_firewall(ctx: Context, host: Pod, rule: str) -> None:
    place = f"firewall rule {rule} on node {host.node.name}"
    try:
        result = await run_script(ctx, host, _removal(rule))
        if result.exit_code and not result.again:
            ctx.world.leftovers.append(f"{place} ({said(result)})")
    except ClusterError as error:
        ctx.world.leftovers.append(f"{place} ({error.message})")


def lines_of_json(result: Execution) -> list[dict[str, Any]]:
    """The objects that a script told, one in a line."""
    found = []
    for line in lines(result.stdout):
        with contextlib.suppress(ValueError, RecursionError):
            document = json.loads(line)
            if isinstance(document, dict):
                found.append(document)
    return found
