"""What faults of the network look like from pods and nodes."""

from __future__ import annotations

from sandbox.faults.bench import NAMESPACE, OTHER, SHORT, Bench, service
from sandbox.faults.case import Case
from winready.cluster.resources import ENDPOINT_SLICES, NETWORK_POLICIES, SERVICES

DOMAIN = f"{NAMESPACE}.svc.cluster.local"


def _n(node: str) -> str:
    return node.rpartition("-")[2]


def _app(answer: str) -> str:
    """The app behind an answer, or how the attempt ended."""
    name, _, number = answer.rpartition("-")
    if number.isdigit():
        return name
    return answer if answer in ("time-out", "no name") else "another"


def _vip(b: Bench, name: str, family: int = 0) -> str:
    return str(b.services[name]["spec"]["clusterIPs"][family])


def _node_port(b: Bench, name: str) -> int:
    return int(b.services[name]["spec"]["ports"][0]["nodePort"])


async def service_ip(b: Bench, node: str) -> str:
    """A Windows pod calls a service."""
    return _app(await b.fetch(f"wc-{_n(node)}", _vip(b, "ls"), 80))


async def service_ip_from_linux(b: Bench, node: str) -> str:
    """A Linux pod calls a service."""
    return _app(await b.fetch(f"lc-{_n(node)}", _vip(b, "ws"), 80))


async def new_service(b: Bench, node: str) -> str:
    """A Windows pod calls a service that was just made."""
    async with b.service() as made:

        async def answers() -> bool:
            return _app(await b.fetch(f"wc-{_n(node)}", made["spec"]["clusterIP"], 80)) == "ls"

        return "ls" if await b.until(answers, SHORT) else "time-out"


async def recreated_service(b: Bench, node: str) -> str:
    """Who answers at a service's address after it was deleted and made again for other pods."""
    async with b.service() as first:
        name, address = first["metadata"]["name"], first["spec"]["clusterIP"]

        async def answered_by(app: str) -> bool:
            return _app(await b.fetch(f"wc-{_n(node)}", address, 80)) == app

        if not await b.until(lambda: answered_by("ls"), SHORT):
            return "nobody"
        await b.client.delete(SERVICES, name, NAMESPACE)
        await b.create(SERVICES, service(name, "lc", clusterIP=address))
        return "lc" if await b.until(lambda: answered_by("lc"), SHORT) else "ls"


async def moved_endpoints(b: Bench, node: str) -> str:
    """Who answers for a service whose EndpointSlice was pointed at another pod."""
    name = b.name("moving")
    made = await b.create(SERVICES, {"metadata": {"name": name}, "spec": {"ports": [{"name": "http", "port": 80}]}})
    address = made["spec"]["clusterIP"]

    def pointed(pod: str) -> dict[str, object]:
        return {"endpoints": [{"addresses": [b.addresses[pod][0]], "conditions": {"ready": True}}]}

    entry = {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}],
    }
    await b.create(ENDPOINT_SLICES, {**entry, **pointed("ls-1")})
    seen: set[str] = set()

    async def reaches(pod: str) -> bool:
        seen.update((await b.dial(f"wc-{_n(node)}", address, 80, 4))[0])
        return pod in seen

    try:
        await b.until(lambda: reaches("ls-1"), SHORT)
        await b.client.patch(ENDPOINT_SLICES, name, pointed("ls-2"), NAMESPACE)
        seen.clear()
        await b.until(lambda: reaches("ls-2"), SHORT)
        return ",".join(sorted((await b.dial(f"wc-{_n(node)}", address, 80, 10))[0]))
    finally:
        await b.client.delete(SERVICES, name, NAMESPACE)
        await b.client.delete(ENDPOINT_SLICES, name, NAMESPACE)


async def back_ends(b: Bench, node: str) -> str:
    """How many pods answer a dozen connections to a service."""
    return str(len((await b.dial(f"wc-{_n(node)}", _vip(b, "ls"), 80, 12))[0]))


