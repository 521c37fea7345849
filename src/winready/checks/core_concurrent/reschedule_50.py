"""A Deployment's Windows pod is rescheduled 50 times in a row while deletions go on in the background."""

from __future__ import annotations

import asyncio
import statistics
from functools import partial

from winready.checks.context import Context
from winready.checks.fixtures import Service, read_service, service_object
from winready.checks.registry import check
from winready.checks.workloads import deployment, netexec_deployment
from winready.cluster.client import Object
from winready.cluster.commands import NETEXEC_HTTP, fetch, fetch_all
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.namespaces import PULL_STEP, Namespace, is_ready
from winready.cluster.pods import Pod, pause_container
from winready.cluster.probes import Try, describe, every
from winready.cluster.resources import DEPLOYMENTS, PODS, SERVICES
from winready.cluster.timing import now

ROUNDS = 50
SAMPLED = 5
"""Every so many reschedules the service is asked who is there, too: sooner than patience with it ends."""
CHURNED, BACKGROUND = {"app": "churn"}, {"app": "noise"}


@check("core.concurrent.reschedule-50", fixtures=("clients",), expected_s=900, windows_pods=2 * ROUNDS)
async def reschedule_50(ctx: Context) -> None:
    """Delete the pod, wait until another is Ready and proven, fifty times; then the service leads to the last one."""
    namespace = await ctx.world.namespace("churn")
    service = read_service(await namespace.create(SERVICES, service_object("churn", CHURNED)))
    await namespace.create(DEPLOYMENTS, netexec_deployment(ctx.world, "churn", 1))
    await namespace.create(DEPLOYMENTS, deployment(ctx.world, "noise", 1, pause_container(ctx.settings)))
    pod = await _first(ctx, namespace)
    able, obstacle = list[Pod](), None
    try:
        able = await _able(ctx, await _all_clients(ctx), service.cluster_ip, service.port, pod)
    except CheckBlocked as block:
        # Whoever should look at the service is missing; the reschedules themselves can be judged all the same.
        obstacle = block
    noise = asyncio.create_task(_delete_for_ever(ctx, namespace))
    try:
        pod = await _reschedule(ctx, namespace, pod, service, able)
    finally:
        noise.cancel()
        await asyncio.gather(noise, return_exceptions=True)
    await _settled(ctx, namespace)
    if obstacle is not None:
        raise obstacle
    able = await _able(ctx, able, pod.address, NETEXEC_HTTP, pod)
    what, window = f"the Deployment after {ROUNDS} reschedules", ctx.times.service_reachable
    await every(*(ctx.probe.reach(each, service.cluster_ip, service.port, [pod], what, window=window) for each in able))


async def _first(ctx: Context, namespace: Namespace) -> Pod:
    """The pod that is rescheduled first; without its image nothing can be judged."""
    patience = ctx.times.image_pull + ctx.times.windows_pod_start
    raw = await namespace.seen(lambda: _another(namespace, set()), patience)
    if raw is not None:
        return ctx.witnesses([await namespace.prove(raw)])[0]
    if words := await namespace.pulling(patience, namespace.pods(CHURNED)):
        raise CheckBlocked(words, next_step=PULL_STEP)
    reason = f"the Deployment's first pod was not Ready after {patience:g} s: {_stuck(namespace, set())}"
    reason += await namespace.last_warning()
    if "ImagePull" in reason:
        raise CheckBlocked(reason, next_step="make the image available to that node")
    raise CheckFailed(
        reason,
        expected="a Ready pod",
        observed="none",
        next_step="'kubectl describe' of that pod and the kubelet's log on its node say what it waits for",
    )


async def _all_clients(ctx: Context) -> list[Pod]:
    return [*await ctx.clients("windows"), *await ctx.clients("linux")]


