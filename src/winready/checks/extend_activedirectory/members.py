"""Pods that are somebody in a domain, and beside each of them, on the same node, one that is nobody."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from winready.checks.context import Context
from winready.checks.extend_activedirectory.permission import Use, grant_use, named_spec
from winready.cluster.client import Object
from winready.cluster.directory import ActiveDirectory
from winready.cluster.evidence import bounded
from winready.cluster.failures import CheckBlocked, CheckFailed, NotApplicable
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import CONTAINER, Pod, idle_container, pinned, pod_object, pod_spec
from winready.cluster.resources import EVENTS, PODS

if TYPE_CHECKING:
    from winready.checks.world import World

SECOND = "second"
CONTAINERS = (CONTAINER, SECOND)
FOLDER = "C:\\winready-folder"
"""Where pods find the folder of the node that is for the account."""


@dataclass(frozen=True)
class Scene:
    """What the checks of this category share."""

    given: ActiveDirectory
    namespace: Namespace
    use: Use


@dataclass(frozen=True)
class Pair:
    """The pods of one node."""

    member: Pod
    """Has the account, in both of its containers."""
    twin: Pod
    """Has no account."""
    stranger: Pod | None
    """Has another account, if one was named."""


async def scene(ctx: Context) -> Scene:
    """The service account and the pods, asked for by whoever comes first."""
    return await ctx.world.fixtures.once("active-directory", _open)


async def pair(ctx: Context, node: Node) -> Pair:
    """The pods of a node, running and proven, as witnesses."""
    shared = await scene(ctx)

    async def wait(world: World) -> Pair:
        return await _ready(ctx, shared, node)

    found = await ctx.world.fixtures.once(f"active-directory {node.name}", wait)
    ctx.witnesses([found.twin, found.member, *([found.stranger] if found.stranger else [])])
    return found


async def members(ctx: Context, first: Pod) -> list[Pod]:
    """Pods with the account, ``first`` of all this one: what one of them wrote another can delete."""
    found = [first]
    for node in ctx.windows_nodes:
        with contextlib.suppress(CheckFailed, CheckBlocked):
            found.append((await pair(ctx, node)).member)
    return list({pod.name: pod for pod in found}.values())


async def _open(world: World) -> Scene:
    given = world.settings.active_directory
    if given is None:
        raise NotApplicable("no Active Directory domain was named (--active-directory FILE)")
    namespace = await world.namespace("ad")
    use = await grant_use(world, namespace, given)
    for number, node in enumerate(world.windows_nodes, 1):
        await namespace.create(PODS, _pod(world, given, use, f"twin-{number}", node))
        await namespace.create(PODS, _pod(world, given, use, f"member-{number}", node, given.credential_spec))
        if given.denied_credential_spec:
            other = given.denied_credential_spec
            await namespace.create(PODS, _pod(world, given, use, f"stranger-{number}", node, other))
    return Scene(given, namespace, use)


def _pod(world: World, given: ActiveDirectory, use: Use, name: str, node: Node, credential_spec: str = "") -> Object:
    settings = world.settings
    mounts = [{"name": "folder", "mountPath": FOLDER}] if given.folder else []
    containers = [idle_container(settings, name=each, volumeMounts=mounts) for each in CONTAINERS]
    # It must be there already: one that Kubernetes makes is for everybody.
    volumes = [{"name": "folder", "hostPath": {"path": given.folder, "type": "Directory"}}] if given.folder else []
    spec = pod_spec("windows", containers, settings, [node], volumes=volumes, serviceAccountName=use.account)
    if credential_spec:
        spec["securityContext"] = named_spec(credential_spec)
    else:
        spec["containers"] = containers[:1]
    return pod_object(name, pinned(spec, node), settings)


async def _ready(ctx: Context, shared: Scene, node: Node) -> Pair:
    number = ctx.windows_nodes.index(node) + 1
    twin = await shared.namespace.ready_pod(f"twin-{number}")
    ctx.witnesses([twin])
    member = await _with_account(shared, node, f"member-{number}", twin)
    stranger = None
    if shared.given.denied_credential_spec:
        stranger = await _with_account(shared, node, f"stranger-{number}", twin)
    return Pair(member, twin, stranger)


async def _with_account(shared: Scene, node: Node, name: str, twin: Pod) -> Pod:
    """A pod with a credential spec; that it alone does not start is a finding, if the node says why."""
    namespace = shared.namespace
    try:
        return await namespace.ready_pod(name)
    except CheckBlocked as block:
        events = await namespace.client.list(EVENTS, namespace.name, fields=f"involvedObject.name={name},type=Warning")
        if not events:
            raise
        seen = f"{events[-1].get('reason')}: {bounded(events[-1].get('message') or '', 300)}"
        raise CheckFailed(
            f"Windows pod {name} with a credential spec does not start on node {node.name}, where {twin.name} without "
            f"one runs: {block.reason}",
            expected="a pod with a credential spec starts as one without",
            observed=seen,
            next_step=f"look at the event log Microsoft-Windows-Containers-CCG/Admin of node {node.name}",
        ) from None