async def node_port(b: Bench, node: str) -> str:
    """A Linux pod calls a NodePort of the node."""
    return _app(await b.fetch("lc-2", b.addresses[node][0], _node_port(b, "ls")))


async def own_node_port(b: Bench, node: str) -> str:
    """The node calls a NodePort at its own address."""
    host = "hp" if node.startswith("windows") else "lh"
    return _app(await b.fetch(f"{host}-{_n(node)}", b.addresses[node][0], _node_port(b, "ls")))


async def service_ip_from_node(b: Bench, node: str) -> str:
    """The node itself calls a service."""
    return _app(await b.fetch(f"hp-{_n(node)}", _vip(b, "ls"), 80))


async def udp_service(b: Bench, node: str) -> str:
    """A Windows pod sends a datagram to a service."""
    return await b.connects(f"wc-{_n(node)}", f"{_vip(b, 'ls')}:90", "--protocol=udp")


async def full_name(b: Bench, node: str) -> str:
    """A Windows pod calls a new service by its full name; new, as answers are cached."""
    async with b.service() as made:
        return _app(await b.fetch(f"wc-{_n(node)}", f"{made['metadata']['name']}.{DOMAIN}", 80))


async def bare_name(b: Bench, node: str) -> str:
    """A Windows pod resolves the bare name of a new service."""
    async with b.service() as made:
        found = await b.connects(f"wc-{_n(node)}", f"{made['metadata']['name']}:80")
        return "no name" if found == "no name" else "a name"


async def outside_name(b: Bench, node: str) -> str:
    """A Windows pod resolves a name of the outside world."""
    return await b.connects(f"wc-{_n(node)}", "registry.k8s.io:443")


async def own_dns_settings(b: Bench, node: str) -> str:
    """The DNS suffix that a pod with a dnsConfig has."""
    return "own" if "bench.test" in (await b.run(f"wd-{_n(node)}", "/agnhost", "dns-suffix"))[1] else "others"


async def host_alias(b: Bench, node: str) -> str:
    """A pod connects to a name from its hostAliases."""
    return await b.connects(f"wd-{_n(node)}", "alias.bench.test:8080")


async def outbound(b: Bench, node: str) -> str:
    """A pod of the node calls a pod elsewhere."""
    return _app(await b.fetch(f"wc-{_n(node)}", b.addresses["ls-1"][0], 8080))


async def inbound(b: Bench, node: str) -> str:
    """A pod elsewhere calls a pod of the node."""
    return _app(await b.fetch("lc-1", b.addresses[f"ws-{_n(node)}"][0], 8080))


async def both_ways(b: Bench, node: str) -> str:
    """Out and in."""
    return f"{await outbound(b, node)} {await inbound(b, node)}"


async def twenty_calls(b: Bench, node: str) -> str:
    """How many of twenty connections to a pod elsewhere fail."""
    _, errors = await b.dial(f"wc-{_n(node)}", b.addresses["ls-1"][0], 8080, 20)
    return "none" if errors == 0 else "some" if errors < 12 else "most"


async def round_trip(b: Bench, node: str) -> str:
    """What ping says of the way to another node's pod."""
    _, text = await b.run(f"wc-{_n(node)}", "ping.exe", "-n", "1", b.addresses["ls-1"][0])
    return "long" if "time=40" in text else "short" if "TTL=" in text else text


async def ipv6(b: Bench, node: str) -> str:
    """A pod of the node calls a pod elsewhere by its IPv6 address, and by IPv4."""
    return f"{_app(await b.fetch(f'wc-{_n(node)}', b.addresses['ls-1'][1], 8080))} {await outbound(b, node)}"


async def pod_address(b: Bench, node: str) -> str:
    """Whether a new pod has an address for itself."""
    taken = {b.addresses[f"{kind}-{_n(node)}"][0] for kind in ("wc", "ws", "wd", "wk", "wp", "wn") if kind != "wd"}
    async with b.pod(node) as made:
        return "shared" if made["status"]["podIP"] in taken else "own"


