"""A deleted service is gone, and nothing else with it."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.fixtures import Service
from winready.checks.reaching import asked_by_others
from winready.cluster.commands import Ask, dial_all
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe, every
from winready.cluster.resources import SERVICES


async def see_it_gone(
    ctx: Context, namespace: Namespace, clients: list[Pod], service: Service, neighbour: Service | None = None
) -> list[Pod]:
    """Delete a service: its old addresses stop answering, those of a neighbour over the same pods do not.

    Returns the clients that the neighbour answers.
    """
    known = (
        await every(*(_answers(ctx, client, neighbour) for client in clients)) if neighbour else [False] * len(clients)
    )
    await namespace.delete(SERVICES, service.name)
    nodes = {client.name: list[Node]() for client in clients}
    for client, node in asked_by_others(clients, ctx.nodes):
        nodes[client.name].append(node)
    await every(
        *(
            _silent(ctx, client, nodes[client.name], service, neighbour if before else None)
            for client, before in zip(clients, known, strict=True)
        )
    )
    return [client for client, before in zip(clients, known, strict=True) if before]


async def still_answers(ctx: Context, client: Pod, neighbour: Service) -> None:
    """What was deleted is out of the tables at once; what went with it may be missed at their next change only."""
    asks = [Ask(neighbour.cluster_ip, neighbour.port, 2)]

    async def attempt() -> Try:
        found = await _answers(ctx, client, neighbour)
        return Try(found, "it answers" if found else "it does not answer any more")

    result = await ctx.probe.until(
        f"{client.name} still reaches service {neighbour.name}",
        attempt,
        window=ctx.times.service_gone,
        pod=client,
        command=dial_all(client.os, asks),
        expected="answers, as before another service over the same pods was deleted",
        target=neighbour.cluster_ip,
    )
    if not result.ok:
        raise CheckFailed(
            f"{describe(client)}: service {neighbour.name} is gone since another one over the same pods was deleted",
            expected="only the deleted service is gone",
            observed=result.seen,
            next_step=f"compare the load balancers that the service proxy of node {client.node.name} has with the "
            "services there are",
        )


async def _answers(ctx: Context, client: Pod, service: Service) -> bool:
    """Whether it does now: what did not answer before cannot get lost."""
    (result,) = await ctx.probe.dial(client, [Ask(service.cluster_ip, service.port, 2)])
    return bool(result.answers)


def _addresses(service: Service, nodes: list[Node]) -> list[Ask]:
    """All that answered for the service: each port has load balancers of its own, at the cluster IP and on nodes."""
    asks = [Ask(service.cluster_ip, port) for port in (service.port, *service.also)]
    asks.append(Ask(service.cluster_ip, service.udp_port, protocol="udp"))
    for node in nodes:
        asks += [Ask(node.addresses[0], port) for port in (service.node_port, *service.also_on_nodes)]
        asks.append(Ask(node.addresses[0], service.udp_node_port, protocol="udp"))
    return asks


async def _silent(ctx: Context, client: Pod, nodes: list[Node], service: Service, neighbour: Service | None) -> None:
    """The old addresses stop answering, while another service answers in the same round.

    Each is asked by a command of its own, side by side: what is gone takes seconds to say nothing.
    """
    control = await ctx.service("linux")
    old = _addresses(service, nodes)
    others = [Ask(each.cluster_ip, each.port, 2) for each in (control, neighbour) if each is not None]
    places = {node.addresses[0]: f"the NodePort of node {node.name} at " for node in nodes}
    problem = ""

    async def attempt() -> Try:
        nonlocal problem
        rounds = await every(*(ctx.probe.dial(client, [ask, *others]) for ask in old))
        alive = [
            f"{places.get(ask.host, '')}{ask.host}:{ask.port}"
            for ask, (each, *_) in zip(old, rounds, strict=True)
            if each.answers
        ]
        lost = [ask for _, *results in rounds for ask, each in zip(others, results, strict=True) if not each.answers]
        problem = "control" if others[0] in lost else "neighbour" if lost else "stale" if alive else ""
        told = {
            "control": f"the control service {control.cluster_ip}:{control.port} does not answer either",
            "neighbour": f"service {neighbour.name} over the same pods is gone, too" if neighbour else "",
            "stale": f"{', '.join(alive)} still answers",
        }
        return Try(not problem, told.get(problem, "silent, and others answer"))

    result = await ctx.probe.until(
        f"{client.name} no longer reaches the deleted service",
        attempt,
        window=ctx.times.service_gone,
        pod=client,
        command=dial_all(client.os, [old[0], *others]),
        expected=f"no connection there, nor to {', '.join(f'{ask.host}:{ask.port}' for ask in old[1:])}, each asked "
        "by a command of its own, and answers from other services each time",
        target=service.cluster_ip,
    )
    if result.ok:
        return
    after = f"{ctx.times.service_gone:g} s after service {service.name} was deleted"
    if problem == "control":
        raise CheckBlocked(f"{describe(client)}: {result.seen}", next_step="repair services in general first")
    raise CheckFailed(
        f"{describe(client)}: {result.seen} {after}",
        expected="only the deleted service is gone",
        observed=result.seen,
        next_step=f"compare the load balancers that the service proxies of nodes "
        f"{', '.join((client.node.name, *(node.name for node in nodes)))} have with the services there are",
    )
