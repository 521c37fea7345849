"""Every Windows node is rebooted under running Windows pods, one after the other, and all that worked works again.

What the API says of pods on a node that is away is what was true before. So a pod counts as back only when it is
another pod or was restarted, and answers. Then everything is asked that was asked before the reboot (`after_reboot`).
"""

from __future__ import annotations

import asyncio

from winready.checks.context import Context
from winready.checks.core_storage import after_reboot
from winready.checks.core_storage.after_reboot import Look, Scene
from winready.checks.core_storage.rebooted_node import as_before, remove_folders, start_new_pod
from winready.checks.core_storage.scenes import REPLICAS, restarts, send_update, set_up, update_arrives
from winready.checks.reboots import read, reboot, spare_others
from winready.checks.registry import check
from winready.cluster.client import Object
from winready.cluster.commands import NETEXEC_HTTP
from winready.cluster.errors import ClusterError, ExecFailed
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace, is_ready
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe, every
from winready.cluster.timing import now


@check(
    "core.storage.reboot-recovery",
    fixtures=("clients",),
    expected_s=150,
    expected_s_per_node=520,
    windows_pods_per_node=REPLICAS + 3,
)
async def reboot_recovery(ctx: Context) -> None:
    """Stop at the first node that does not come back as it was: the others stay as they are."""
    await spare_others(ctx)
    namespace = await ctx.world.namespace("boot")
    client = (await ctx.clients("linux"))[0]
    domain = await ctx.world.cluster_domain()
    scenes = list(await every(*(set_up(ctx, namespace, node, n) for n, node in enumerate(ctx.windows_nodes, 1))))
    try:
        await every(*(_require_answers(ctx, scene, client) for scene in scenes))
        peers = dict(zip([scene.name for scene in scenes], [*scenes[1:], scenes[0]], strict=True))
        await every(*(_note_what_works(ctx, scene, peers[scene.name], client, domain) for scene in scenes))
        back: dict[str, Node] = {}
        for number, scene in enumerate(scenes, 1):
            await _judge(ctx, namespace, scene, peers[scene.name], client, domain, number, back)
    finally:
        await remove_folders(ctx, namespace, scenes)


async def _require_answers(ctx: Context, scene: Scene, client: Pod) -> None:
    """What does not answer before the reboot cannot answer again after it."""
    try:
        await _answer(ctx, client, scene.pods, "before its reboot", ctx.times.pod_reachable)
    except CheckFailed as failure:
        raise CheckBlocked(failure.reason, next_step="repair the pod network first; no node was rebooted") from None


async def _note_what_works(ctx: Context, scene: Scene, peer: Scene, client: Pod, domain: str) -> None:
    found = after_reboot.looks(ctx, scene, peer, client, domain)
    window, when = ctx.times.service_reachable, f"before the reboot of {scene.node.name}"
    answers = await after_reboot.ask(ctx, [look for look in found if not look.slow], window, when)
    await send_update(ctx, scene)
    scene.updates, slow = await asyncio.gather(
        update_arrives(ctx, scene, "before"),
        after_reboot.ask(ctx, [look for look in found if look.slow], window, when),
    )
    answers += slow
    scene.working = {look.key for look, result in answers if result.ok}
    idle = [f"{look.what}: {result.seen}" for look, result in answers if not result.ok]
    idle += [] if scene.updates else ["sees changes of config maps"]
    if idle:
        ctx.evidence.fact(f"did not work before the reboot of {scene.node.name}, not judged after it", idle)
    await _require_no_better(ctx, scene, peer, client, domain, answers)


async def _require_no_better(
    ctx: Context, scene: Scene, peer: Scene, client: Pod, domain: str, answers: list[tuple[Look, Try]]
) -> None:
    """What no pod of the node reaches is another requirement's finding; what only some of them reach is found here."""
    failed = {look.key: (look, result) for look, result in answers if not result.ok}
    neighbours = [pod for pod in await ctx.clients("windows") if pod.node.name == scene.node.name]
    for neighbour in neighbours:
        found = after_reboot.looks_of_neighbour(scene, peer, neighbour, client, domain)
        same = [look for look in found if look.key in failed]
        for theirs, answer in await after_reboot.ask(ctx, same, 0, f"where {scene.pods[0].name} does not"):
            if answer.ok:
                look, result = failed[theirs.key]
                raise CheckFailed(
                    f"before the reboot of node {scene.node.name} {describe(look.pod)} never {look.what}, "
                    f"which {describe(neighbour)} does: {result.seen}",
                    expected=look.expected,
                    observed=result.seen,
                    next_step=f"compare the HNS endpoints of both pods on node {scene.node.name}; no node was rebooted",
                )


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