async def _able(ctx: Context, clients: list[Pod], address: str, port: int, server: Pod) -> list[Pod]:
    """The clients that reach the pod at this address: who cannot says nothing about what reschedules do to services."""
    url, window = f"http://{address}:{port}/hostname", ctx.times.service_reachable

    async def able(client: Pod) -> bool:
        result = await ctx.probe.until(
            f"control: {client.name} reaches {server.name}",
            lambda: ctx.probe.fetch_name(client, url, [server.name]),
            window=window,
            pod=client,
            command=fetch(client.os, url),
            expected=server.name,
            target=f"{address}:{port}",
        )
        return result.ok

    found = [client for client, ok in zip(clients, await every(*map(able, clients)), strict=True) if ok]
    if not found:
        raise CheckBlocked(
            f"no client reaches Windows pod {server.name} on node {server.node.name} at {address}:{port}",
            next_step="repair the pod network and the services in general first",
        )
    return found


async def _reschedule(ctx: Context, namespace: Namespace, pod: Pod, service: Service, able: list[Pod]) -> Pod:
    seen, spans = {pod.uid}, list[float]()
    nodes: dict[str, int] = {}
    for number in range(1, ROUNDS + 1):
        start = now()
        await ctx.world.client.delete(PODS, pod.name, namespace.name, uid=pod.uid)
        raw = await namespace.seen(lambda: _another(namespace, seen), ctx.times.churn_round)
        if raw is None:
            raise CheckFailed(
                f"no new pod was Ready {ctx.times.churn_round:g} s after reschedule {number} of {ROUNDS}: "
                f"{_stuck(namespace, seen)}{await namespace.last_warning()}",
                expected=f"a Ready pod within {ctx.times.churn_round:g} s, {ROUNDS} times",
                observed=f"{number - 1} times",
                next_step="'kubectl describe' of that pod and the kubelet's log on its node say what it waits for",
            )
        pod = await namespace.prove(raw)
        seen.add(pod.uid)
        ctx.witnesses([pod])
        _own_addresses(ctx, number)
        spans.append((now() - start) * ctx.timing.scale)
        nodes[pod.node.name] = nodes.get(pod.node.name, 0) + 1
        ctx.probe.record(
            f"reschedule {number}",
            Try(True, f"Ready and Windows ({pod.build})"),
            pod,
            [],
            "a new Ready pod",
            start=start,
        )
        if able and number < ROUNDS:
            await _reached(ctx, able, service, pod, number)
    spans.sort()
    times = {"p50": statistics.median(spans), "p95": spans[int(0.95 * len(spans))], "most": spans[-1]}
    ctx.evidence.fact("cluster seconds per reschedule", {name: round(value, 1) for name, value in times.items()})
    ctx.evidence.fact("reschedules per node", nodes)
    return pod


def _own_addresses(ctx: Context, number: int) -> None:
    """No two pods of the run that live share an address."""
    owners: dict[str, Object] = {}
    for raw in (raw for namespace in ctx.world.namespaces for raw in namespace.pods({}) if _lives(raw)):
        for item in raw["status"]["podIPs"]:
            other = owners.setdefault(item["ip"], raw)
            if other is not raw:
                pods = " and ".join(f"{_full_name(each)} on node {each['spec']['nodeName']}" for each in (other, raw))
                raise CheckFailed(
                    f"after reschedule {number} of {ROUNDS} two pods that run have the address {item['ip']}: {pods}",
                    expected="an address of its own for each pod",
                    observed=f"{item['ip']} twice",
                    next_step=f"look at the network plug-in of node {raw['spec']['nodeName']}",
                )


def _lives(raw: Object) -> bool:
    """Whether a pod runs, is to stay, and has an address that is not its node's."""
    status = raw.get("status") or {}
    there = status.get("phase") == "Running" and status.get("podIPs") and not raw["spec"].get("hostNetwork")
    return bool(there and not raw["metadata"].get("deletionTimestamp"))


def _full_name(raw: Object) -> str:
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


