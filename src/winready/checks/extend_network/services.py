"""Services of one IP family at a time, by their cluster IPs and on the NodePorts of every node."""

from __future__ import annotations

import asyncio

from winready.checks.context import Context
from winready.checks.extend_network.families import (
    FAMILIES,
    Family,
    FamilyService,
    Side,
    address_of,
    family_service,
    knows_both,
)
from winready.checks.reaching import partners
from winready.cluster.commands import Os, dial, dial_seconds, read_dial
from winready.cluster.failures import CheckBlocked, CheckFailed, NotApplicable
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, every

TRIES = 4
"""Of a control: one of several servers may be out of reach."""


async def reach_cluster_ips(ctx: Context, clients: Side, servers: Side, os: Os) -> None:
    """Each client is answered by every server, over TCP and UDP, through a cluster IP of either family."""
    services = {family: await family_service(ctx, os, family) for family in FAMILIES}
    await every(
        *clients.complaints(),
        *servers.complaints(),
        *(
            ctx.probe.reach(
                client,
                service.addresses[family],
                service.port,
                servers.of(family),
                f"the {family} service of the {os.capitalize()} pods",
                window=ctx.times.service_reachable,
                everyone=True,
                udp=service.udp,
                also=(service.second,),
            )
            for client in clients.pods
            for family, service in services.items()
        ),
    )


async def reach_node_ports(ctx: Context, clients: Side, servers: Side, os: Os, control: Side) -> None:
    """Each client reaches the service of either family on every node but its own."""
    services = {family: await family_service(ctx, os, family) for family in FAMILIES}
    nodes = {family: nodes_with(ctx, family) for family in FAMILIES}
    await every(
        *clients.complaints(),
        *servers.complaints(),
        *(_complain(node, family) for family in FAMILIES for node in nodes[family][1]),
        *(
            _reach_family(ctx, clients, servers, service, family, nodes[family][0], control)
            for family, service in services.items()
        ),
    )


def nodes_with(ctx: Context, family: Family) -> tuple[list[Node], list[Node]]:
    """Nodes with an address of a family, and those without although nodes of the same system have one."""
    having, lacking = [], []
    for os in ("windows", "linux"):
        nodes = [node for node in ctx.nodes if node.os == os and (family == "IPv4" or knows_both(node))]
        able = [node for node in nodes if address_of(node.addresses, family)]
        having += able
        lacking += [node for node in nodes if able and node not in able]
        if not able:
            ctx.evidence.fact(f"{os} nodes without an {family} InternalIP", [node.name for node in nodes])
    if not having:
        raise NotApplicable(
            f"no node has an InternalIP of {family}, so that there are no {family} NodePorts; they can be judged once "
            f"kubelets run with a --node-ip of each family"
        )
    return having, lacking


async def _complain(node: Node, family: Family) -> None:
    raise CheckFailed(
        f"node {node.name} has no InternalIP of {family}, which other {node.os.capitalize()} nodes have: "
        f"there is no {family} NodePort on it",
        expected="an InternalIP of each family",
        observed=", ".join(node.addresses),
        next_step=f"look at the --node-ip of the kubelet on node {node.name}",
    )


async def _reach_family(
    ctx: Context,
    clients: Side,
    servers: Side,
    service: FamilyService,
    family: Family,
    nodes: list[Node],
    control: Side,
) -> None:
    pairs = partners(ctx, clients.pods, nodes, f"the {family} NodePort of {nodes[0].os} nodes") if nodes else []
    if not pairs:
        raise CheckBlocked(f"there is no node besides the clients' own to try the {family} NodePort on")
    what = f"the {servers.everyone[0].os.capitalize()} pods through the {family} NodePort"
    outcomes = await asyncio.gather(
        *(
            ctx.probe.reach(
                client,
                address_of(node.addresses, family),
                service.node_port,
                servers.of(family),
                f"{what} of {node.os.capitalize()} node {node.name}",
                window=ctx.times.service_reachable,
                hint=f"look at the service proxy and the firewall of node {node.name}",
                udp=service.node_udp,
                also=(service.node_second,),
            )
            for client, node in pairs
        ),
        return_exceptions=True,
    )
    if all(isinstance(outcome, CheckFailed) for outcome in outcomes):
        await _require_some_answer(ctx, control, service, family, nodes)
    await every(*(_again(outcome) for outcome in outcomes))


async def _again(outcome: BaseException | None) -> None:
    if outcome is not None:
        raise outcome


async def _require_some_answer(
    ctx: Context, control: Side, service: FamilyService, family: Family, nodes: list[Node]
) -> None:
    """If pods of the other OS get no answer on any node either, it is the network between nodes, not Windows."""
    for client in control.pods:
        for node in nodes:
            if node.name != client.node.name and await _answers(ctx, client, service, family, node):
                return
    raise CheckBlocked(
        f"{family} NodePort {service.node_port} answers nobody on any node, not even pods of the other operating "
        f"system",
        next_step="look for a firewall or security group between the nodes that closes the NodePort range",
    )


async def _answers(ctx: Context, client: Pod, service: FamilyService, family: Family, node: Node) -> bool:
    address = address_of(node.addresses, family)
    command = dial(client.os, address, service.node_port, TRIES)
    result = await client.run(command, seconds=dial_seconds(TRIES))
    dialled = read_dial(result.stdout)
    # Who answered is left out where the last try failed; fewer errors than tries tell that somebody did.
    ok = bool(dialled.answers) or (dialled.tried and len(dialled.errors) < TRIES)
    seen = ", ".join([*dialled.answers, *dialled.errors])
    title = f"control: {client.name} tries the {family} NodePort of {node.name}"
    ctx.probe.record(title, Try(ok, seen, result), client, command, "any answer", f"{address}:{service.node_port}")
    return ok
