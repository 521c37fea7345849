"""Every Windows node is rebooted under running Windows pods, one after the other, and the pods serve again.

What the API says of pods on a node that is away is what was true before. So a pod counts as back only when it is
another pod or was restarted, and answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from winready.checks.context import Context
from winready.checks.registry import check
from winready.checks.workloads import pinned_deployment
from winready.cluster.bystanders import last_replicas
from winready.cluster.client import Object
from winready.cluster.commands import NETEXEC_HTTP, restart_computer
from winready.cluster.errors import ClusterError
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node, read_node
from winready.cluster.namespaces import Namespace, is_ready
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
from winready.cluster.resources import DEPLOYMENTS, NODES, PODS
from winready.cluster.timing import now

REPLICAS = 2
STAY: list[Object] = [
    {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute"}
    for why in ("not-ready", "unreachable")
]
"""A long reboot would end in an eviction, and new pods would hide that the node does not start its own again."""


@dataclass(frozen=True)
class Scene:
    """What runs on one node while it is rebooted."""

    node: Node
    name: str
    pods: list[Pod]
    earlier: dict[str, int]
    """How often each pod had been restarted before the reboot, by uid."""

    @property
    def labels(self) -> dict[str, str]:
        """How its pods are found again."""
        return {"app": self.name}


@check(
    "core.storage.reboot-recovery",
    fixtures=("clients",),
    expected_s=30,
    expected_s_per_node=420,
    windows_pods_per_node=REPLICAS + 1,
)
async def reboot_recovery(ctx: Context) -> None:
    """Stop at the first node that does not come back: the others stay as they are."""
    if not ctx.settings.allow_downtime:
        await _spare_others(ctx)
    namespace = await ctx.world.namespace("boot")
    client = (await ctx.clients("linux"))[0]
    scenes = [await _set_up(ctx, namespace, node, number) for number, node in enumerate(ctx.windows_nodes, 1)]
    for scene in scenes:
        await _require_answers(ctx, scene, client)
    for number, scene in enumerate(scenes, 1):
        start = now()
        await _reboot(ctx, namespace, scene, number)
        await _recover(ctx, namespace, scene, client, start)


async def _spare_others(ctx: Context) -> None:
    taken = await last_replicas(ctx.world.client, ctx.settings, [node.name for node in ctx.windows_nodes])
    if taken:
        raise CheckBlocked(
            f"a reboot would take away the last replica of {'; '.join(taken[:5])}",
            next_step="give these workloads a replica on another node, or allow it with --allow-downtime",
        )


async def _set_up(ctx: Context, namespace: Namespace, node: Node, number: int) -> Scene:
    name = f"boot-{number}"
    container = netexec_container(ctx.settings)
    made = pinned_deployment(ctx.world, name, REPLICAS, container, node)
    made["spec"]["template"]["spec"]["tolerations"] += STAY
    await namespace.create(DEPLOYMENTS, made)
    pods = ctx.witnesses(await namespace.ready_pods({"app": name}, REPLICAS))
    return Scene(node, name, pods, {pod.uid: _restarts(namespace.pod(pod.name)) for pod in pods})


async def _require_answers(ctx: Context, scene: Scene, client: Pod) -> None:
    """What does not answer before the reboot cannot answer again after it."""
    try:
        await _answer(ctx, client, scene.pods, "before its reboot", ctx.times.pod_reachable)
    except CheckFailed as failure:
        raise CheckBlocked(failure.reason, next_step="repair the pod network first; no node was rebooted") from None


async def _answer(ctx: Context, client: Pod, pods: list[Pod], when: str, window: float) -> None:
    """Each pod answers on its own address, so that nothing between the client and the node is judged with it."""
    await every(
        *(
            ctx.probe.reach(
                client,
                pod.address,
                NETEXEC_HTTP,
                [pod],
                f"Windows pod {pod.name} on node {pod.node.name} {when}",
                window=window,
                hint=f"look at the network plug-in on node {pod.node.name}: did it find its network again?",
            )
            for pod in pods
        )
    )


async def _reboot(ctx: Context, namespace: Namespace, scene: Scene, number: int) -> None:
    """A HostProcess pod that must never be started again asks for the reboot; the boot id proves that it happened."""
    node, name = scene.node, f"reboot-{number}"
    before = await _read(ctx, node)
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
    start, after = now(), before
    async for _ in ctx.timing.attempts(ctx.times.reboot_back, every=ctx.times.reboot_look):
        after = await _read(ctx, node, otherwise=after)
        if after.uid != node.uid or (after.boot_id != before.boot_id and not after.unusable):
            break
    back = after.boot_id != before.boot_id and not after.unusable
    seen = f"boot id {before.boot_id} before, {after.boot_id} after; {after.unusable or 'Ready'}"
    witness, expected = scene.pods[0], "another boot id, and Ready"
    ctx.probe.record(f"node {node.name} reboots", Try(back, seen), witness, command, expected, node.name, start=start)
    if after.uid != node.uid:
        raise CheckBlocked(
            f"node {node.name} was replaced instead of rebooted",
            next_step="switch node repair and autoscaling off first",
        )
    if not back:
        raise CheckFailed(
            f"node {node.name} did not come back from its reboot within {ctx.times.reboot_back:g} s: {seen}",
            expected=expected,
            observed=seen,
            next_step=f"look at the console of node {node.name}: did Windows and the kubelet start?",
        )


def _ended(raw: Object | None) -> str | None:
    phase = ((raw or {}).get("status") or {}).get("phase")
    return phase if phase in ("Succeeded", "Failed") else None


async def _read(ctx: Context, node: Node, *, otherwise: Node | None = None) -> Node:
    """The node as it is now; while it is away the API server may stumble over it."""
    try:
        return read_node(await ctx.world.client.get(NODES, node.name))
    except ClusterError:
        if otherwise is None:
            raise
        return otherwise


async def _recover(ctx: Context, namespace: Namespace, scene: Scene, client: Pod, start: float) -> None:
    """All replicas are new or restarted, Ready, and answer."""
    raws = await namespace.seen(lambda: _back(namespace, scene), ctx.times.reboot_recovery)
    if raws is None:
        there = [raw for raw in namespace.pods(scene.labels) if not _renewed(raw, scene.earlier)]
        stuck = there[0]["metadata"]["name"] if there else ""
        raise CheckFailed(
            f"{ctx.times.reboot_recovery:g} s after node {scene.node.name} came back its pods are not running again: "
            + (
                f"{stuck} was not started since the reboot"
                if stuck
                else f"pods are missing{await namespace.last_warning()}"
            ),
            expected=f"{REPLICAS} pods started after the reboot and Ready",
            observed=", ".join(raw["metadata"]["name"] for raw in namespace.pods(scene.labels)) or "no pods",
            next_step=f"look at the kubelet and the network plug-in on node {scene.node.name}",
        )
    pods = ctx.witnesses([await namespace.prove(raw) for raw in raws])
    await _answer(ctx, client, pods, "after its reboot", ctx.times.reboot_recovery)
    took = round((now() - start) * ctx.timing.scale)
    ctx.evidence.fact(f"reboot of {scene.node.name}", {"cluster_s": took, "pods_kept": _kept(raws, scene.earlier)})


def _restarts(raw: Object | None) -> int:
    return sum(item["restartCount"] for item in ((raw or {}).get("status") or {}).get("containerStatuses") or [])


def _renewed(raw: Object, earlier: dict[str, int]) -> bool:
    uid = raw["metadata"]["uid"]
    return uid not in earlier or _restarts(raw) > earlier[uid]


def _back(namespace: Namespace, scene: Scene) -> list[Object] | None:
    found = [raw for raw in namespace.pods(scene.labels) if is_ready(raw) and _renewed(raw, scene.earlier)]
    return found if len(found) == REPLICAS else None


def _kept(raws: list[Object], earlier: dict[str, int]) -> int:
    return sum(1 for raw in raws if raw["metadata"]["uid"] in earlier)
