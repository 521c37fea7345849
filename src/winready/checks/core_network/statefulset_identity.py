"""A StatefulSet's Windows pod that is deleted and recreated keeps its identity and is routed to again."""

from winready.checks.context import Context
from winready.checks.core_network.reachable import reach_service
from winready.checks.fixtures import read_service, service_object
from winready.checks.registry import check
from winready.checks.workloads import netexec_stateful_set
from winready.cluster.commands import NETEXEC_HTTP, fetch
from winready.cluster.failures import CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import describe, every
from winready.cluster.resources import PODS, SERVICES, STATEFUL_SETS

REPLICAS = 2


@check("core.network.statefulset-identity", fixtures=("clients",), expected_s=90, windows_pods=REPLICAS + 1)
async def statefulset_identity(ctx: Context) -> None:
    """Delete one pod: the same name comes back as another pod, and its DNS name and the service lead to it."""
    namespace = await ctx.world.namespace("st")
    await namespace.create(SERVICES, service_object("st", {"app": "st"}, type="ClusterIP", clusterIP="None"))
    service = read_service(await namespace.create(SERVICES, service_object("st-vip", {"app": "st"})))
    await namespace.create(STATEFUL_SETS, netexec_stateful_set(ctx.world, "st", REPLICAS, "st"))
    before = {pod.name: pod for pod in ctx.witnesses(await namespace.ready_pods({"app": "st"}, REPLICAS))}
    clients = [*await ctx.clients("windows"), *await ctx.clients("linux")]
    window = ctx.times.service_reachable
    await every(
        *(
            ctx.probe.reach(
                client,
                service.cluster_ip,
                service.port,
                list(before.values()),
                "the StatefulSet",
                window=window,
                everyone=True,
            )
            for client in clients
        )
    )
    old = before["st-0"]
    await namespace.delete(PODS, old.name)
    new = await namespace.ready_pod(old.name, other_than=old.uid, seconds=ctx.times.windows_pod_start)
    ctx.witnesses([new])
    ctx.evidence.fact("pod IP kept", {"kept": new.address == old.address, "before": old.address, "after": new.address})
    ctx.evidence.fact("node kept", {"before": old.node.name, "after": new.node.name})
    domain = await ctx.world.cluster_domain()
    name = f"st-0.st.{namespace.name}.svc.{domain}"
    await every(*(_routed_by_name(ctx, client, name, new) for client in clients))
    after = [new if pod.name == new.name else pod for pod in before.values()]
    await reach_service(ctx, clients, service, after, "the StatefulSet after its pod was recreated")


async def _routed_by_name(ctx: Context, client: Pod, name: str, server: Pod) -> None:
    url = f"http://{name}:{NETEXEC_HTTP}/hostname"
    result = await ctx.probe.until(
        f"{client.name} reaches the recreated pod by its DNS name",
        lambda: ctx.probe.fetch_name(client, url, [server.name]),
        window=ctx.times.service_reachable,
        pod=client,
        command=fetch(client.os, url),
        expected=server.name,
        target=name,
    )
    if not result.ok:
        raise CheckFailed(
            f"{describe(client)} does not reach the recreated pod {server.name} (now {server.address} on node "
            f"{server.node.name}) by its name {name}: {result.seen}",
            expected=server.name,
            observed=result.seen,
            next_step=f"compare the answer of cluster DNS for {name} with the pod's address",
        )
