"""Services as every category reaches them: at all their ports, over TCP and UDP, by cluster IP and by NodePort."""

from __future__ import annotations

import math
import random
from collections import Counter

from winready.checks.context import Context
from winready.checks.fixtures import Service
from winready.cluster.commands import NETEXEC_HTTP, fetch
from winready.cluster.failures import CheckBlocked
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import describe, every

MOST_PAIRS = 150
"""As many pairs of a client and a node are all tried: ten Windows nodes and two Linux ones, and a few more."""
PARTNERS = 4
RECORDED = 50
"""As many nodes are asked for what is recorded and not judged."""


async def reach_service(
    ctx: Context,
    clients: list[Pod],
    service: Service,
    servers: list[Pod],
    what: str,
    *,
    hold: float | None = None,
    keep: bool = False,
) -> None:
    """Every client is answered by each of the servers at all ports of the service's cluster IP, and goes on to be.

    ``keep``: one connection of each lasts meanwhile.
    """
    await every(
        *(
            ctx.probe.reach(
                client,
                service.cluster_ip,
                service.port,
                servers,
                what,
                window=ctx.times.service_reachable,
                everyone=True,
                udp=service.udp_port,
                also=service.also,
                hold=hold,
                keep=keep,
            )
            for client in clients
        )
    )


async def reach_node_port(
    ctx: Context,
    client: Pod,
    node: Node,
    service: Service,
    servers: list[Pod],
    what: str,
    *,
    hold: float,
    everyone: bool = False,
    keep: bool = False,
) -> None:
    """The client reaches all ports of the service on that node, over TCP and UDP; ``keep``: and a connection lasts."""
    if not node.addresses:
        raise CheckBlocked(f"node {node.name} has no InternalIP address to try the NodePort on")
    kind = "Windows" if node.windows else "Linux"
    await ctx.probe.reach(
        client,
        node.addresses[0],
        service.node_port,
        servers,
        f"{what} through the NodePort of {kind} node {node.name}",
        window=ctx.times.service_reachable,
        everyone=everyone,
        hint=f"look at the service proxy and the firewall of node {node.name}",
        udp=service.udp_node_port,
        also=service.also_on_nodes,
        hold=hold,
        keep=keep,
    )


def partners(ctx: Context, clients: list[Pod], nodes: list[Node], what: str) -> list[tuple[Pod, Node]]:
    """Who asks whom: every client every node but its own, or, where these are very many pairs, a part of them.

    Then each client still asks at least ``PARTNERS`` nodes and each node is asked by as many clients: what is wrong
    with a node shows in each of its pairs, so that nobody has to try them all. What is wrong between two nodes alone
    may be missed; who meets whom is dealt anew for each run, by its id.
    """
    every_pair = len(clients) * len(nodes)
    dealt = (PARTNERS + 1) * max(len(clients), len(nodes))
    sampled = MOST_PAIRS < every_pair > dealt
    if sampled:
        chance = random.Random(f"{ctx.settings.run_id} {what}")
        places = _dealt(len(clients), len(nodes), dealt)
        clients, nodes = chance.sample(clients, len(clients)), chance.sample(nodes, len(nodes))
        met = [(clients[one], nodes[other]) for one, other in places]
    else:
        met = [(client, node) for client in clients for node in nodes]
    pairs = [(client, node) for client, node in met if client.node.name != node.name]
    if sampled:
        asks, asked = Counter(client.name for client, _ in pairs), Counter(node.name for _, node in pairs)
        ctx.evidence.fact(
            f"sample of pairs, {what}",
            f"{len(pairs)} of {every_pair}, dealt by the run's id: each of {len(clients)} clients asks "
            f"{min(asks.values())} to {max(asks.values())} nodes, each of {len(nodes)} nodes is asked by "
            f"{min(asked.values())} to {max(asked.values())} clients; what is wrong with a node shows in all its pairs",
        )
    return pairs


def _dealt(rows: int, columns: int, count: int) -> list[tuple[int, int]]:
    """So many different places of a table, each row and each column as often as any other, give or take one."""
    # Counting through rows and columns at once meets each place of one diagonal before any twice; then comes another.
    shared = math.gcd(rows, columns)
    length = rows * columns // shared
    step = max(1, shared // -(-count // length))
    return [(k % rows, (k + k // length * step) % columns) for k in range(count)]


def asked_by_others(clients: list[Pod], nodes: list[Node]) -> list[tuple[Pod, Node]]:
    """For each node one client on another; they take turns, so that each node is asked and each client asks."""
    at_home: dict[str, list[int]] = {}
    for place, client in enumerate(clients):
        at_home.setdefault(client.node.name, []).append(place)
    pairs = []
    for number, node in enumerate(node for node in nodes if node.addresses):
        own = at_home.get(node.name, [])
        if len(own) == len(clients):
            continue
        turn = number % (len(clients) - len(own))
        for place in own:
            turn += turn >= place
        pairs.append((clients[turn], node))
    return pairs


async def require_reachable_pods(ctx: Context, clients: list[Pod], servers: list[Pod]) -> None:
    """Control: every client reaches every server by its first pod IP, or what stands before them cannot be judged."""
    await every(*(_require(ctx, client, server) for client in clients for server in servers))


async def _require(ctx: Context, client: Pod, server: Pod) -> None:
    host = f"[{server.address}]" if ":" in server.address else server.address
    url = f"http://{host}:{NETEXEC_HTTP}/hostname"
    result = await ctx.probe.until(
        f"control: {client.name} reaches {server.name} by pod IP",
        lambda: ctx.probe.fetch_name(client, url, [server.name]),
        window=ctx.times.pod_reachable,
        pod=client,
        command=fetch(client.os, url),
        expected=server.name,
        target=f"{server.address}:{NETEXEC_HTTP}",
    )
    if not result.ok:
        raise CheckBlocked(
            f"{describe(client)} does not reach {describe(server)} even by its pod IP {server.address}: {result.seen}",
            next_step="repair the pod network between these nodes first",
        )