async def _judge(
    ctx: Context,
    namespace: Namespace,
    scene: Scene,
    peer: Scene,
    client: Pod,
    domain: str,
    number: int,
    back: dict[str, Node],
) -> None:
    """Reboot one node. What does not answer because a rebooted node has gone down once more is a finding, too."""
    start = now()
    try:
        back[scene.node.name] = await reboot(ctx, namespace, scene.node, scene.pods[0], scene.working)
        await _recover(ctx, namespace, scene, client)
        await _works_again(ctx, namespace, scene, peer, client, domain, number)
    except ClusterError:
        await _require_up(ctx, back, ctx.times.node_silent)
        raise
    await _require_up(ctx, back, 0)
    took, kept = round((now() - start) * ctx.timing.scale), sum(pod.uid in scene.restarts for pod in scene.pods)
    ctx.evidence.fact(f"reboot of {scene.node.name}", {"cluster_s": took, "pods_kept": kept})


async def _require_up(ctx: Context, back: dict[str, Node], window: float) -> None:
    """No node has gone down since it came back; the API notices that only after a while."""
    async for _ in ctx.timing.attempts(window, every=ctx.times.reboot_look):
        for name, node in back.items():
            seen = await read(ctx, node)
            if seen.boot_id != node.boot_id or seen.unusable:
                raise CheckFailed(
                    f"node {name} came back from its reboot and went down again: boot id {node.boot_id}, then "
                    f"{seen.boot_id}; {seen.unusable or 'Ready'}",
                    expected="the node stays up",
                    observed=seen.unusable or f"boot id {seen.boot_id}",
                    next_step=f"look at the event log of node {name}: what ended Windows?",
                )


async def _recover(ctx: Context, namespace: Namespace, scene: Scene, client: Pod) -> None:
    """All replicas are new or restarted, Ready, and answer."""
    raws = await namespace.seen(lambda: _back(namespace, scene), ctx.times.reboot_recovery)
    if raws is None:
        there = [raw for raw in namespace.pods(scene.labels) if not _renewed(raw, scene.restarts)]
        stuck = there[0]["metadata"]["name"] if there else ""
        raise CheckFailed(
            f"{ctx.times.reboot_recovery:g} s after node {scene.node.name} came back its pods are not running again: "
            + (
                f"{stuck} was not started since the reboot"
                if stuck
                else f"pods are missing or not Ready{await namespace.last_warning()}"
            ),
            expected=f"{REPLICAS} pods started after the reboot and Ready",
            observed=", ".join(raw["metadata"]["name"] for raw in namespace.pods(scene.labels)) or "no pods",
            next_step=f"look at the kubelet and the network plug-in on node {scene.node.name}",
        )
    try:
        scene.pods = ctx.witnesses([await namespace.prove(raw) for raw in raws])
    except ExecFailed as failure:
        raise CheckFailed(
            f"since the reboot of node {scene.node.name} no command can be run in its pods: {failure.message}",
            expected="commands run as before",
            observed=failure.message,
            next_step=f"look at the kubelet and the container runtime of node {scene.node.name}",
        ) from None
    await _answer(ctx, client, scene.pods, "after its reboot", ctx.times.reboot_recovery)


async def _works_again(
    ctx: Context, namespace: Namespace, scene: Scene, peer: Scene, client: Pod, domain: str, number: int
) -> None:
    """What worked before works again within the time that a reboot is given, and still does when all else is done."""
    start = now()
    found = after_reboot.looks(ctx, scene, peer, client, domain)
    worked = [look for look in found if look.key in scene.working]
    when = f"after the reboot of node {scene.node.name}"
    await every(
        after_reboot.require(ctx, [look for look in worked if not look.slow], ctx.times.reboot_recovery, when),
        start_new_pod(ctx, namespace, scene, peer, client, domain, number),
        as_before(ctx, scene),
    )
    await send_update(ctx, scene)
    await every(
        after_reboot.require(ctx, [look for look in worked if look.slow], ctx.times.reboot_recovery, when),
        _sees_updates(ctx, scene, when),
    )
    await ctx.timing.pause(max(0.0, ctx.times.reboot_hold - (now() - start) * ctx.timing.scale))
    held = [look for look in worked if look.patient]
    await after_reboot.require(ctx, held, ctx.times.pod_reachable, f"{when}, minutes later")


async def _sees_updates(ctx: Context, scene: Scene, when: str) -> None:
    """Changes of config maps arrive, where they did before."""
    if scene.updates and not await update_arrives(ctx, scene, "after"):
        raise CheckFailed(
            f"{when}: changes of a config map no longer reach pod {scene.pods[0].name} within "
            f"{ctx.times.volume_update:g} s",
            expected=", ".join(scene.texts.values()),
            observed="the files stay as they were",
            next_step=f"look at the kubelet's log on node {scene.node.name}: does it still follow config maps?",
        )


def _renewed(raw: Object, earlier: dict[str, int]) -> bool:
    uid = raw["metadata"]["uid"]
    return uid not in earlier or restarts(raw) > earlier[uid]


def _back(namespace: Namespace, scene: Scene) -> list[Object] | None:
    found = [raw for raw in namespace.pods(scene.labels) if is_ready(raw) and _renewed(raw, scene.restarts)]
    return found if len(found) == REPLICAS else None
