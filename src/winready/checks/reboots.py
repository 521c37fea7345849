"""Reboots of Windows nodes: each node once in a run, whoever needs it, and what came of it is known to everybody."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import msgspec

from winready.checks.context import Context
from winready.cluster.absence import REMOVED
from winready.cluster.activity import doing
from winready.cluster.bystanders import last_replicas
from winready.cluster.client import Object
from winready.cluster.commands import restart_computer
from winready.cluster.errors import ClusterError, NotFound
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node, read_node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import Pod, host_process_spec, idle_container, pinned, pod_object, pod_spec
from winready.cluster.probes import Try
from winready.cluster.resources import NODES, PODS
from winready.cluster.timing import now

EXPECTED = "another boot id, and Ready"
FROM_LINUX, TO_LINUX = "from Linux", "to Linux"
"""A Linux pod reaches a service over pods of the node, and pods of the node reach a Linux pod."""


@dataclass(frozen=True)
class Reboot:
    """A node before and after its reboot."""

    before: Node
    after: Node
    working: frozenset[str]
    """What is known to have worked before, of `FROM_LINUX`, `TO_LINUX` and what else was asked."""

    @property
    def replaced(self) -> bool:
        """Whether somebody put another node in its place."""
        return self.after.uid != self.before.uid

    @property
    def removed(self) -> bool:
        """Whether somebody took it out of the cluster."""
        return self.after.unusable == REMOVED

    @property
    def back(self) -> bool:
        """Whether it was rebooted and can be used again: the boot id proves that it happened."""
        return not self.replaced and self.after.boot_id != self.before.boot_id and not self.after.unusable

    @property
    def seen(self) -> str:
        """What was seen of it, for people."""
        return f"boot id {self.before.boot_id} before, {self.after.boot_id} after; {self.after.unusable or 'Ready'}"


async def spare_others(ctx: Context) -> None:
    """Blocked where a reboot would end somebody's service, unless that was allowed."""
    if ctx.settings.allow_downtime:
        return
    taken = await last_replicas(ctx.world.client, ctx.settings, [node.name for node in ctx.windows_nodes])
    if taken:
        raise CheckBlocked(
            f"a reboot would take away the last replica of {'; '.join(taken[:5])}",
            next_step="give these workloads a replica on another node, or allow it with --allow-downtime",
        )


async def reboot(
    ctx: Context, namespace: Namespace, node: Node, witness: Pod, working: Collection[str] = (FROM_LINUX, TO_LINUX)
) -> Node:
    """The node after its reboot, which a HostProcess pod asks for that must never be started again."""
    name = f"reboot-{ctx.windows_nodes.index(node) + 1}"
    before = await read(ctx, node)
    command = restart_computer(ctx.times.reboot_delay)
    container = idle_container(ctx.settings, command=command, args=[])
    spec = pinned(pod_spec("windows", [container], ctx.settings, [node], restartPolicy="Never"), node)
    await namespace.create(PODS, pod_object(name, host_process_spec(spec), ctx.settings))
    phase = await namespace.seen(lambda: _ended(namespace.pod(name)), ctx.times.windows_pod_start)
    if phase != "Succeeded":
        raise CheckBlocked(
            f"HostProcess pod {name} could not reboot node {node.name}: {phase or namespace.why_not_ready(name)}",
            next_step="HostProcess pods must be able to run as SYSTEM on that node",
        )
    doing(f"waits for {node.name} to come back from its reboot")
    start, result = now(), Reboot(before, before, frozenset(working))
    async for _ in ctx.timing.attempts(ctx.times.reboot_back, every=ctx.times.reboot_look):
        result = replace(result, after=await read(ctx, node, otherwise=result.after))
        if result.replaced or result.back:
            break
    ctx.world.reboots[node.name] = result
    title = f"node {node.name} reboots"
    ctx.probe.record(title, Try(result.back, result.seen), witness, command, EXPECTED, node.name, start=start)
    return require_back(ctx, result)


def require_back(ctx: Context, result: Reboot) -> Node:
    """The node after its reboot; raises when it did not come back, or came back as another one."""
    node = result.before
    if result.replaced:
        raise CheckBlocked(
            f"node {node.name} was replaced instead of rebooted",
            next_step="switch node repair and autoscaling off first",
        )
    if result.removed:
        raise CheckBlocked(
            f"node {node.name} was taken out of the cluster instead of rebooted",
            next_step="let nobody remove nodes meanwhile, let it join again, and run again",
        )
    if not result.back:
        raise CheckFailed(
            f"node {node.name} did not come back from its reboot within {ctx.times.reboot_back:g} s: {result.seen}",
            expected=EXPECTED,
            observed=result.seen,
            next_step=f"look at the console of node {node.name}: did Windows and the kubelet start?",
        )
    return result.after


def _ended(raw: Object | None) -> str | None:
    phase = ((raw or {}).get("status") or {}).get("phase")
    return phase if phase in ("Succeeded", "Failed") else None


async def read(ctx: Context, node: Node, *, otherwise: Node | None = None) -> Node:
    """The node as it is now; while it is away the API server may stumble over it."""
    try:
        return read_node(await ctx.world.client.get(NODES, node.name))
    except NotFound:
        return msgspec.structs.replace(otherwise or node, unusable=REMOVED)
    except ClusterError:
        if otherwise is None:
            raise
        return otherwise
