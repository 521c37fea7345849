"""NodePorts, tried on every node: a defect on one node hides from whoever tries another."""

from __future__ import annotations

import asyncio

from winready.checks.context import Context
from winready.checks.fixtures import Service
from winready.checks.reaching import RECORDED, asked_by_others, partners, reach_node_port
from winready.cluster.commands import fetch
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import every


async def reach_on_every_node(
    ctx: Context, clients: list[Pod], service: Service, servers: list[Pod], what: str, control: list[Pod]
) -> None:
    """Each client reaches the service on every node but its own, for minutes; blocked when no node answers anybody."""
    pairs = partners(ctx, clients, ctx.nodes, what)
    if not pairs:
        raise CheckBlocked("there is no node besides the clients' own to try the NodePort on")
    # Each node's connection that lasts is that of a pair which is tried: of few nodes all are, of very many a part.
    keeping = {node.name: client.name for client, node in reversed(pairs)}
    tried = {(client.name, node.name) for client, node in pairs}
    turns = {node.name: client.name for client, node in asked_by_others(clients, ctx.nodes)}
    keeping |= {node: client for node, client in turns.items() if (client, node) in tried}
    outcomes = await asyncio.gather(
        *(
            reach_node_port(
                ctx,
                client,
                node,
                service,
                servers,
                what,
                hold=ctx.times.observe,
                keep=keeping[node.name] == client.name,
            )
            for client, node in pairs
        ),
        return_exceptions=True,
    )
    await _record_own_nodes(ctx, clients, service, servers)
    if all(isinstance(outcome, CheckFailed) for outcome in outcomes):
        await _require_some_answer(ctx, control, service, servers)
    await every(*(_again(outcome) for outcome in outcomes))


async def _again(outcome: BaseException | None) -> None:
    if outcome is not None:
        raise outcome


async def _record_own_nodes(ctx: Context, clients: list[Pod], service: Service, servers: list[Pod]) -> None:
    """Whether a pod reaches the NodePort of its own node differs between Windows networks: recorded, not judged."""

    async def record(client: Pod) -> None:
        url = f"http://{client.node.addresses[0]}:{service.node_port}/hostname"
        result = await ctx.probe.fetch_name(client, url, [pod.name for pod in servers])
        ctx.evidence.fact(f"own node's NodePort from {client.name}", result.seen)

    await asyncio.gather(*(record(client) for client in clients[:RECORDED] if client.node.addresses))


async def _require_some_answer(ctx: Context, control: list[Pod], service: Service, servers: list[Pod]) -> None:
    """If pods of the other OS get no answer on any node either, it is the network between nodes, not Windows."""
    for client in control:
        for node in ctx.nodes:
            if node.name == client.node.name or not node.addresses:
                continue
            url = f"http://{node.addresses[0]}:{service.node_port}/hostname"
            result = await ctx.probe.fetch_name(client, url, [pod.name for pod in servers])
            title = f"control: {client.name} tries the NodePort of {node.name}"
            ctx.probe.record(title, result, client, fetch(client.os, url), "any answer")
            if result.ok:
                return
    raise CheckBlocked(
        f"NodePort {service.node_port} answers nobody on any node, not even pods of the other operating system",
        next_step="look for a firewall or security group between the nodes that closes the NodePort range",
    )