async def _reached(ctx: Context, able: list[Pod], service: Service, pod: Pod, number: int) -> None:
    """Somebody on another node reaches the pod at its own address, and now and then through the service."""
    client = _asker(able, pod, number)
    ways = {f"{pod.address}:{NETEXEC_HTTP}": "the pod network"}
    window = ctx.times.pod_reachable
    if number % SAMPLED == 0:
        ways[f"{service.cluster_ip}:{service.port}"], window = "the service", ctx.times.service_reachable
    command = fetch_all(client.os, [f"http://{address}/hostname" for address in ways])
    lost: list[str] = []

    async def attempt() -> Try:
        result = await client.run(command, seconds=ctx.times.exec_answer * len(ways))
        said = [line.strip() for line in result.stdout.decode(errors="replace").split("\n")]
        answers = dict(zip(ways, said, strict=False))
        lost[:] = [f"{ways[address]} at {address}" for address in ways if answers.get(address) != pod.name]
        seen = ", ".join(f"{address}: {answers.get(address) or 'no answer'}" for address in ways)
        return Try(not lost, seen, result)

    found = await ctx.probe.until(
        f"{client.name} reaches the pod of reschedule {number}",
        attempt,
        window=window,
        pod=client,
        command=command,
        expected=pod.name,
        target=", ".join(ways),
    )
    if not found.ok:
        raise CheckFailed(
            f"{window:g} s after reschedule {number} of {ROUNDS} {' and '.join(lost)} does not lead {describe(client)} "
            f"to {pod.name} on node {pod.node.name}: {found.seen}",
            expected=pod.name,
            observed=found.seen,
            next_step="compare the service's EndpointSlices with the pod that runs; then look at the service proxy of "
            f"node {client.node.name} and at the network plug-in of node {pod.node.name}",
        )


def _asker(able: list[Pod], pod: Pod, number: int) -> Pod:
    """They take turns; whoever is on the pod's own node does not see what others see."""
    others = [client for client in able if client.node.name != pod.node.name] or able
    return others[number % len(others)]


def _another(namespace: Namespace, seen: set[str]) -> Object | None:
    found = (raw for raw in namespace.pods(CHURNED) if raw["metadata"]["uid"] not in seen and is_ready(raw))
    return next(found, None)


def _stuck(namespace: Namespace, seen: set[str]) -> str:
    names = [raw["metadata"]["name"] for raw in namespace.pods(CHURNED) if raw["metadata"]["uid"] not in seen]
    return namespace.why_not_ready(names[0]) if names else "the Deployment made none"


async def _delete_for_ever(ctx: Context, namespace: Namespace) -> None:
    """Delete pods of another Deployment as soon as they are Ready."""
    while True:
        ready = await namespace.seen(
            lambda: next((raw for raw in namespace.pods(BACKGROUND) if is_ready(raw)), None), ctx.times.churn_round
        )
        if ready is not None:
            metadata = ready["metadata"]
            await ctx.world.client.delete(PODS, metadata["name"], namespace.name, uid=metadata["uid"])
        await ctx.timing.pause(ctx.times.poll)


async def _settled(ctx: Context, namespace: Namespace) -> None:
    """What was deleted is gone, and both Deployments are whole again."""
    for app in (CHURNED, BACKGROUND):
        whole = await namespace.seen(partial(_only_ready, namespace, app), ctx.times.rollout)
        if whole is None:
            left = [raw["metadata"]["name"] for raw in namespace.pods(app)]
            stuck = next((name for name in left if not is_ready(namespace.pod(name))), "")
            raise CheckFailed(
                f"{ctx.times.rollout:g} s after the end {len(left)} pods of Deployment {app['app']} are left, "
                f"not one: {namespace.why_not_ready(stuck) if stuck else ', '.join(left)}",
                expected="one Ready pod, the others gone",
                observed=", ".join(left) or "none",
                next_step="look for pods that stay Terminating and at the kubelet of their node",
            )


def _only_ready(namespace: Namespace, labels: dict[str, str]) -> list[Object] | None:
    found = namespace.pods(labels)
    return found if len(found) == 1 and is_ready(found[0]) else None
