"""A StatefulSet's Windows pod that is deleted and recreated keeps its identity and is routed to again."""

from winready.checks.context import Context
from winready.checks.fixtures import read_service, service_object
from winready.checks.reaching import reach_service
from winready.checks.registry import check
from winready.checks.workloads import netexec_stateful_set
from winready.cluster.commands import NETEXEC_HTTP, fetch_all, lines
from winready.cluster.failures import CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe, every
from winready.cluster.resources import PODS, SERVICES, STATEFUL_SETS

REPLICAS = 2


@check("core.network.statefulset-identity", fixtures=("clients",), expected_s=210, windows_pods=REPLICAS + 1)
async def statefulset_identity(ctx: Context) -> None:
    """Delete one pod: the same name comes back as another pod, and each pod's DNS name and the service lead to it."""
    namespace = await ctx.world.namespace("st")
    await namespace.create(SERVICES, service_object("st", {"app": "st"}, type="ClusterIP", clusterIP="None"))
    service = read_service(await namespace.create(SERVICES, service_object("st-vip", {"app": "st"})))
    await namespace.create(STATEFUL_SETS, netexec_stateful_set(ctx.world, "st", REPLICAS, "st"))
    before = {pod.name: pod for pod in ctx.witnesses(await namespace.ready_pods({"app": "st"}, REPLICAS))}
    clients = [*await ctx.clients("windows"), *await ctx.clients("linux")]
    await reach_service(ctx, clients, service, list(before.values()), "the StatefulSet")
    old = before["st-0"]
    await namespace.delete(PODS, old.name)
    new = await namespace.ready_pod(old.name, other_than=old.uid, seconds=ctx.times.windows_pod_start)
    ctx.witnesses([new])
    ctx.evidence.fact("pod IP kept", {"kept": new.address == old.address, "before": old.address, "after": new.address})
    ctx.evidence.fact("node kept", {"before": old.node.name, "after": new.node.name})
    after = [new if pod.name == new.name else pod for pod in before.values()]
    suffix = f"st.{namespace.name}.svc.{await ctx.world.cluster_domain()}"
    names = {f"{pod.name}.{suffix}": pod for pod in after}
    await every(*(_routed_by_name(ctx, client, names) for client in clients))
    what = "the StatefulSet after its pod was recreated"
    await reach_service(ctx, clients, service, after, what, hold=ctx.times.observe)


async def _routed_by_name(ctx: Context, client: Pod, names: dict[str, Pod]) -> None:
    """Each name leads to its own pod: that of the pod which came back, and that of the pod which stayed."""
    command = fetch_all(client.os, [f"http://{name}:{NETEXEC_HTTP}/hostname" for name in names])
    wrong: dict[str, str] = {}

    async def attempt() -> Try:
        result = await client.run(command, seconds=ctx.times.exec_answer * len(names))
        said = [line.strip() for line in result.stdout.decode(errors="replace").split("\n")]
        answers = dict(zip(names, said, strict=False))
        error = " ".join(lines(result.stderr)[:1]) or "no answer"
        wrong.clear()
        wrong.update({name: answers.get(name) or error for name in names if answers.get(name) != names[name].name})
        seen = "; ".join(f"{name}: {wrong.get(name) or names[name].name}" for name in names)
        return Try(not wrong, seen, result)

    expected = "; ".join(f"{name}: {pod.name}" for name, pod in names.items())
    await ctx.probe.until(
        f"{client.name} reaches each pod of the StatefulSet by its DNS name",
        attempt,
        window=ctx.times.service_reachable,
        pod=client,
        command=command,
        expected=expected,
    )
    if wrong:
        (name, seen), *_ = wrong.items()
        pod = names[name]
        raise CheckFailed(
            f"{describe(client)} does not reach {pod.name} (now {pod.address} on node {pod.node.name}) by its name "
            f"{name}, after a pod of its StatefulSet was recreated: {seen}",
            expected=expected,
            observed="; ".join(f"{name}: {seen}" for name, seen in wrong.items()),
            next_step=f"compare the answer of cluster DNS for {name} with the pod's address",
        )
