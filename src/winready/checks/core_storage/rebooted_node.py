"""A node after its reboot: it takes new pods, offers what it offered before, and keeps nothing of ours."""

from __future__ import annotations

from typing import Any

from winready.checks.context import Context
from winready.checks.core_storage.after_reboot import Scene, looks_of_new_pod, require
from winready.checks.core_storage.files import remove_from_node
from winready.cluster.client import Object
from winready.cluster.commands import NETEXEC_HTTP, powershell
from winready.cluster.errors import ClusterError
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import read_node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import (
    Pod,
    host_process_spec,
    idle_container,
    netexec_container,
    pinned,
    pod_object,
    pod_spec,
)
from winready.cluster.probes import Try, every
from winready.cluster.quantity import amount
from winready.cluster.resources import DEPLOYMENTS, NODES, PODS

LEAST_SHARE = 0.9
"""Of what a node could hold before: Windows does not report memory to the byte alike at every start."""


async def start_new_pod(
    ctx: Context, namespace: Namespace, scene: Scene, peer: Scene, client: Pod, domain: str, number: int
) -> None:
    """A pod that the node never had starts there, is reached, and reaches what pods there reached before."""
    node, name = scene.node, f"new-{number}"
    spec = pinned(pod_spec("windows", [netexec_container(ctx.settings)], ctx.settings, [node]), node)
    await namespace.create(PODS, pod_object(name, spec, ctx.settings))
    try:
        pod = ctx.witnesses([await namespace.ready_pod(name, seconds=ctx.times.windows_pod_start)])[0]
    except CheckBlocked as trouble:
        raise CheckFailed(
            f"after the reboot of node {node.name} a new pod does not start there: {trouble.reason}",
            expected="new pods start as they did before",
            observed=namespace.why_not_ready(name),
            next_step=f"look at the container runtime and the network plug-in on node {node.name}",
        ) from None
    what = f"new Windows pod {name} on node {node.name} after its reboot"
    window = ctx.times.reboot_recovery
    outward = looks_of_new_pod(scene, peer, pod, domain)
    await every(
        ctx.probe.reach(client, pod.address, NETEXEC_HTTP, [pod], what, window=window),
        require(ctx, outward, window, f"after the reboot of node {node.name}"),
    )


async def as_before(ctx: Context, scene: Scene) -> None:
    """Labels, taints and capacity are those of before, once Kubernetes has taken its own taints away again."""
    lost: list[str] = []
    async for _ in ctx.timing.attempts(ctx.times.node_settled, every=ctx.times.reboot_look):
        lost = _differences(scene.raw, await ctx.world.client.get(NODES, scene.node.name))
        if not lost:
            break
    seen, expected = "; ".join(lost) or "as before", "labels, taints and capacity as before"
    title = f"node {scene.node.name} offers what it offered before"
    ctx.probe.record(title, Try(not lost, seen), scene.pods[0], [], expected, scene.node.name)
    if lost:
        raise CheckFailed(
            f"node {scene.node.name} is not as it was before its reboot: {seen}",
            expected=expected,
            observed=seen,
            next_step=f"'kubectl describe node {scene.node.name}'; workloads that ran there may find no place again",
        )


def _differences(before: Object, after: Object) -> list[str]:
    old, new = read_node(before), read_node(after)
    found = [f"label {key} is gone" for key in old.labels if key not in new.labels]
    hard = {taint.key for taint in new.taints if taint.effect in ("NoSchedule", "NoExecute")}
    found += [f"it is tainted {key}" for key in sorted(hard - {taint.key for taint in old.taints})]
    found += [f"taint {key} is gone" for key in sorted({t.key for t in old.taints} - {t.key for t in new.taints})]
    if new.unusable and not old.unusable:
        found.append(new.unusable)
    for kind in ("capacity", "allocatable"):
        for name, had in _amounts(before, kind).items():
            left = _amounts(after, kind).get(name, 0.0)
            if left < LEAST_SHARE * had:
                found.append(f"{kind} of {name} was {before['status'][kind][name]}, is {_said(after, kind, name)}")
    return found


def _said(raw: Object, kind: str, name: str) -> Any:
    return (raw["status"].get(kind) or {}).get(name, "nothing")


def _amounts(raw: Object, kind: str) -> dict[str, float]:
    offered = (raw.get("status") or {}).get(kind) or {}
    return {name: amount(str(offered[name])) for name in ("cpu", "memory", "pods") if name in offered}


async def remove_folders(ctx: Context, namespace: Namespace, scenes: list[Scene]) -> None:
    """Take what the scenes left on their nodes away again, from the nodes themselves."""
    for number, scene in enumerate(scenes, 1):
        place = f"folder {scene.folder} on node {scene.node.name}"
        try:
            host = await _host(ctx, namespace, scene, number)
            await remove_from_node(ctx, host, scene.folder)
        except (CheckBlocked, CheckFailed) as trouble:
            ctx.world.leftovers.append(f"{place} ({trouble.reason})")
        except ClusterError as error:
            ctx.world.leftovers.append(f"{place} ({error.message})")


async def _host(ctx: Context, namespace: Namespace, scene: Scene, number: int) -> Pod:
    """A pod on the node itself; none is asked for where the node takes no pods."""
    node = read_node(await ctx.world.client.get(NODES, scene.node.name))
    if node.unusable:
        raise CheckBlocked(node.unusable, next_step="remove it by hand")
    await namespace.delete(DEPLOYMENTS, scene.name)
    await namespace.seen(lambda: None if namespace.pods(scene.labels) else True, ctx.times.pod_delete)
    name = f"tidy-{number}"
    sleep = idle_container(ctx.settings, command=powershell("Start-Sleep -Seconds 600"), args=[])
    spec = host_process_spec(pinned(pod_spec("windows", [sleep], ctx.settings, [scene.node]), scene.node))
    await namespace.create(PODS, pod_object(name, spec, ctx.settings))
    return await namespace.ready_pod(name, seconds=ctx.times.windows_pod_start)