async def _callers(b: Bench, server: str) -> str:
    address = b.addresses[server][0]
    answers = {
        "a": await b.fetch("lc-1", address, 8080),
        "b": await b.fetch("lc-2", address, 8080),
        "y": await b.fetch("ly", address, 8080, namespace=OTHER),
    }
    return " ".join(who for who, answer in answers.items() if answer == server)


async def pods_allowed(b: Bench, node: str) -> str:
    """Who reaches a server whose policy lets in pod ``a`` of its namespace only."""
    return await _callers(b, f"wp-{_n(node)}")


async def namespaces_allowed(b: Bench, node: str) -> str:
    """Who reaches a server whose policy lets in pods of its own namespace only."""
    return await _callers(b, f"wn-{_n(node)}")


async def removed_policy(b: Bench, node: str) -> str:
    """Whether a server is reached again after a policy against it was deleted."""
    server = f"ws-{_n(node)}"

    async def reached(wanted: bool) -> bool:
        return (await b.fetch("lc-1", b.addresses[server][0], 8080) == server) is wanted

    name = b.name("deny")
    spec = {"podSelector": {"matchLabels": {"app": "ws", "node": node}}, "policyTypes": ["Ingress"]}
    await b.create(NETWORK_POLICIES, {"metadata": {"name": name}, "spec": spec})
    closed = await b.until(lambda: reached(False), SHORT)
    await b.client.delete(NETWORK_POLICIES, name, NAMESPACE)
    return "open" if closed and await b.until(lambda: reached(True), SHORT) else "closed"


NETWORK_CASES = [
    Case("service-proxy.windows.not-programmed", service_ip, "ls", "time-out"),
    Case("service-proxy.windows.stopped", new_service, "ls", "time-out"),
    Case("service-proxy.windows.stale-after-recreate", recreated_service, "lc", "ls"),
    Case("service-proxy.windows.stale-endpoints", moved_endpoints, "ls-2", "ls-1,ls-2"),
    Case("service-proxy.windows.partial-backends", back_ends, "2", "1"),
    Case("service-proxy.windows.nodeport-dead", node_port, "ls", "time-out"),
    Case("service-proxy.windows.wrong-backend", service_ip, "ls", "ws"),
    Case("service-proxy.linux.not-programmed", service_ip_from_linux, "ws", "time-out"),
    Case("service-proxy.windows.udp-dead", udp_service, "reached", "not reached"),
    Case("service-proxy.windows.own-nodeport-dead", own_node_port, "ls", "time-out"),
    Case("service-proxy.linux.own-nodeport-dead", own_node_port, "ls", "time-out"),
    Case("service-proxy.windows.host-left-out", service_ip_from_node, "ls", "time-out"),
    Case("dns.windows.dead", bare_name, "a name", "no name"),
    Case("dns.windows.no-search-path", bare_name, "a name", "no name"),
    Case("dns.windows.dns-config-ignored", own_dns_settings, "own", "others"),
    Case("dns.windows.host-aliases-ignored", host_alias, "reached", "no name"),
    Case("dns.windows.external-dead", outside_name, "reached", "no name"),
    Case("dns.windows.wrong-answers", full_name, "ls", "time-out"),
    Case("link.windows.one-way-out", both_ways, "ls ws", "time-out ws"),
    Case("link.windows.one-way-in", both_ways, "ls ws", "ls time-out"),
    Case("link.windows.loss", twenty_calls, "none", "some"),
    Case("link.windows.slow", round_trip, "short", "long"),
    Case("link.windows.duplicate-pod-ip", pod_address, "own", "shared"),
    Case("link.windows.ipv6-dead", ipv6, "ls ls", "time-out ls"),
    Case("policy.windows.not-enforced", pods_allowed, "a", "a b y"),
    Case("policy.windows.blocks-all", pods_allowed, "a", ""),
    Case("policy.windows.pods-ignored", pods_allowed, "a", "a b"),
    Case("policy.windows.namespaces-ignored", namespaces_allowed, "a b", "a b y"),
    Case("policy.windows.never-removed", removed_policy, "open", "closed"),
]
