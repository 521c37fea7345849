"""What faults of one IP family look like from pods."""

from __future__ import annotations

from sandbox.faults.bench import SHORT, Bench
from sandbox.faults.case import Case


def _n(node: str) -> str:
    return node.rpartition("-")[2]


def _ends(answer: str) -> str:
    """The app behind an answer, or how the attempt ended."""
    return answer.rpartition("-")[0] if answer[-1].isdigit() else answer


def _client(node: str) -> str:
    return f"{node[0]}c-{_n(node)}"


async def dual_service(b: Bench, node: str) -> str:
    """A pod of the node calls a service of both families by its IPv6 and its IPv4 address."""
    four, six = b.services["ls"]["spec"]["clusterIPs"]
    client = _client(node)
    return f"{_ends(await b.fetch(client, six, 80))} {_ends(await b.fetch(client, four, 80))}"


async def ipv6_service(b: Bench, node: str) -> str:
    """A pod of the node calls a new service that has IPv6 only, and one that has IPv4 only."""
    found = []
    for family in ("IPv6", "IPv4"):
        async with b.service(ipFamilyPolicy="SingleStack", ipFamilies=[family]) as made:
            address = made["spec"]["clusterIP"]

            async def answers(address: str = address) -> bool:
                return _ends(await b.fetch(_client(node), address, 80)) == "ls"

            found.append("ls" if await b.until(answers, SHORT) else "time-out")
    return " ".join(found)


async def ipv6_node_port(b: Bench, node: str) -> str:
    """A Linux pod calls a NodePort of the node by IPv6 and by IPv4."""
    port = int(b.services["ls"]["spec"]["ports"][0]["nodePort"])
    four, six = b.addresses[node][:2]
    return f"{_ends(await b.fetch('lc-2', six, port))} {_ends(await b.fetch('lc-2', four, port))}"


async def families_of_new_pod(b: Bench, node: str) -> str:
    """How many addresses a new pod has."""
    async with b.pod(node) as made:
        return str(len(made["status"]["podIPs"]))


FAMILY_CASES = [
    Case("service-proxy.windows.ipv4-only", ipv6_service, "ls ls", "time-out ls"),
    Case("service-proxy.windows.second-family-missing", dual_service, "ls ls", "time-out ls"),
    Case("service-proxy.windows.ipv6-nodeport-dead", ipv6_node_port, "ls ls", "time-out ls"),
    Case("service-proxy.windows.ipv6-cluster-ip-dead", dual_service, "ls ls", "time-out ls"),
    Case("service-proxy.linux.ipv4-only", ipv6_service, "ls ls", "time-out ls"),
    Case("link.windows.pods-without-ipv6", families_of_new_pod, "2", "1"),
    Case("link.windows.no-pod-with-ipv6", families_of_new_pod, "2", "1"),
]
