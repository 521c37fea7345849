"""What faults look like that show only with many connections, large ones, datagrams, or after a while."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial

from sandbox.faults.bench import NAMESPACE, SHORT, Bench
from sandbox.faults.case import Case
from sandbox.faults.network_cases import (
    _app,
    _n,
    _vip,
    back_ends,
    inbound,
    moved_endpoints,
    new_service,
    node_port,
    udp_service,
)
from winready.cluster.resources import ENDPOINT_SLICES, SERVICES

LARGE = "x" * 3000
SETTLED = 40
"""Seconds after which every service proxy has heard of a change."""
TEN = ["ws-1", "ws-2", "ls-1", "ls-2", "lc-1", "lc-2", "lk-1", "lk-2", "wk-1", "wk-2"]


async def _dialled(b: Bench, pod: str, address: str, port: int, tries: int, protocol: str) -> tuple[set[str], int]:
    """Who answers several questions of a pod, and how many of them fail."""
    path = f"dial?host={address}&port={port}&protocol={protocol}&request=hostname&tries={tries}"
    curl = "curl.exe" if pod.startswith("w") else "curl"
    _, text = await b.run(pod, curl, "-g", "-s", "--max-time", "400", f"http://127.0.0.1:8080/{path}")
    answer = json.loads(text or "{}")
    return set(answer.get("responses") or []), len(answer.get("errors") or [])


async def udp_node_port(b: Bench, node: str) -> str:
    """A Linux pod sends a datagram to a NodePort of the node."""
    port = b.services["ls"]["spec"]["ports"][1]["nodePort"]
    return await b.connects("lc-2", f"{b.addresses[node][0]}:{port}", "--protocol=udp")


async def deleted_node_port(b: Bench, node: str) -> str:
    """Whether the NodePort of a deleted service is silent."""
    async with b.service(type="NodePort") as made:
        port = made["spec"]["ports"][0]["nodePort"]

        async def answers() -> bool:
            return _app(await b.fetch("lc-2", b.addresses[node][0], port)) == "ls"

        if not await b.until(answers, SHORT):
            return "never there"
    await asyncio.sleep(60)
    return "there" if await answers() else "gone"


async def deleted_second_port(b: Bench, node: str) -> str:
    """Whether the ports of a deleted service's cluster IP are silent, the first and the second."""
    ports = [{"name": f"p{number}", "port": number, "targetPort": 8080} for number in (80, 81)]
    async with b.service(ports=ports) as made:

        async def answers(port: int) -> bool:
            return _app(await b.fetch(f"wc-{_n(node)}", made["spec"]["clusterIP"], port)) == "ls"

        if not await b.until(partial(answers, 81), SHORT):
            return "never there"
    await asyncio.sleep(60)
    return " ".join(["there" if await answers(port) else "gone" for port in (80, 81)])


async def deleted_udp_node_port(b: Bench, node: str) -> str:
    """Whether the NodePorts of a deleted service are silent, for connections and for datagrams."""
    async with b.service(type="NodePort") as made:
        tcp, udp = (f"{b.addresses[node][0]}:{port['nodePort']}" for port in made["spec"]["ports"])

        async def answers() -> bool:
            return await b.connects("lc-2", udp, "--protocol=udp") == "reached"

        if not await b.until(answers, SHORT):
            return "never there"
    await asyncio.sleep(60)
    return f"{await b.connects('lc-2', tcp)}, {await b.connects('lc-2', udp, '--protocol=udp')}"


async def service_of_two_minutes(b: Bench, node: str) -> str:
    """Who answers for a service two minutes after it first did."""
    async with b.service() as made:

        async def app() -> str:
            return _app(await b.fetch(f"wc-{_n(node)}", made["spec"]["clusterIP"], 80))

        async def answers() -> bool:
            return await app() == "ls"

        if not await b.until(answers, SHORT):
            return "never there"
        await asyncio.sleep(120)
        return await app()


async def service_of_one_minute(b: Bench, node: str) -> str:
    """Whether a service answers a minute after it was made."""
    async with b.service() as made:
        await asyncio.sleep(60)
        return _app(await b.fetch(f"wc-{_n(node)}", made["spec"]["clusterIP"], 80))


async def lost_of_thirty(b: Bench, node: str) -> str:
    """How many of thirty connections to a service fail."""
    return str((await _dialled(b, f"wc-{_n(node)}", _vip(b, "ls"), 80, 30, "http"))[1])


async def neighbour(b: Bench, node: str) -> str:
    """Who answers for a service after another one over the same pods was deleted."""
    async with b.service() as stays:
        async with b.service() as goes:

            async def both_answer() -> bool:
                addresses = [each["spec"]["clusterIP"] for each in (goes, stays)]
                return {_app(await b.fetch(f"wc-{_n(node)}", address, 80)) for address in addresses} == {"ls"}

            if not await b.until(both_answer, SHORT):
                return "never there"
        await asyncio.sleep(60)
        return _app(await b.fetch(f"wc-{_n(node)}", stays["spec"]["clusterIP"], 80))


async def _slice(b: Bench, pods: list[str]) -> str:
    """A service without selector over these pods, by a slice of its own name; returns the name."""
    name = b.name("slices")
    ports = [{"name": "http", "port": 80}, {"name": "udp", "port": 90, "protocol": "UDP"}]
    await b.create(SERVICES, {"metadata": {"name": name}, "spec": {"ports": ports}})
    entry = {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}, {"name": "udp", "port": 8081, "protocol": "UDP"}],
        "endpoints": _endpoints(b, pods),
    }
    await b.create(ENDPOINT_SLICES, entry)
    return name


def _endpoints(b: Bench, pods: list[str]) -> list[dict[str, object]]:
    return [{"addresses": [b.addresses[pod][0]], "conditions": {"ready": True}} for pod in pods]


async def _remove(b: Bench, name: str) -> None:
    await b.client.delete(SERVICES, name, NAMESPACE)
    await b.client.delete(ENDPOINT_SLICES, name, NAMESPACE)


async def back_ends_of_ten(b: Bench, node: str) -> str:
    """How many of ten pods behind a service answer."""
    name = await _slice(b, TEN)
    address = (await b.client.get(SERVICES, name, NAMESPACE))["spec"]["clusterIP"]

    async def seen() -> set[str]:
        return (await _dialled(b, f"wc-{_n(node)}", address, 80, 20, "http"))[0]

    try:
        await b.until(seen, SHORT)
        return str(len(await seen()))
    finally:
        await _remove(b, name)


async def back_ends_for_datagrams(b: Bench, node: str) -> str:
    """How many of two pods behind a service answer connections, and how many datagrams."""
    ways = [(80, "http"), (90, "udp")]
    seen = [(await _dialled(b, f"wc-{_n(node)}", _vip(b, "ls"), port, 10, kind))[0] for port, kind in ways]
    return " ".join(str(len(names)) for names in seen)


async def back_ends_of_second_port(b: Bench, node: str) -> str:
    """How many of two pods answer at the first port of a service, and how many at the second."""
    ports = [{"name": f"p{port}", "port": port, "targetPort": 8080} for port in (80, 81)]
    async with b.service(ports=ports) as made:

        async def seen(port: int) -> set[str]:
            return (await _dialled(b, f"wc-{_n(node)}", made["spec"]["clusterIP"], port, 10, "http"))[0]

        await b.until(lambda: seen(81), SHORT)
        return " ".join([str(len(await seen(port))) for port in (80, 81)])


async def unready_endpoint(b: Bench, node: str) -> str:
    """Who answers behind a slice of one pod that is ready and one that is not."""
    name = await _slice(b, ["ls-1"])
    address = (await b.client.get(SERVICES, name, NAMESPACE))["spec"]["clusterIP"]
    both = [*_endpoints(b, ["ls-1"]), {**_endpoints(b, ["ls-2"])[0], "conditions": {"ready": False}}]
    try:
        await b.client.patch(ENDPOINT_SLICES, name, {"endpoints": both}, NAMESPACE)
        await asyncio.sleep(SETTLED)
        return ",".join(sorted((await _dialled(b, f"wc-{_n(node)}", address, 80, 10, "http"))[0]))
    finally:
        await _remove(b, name)


async def second_slice(b: Bench, node: str) -> str:
    """Who answers behind two slices of one service."""
    name = await _slice(b, ["ls-1"])
    address = (await b.client.get(SERVICES, name, NAMESPACE))["spec"]["clusterIP"]
    more = await b.client.get(ENDPOINT_SLICES, name, NAMESPACE)
    labels = more["metadata"]["labels"]
    entry = {**more, "metadata": {"name": f"{name}-too", "labels": labels}, "endpoints": _endpoints(b, ["ls-2"])}
    await b.create(ENDPOINT_SLICES, entry)
    try:
        await asyncio.sleep(SETTLED)
        return ",".join(sorted((await _dialled(b, f"wc-{_n(node)}", address, 80, 10, "http"))[0]))
    finally:
        await b.client.delete(ENDPOINT_SLICES, f"{name}-too", NAMESPACE)
        await _remove(b, name)


async def moved_datagrams(b: Bench, node: str) -> str:
    """Who answers datagrams to a service whose EndpointSlice was pointed at another pod."""
    name = await _slice(b, ["ls-1"])
    address = (await b.client.get(SERVICES, name, NAMESPACE))["spec"]["clusterIP"]

    async def seen(tries: int = 4) -> set[str]:
        return (await _dialled(b, f"wc-{_n(node)}", address, 90, tries, "udp"))[0]

    async def sees(pod: str) -> bool:
        return pod in await seen()

    try:
        await b.until(lambda: sees("ls-1"), SHORT)
        await b.client.patch(ENDPOINT_SLICES, name, {"endpoints": _endpoints(b, ["ls-2"])}, NAMESPACE)
        await b.until(lambda: sees("ls-2"), SHORT)
        return ",".join(sorted(await seen(10)))
    finally:
        await _remove(b, name)


async def large_service_request(b: Bench, node: str) -> str:
    """Who answers a large request to a service, and to a pod."""
    client, path = f"wc-{_n(node)}", f"hostname?pad={LARGE}"
    through = _app(await b.fetch(client, _vip(b, "ls"), 80, path))
    return f"{through} {_app(await b.fetch(client, b.addresses['ls-1'][0], 8080, path))}"


async def large_requests(b: Bench, node: str) -> str:
    """Who answers a large request out of the node, and one into it."""
    path = f"hostname?pad={LARGE}"
    out = _app(await b.fetch(f"wc-{_n(node)}", b.addresses["ls-1"][0], 8080, path))
    return f"{out} {_app(await b.fetch('lc-1', b.addresses[f'ws-{_n(node)}'][0], 8080, path))}"


async def large_request_from_linux(b: Bench, node: str) -> str:
    """Who answers a large request out of a Linux node."""
    return _app(await b.fetch(f"lc-{_n(node)}", b.addresses["ws-2"][0], 8080, f"hostname?pad={LARGE}"))


async def lost_of_sixty(b: Bench, node: str) -> str:
    """Whether some of sixty datagrams to a pod elsewhere fail, and of sixty connections."""
    client, address = f"wc-{_n(node)}", b.addresses["ls-1"][0]
    datagrams = (await _dialled(b, client, address, 8081, 60, "udp"))[1]
    connections = (await _dialled(b, client, address, 8080, 60, "http"))[1]
    return " ".join("none" if not lost else "some" if lost < 10 else "many" for lost in (datagrams, connections))


async def round_trips(b: Bench, node: str) -> str:
    """Whether pings of another node's pod take about the same time."""
    _, text = await b.run(f"wc-{_n(node)}", "ping.exe", "-n", "6", b.addresses["ls-1"][0])
    times = [int(found) for found in re.findall(r"time[=<](\d+)ms", text)]
    return "uneven" if max(times) - min(times) > 50 else "even"


async def datagram(b: Bench, node: str) -> str:
    """A pod of the node sends a datagram to a pod elsewhere, and connects to it."""
    client, address = f"wc-{_n(node)}", b.addresses["ls-1"][0]
    sent = await b.connects(client, f"{address}:8081", "--protocol=udp")
    return f"{sent}, {await b.connects(client, f'{address}:8080')}"


async def pods_reached(b: Bench, node: str) -> str:
    """How many of three pods of the node are reached from elsewhere."""
    pods = [f"{kind}-{_n(node)}" for kind in ("ws", "wc", "wk")]
    answers = [await b.fetch("lc-1", b.addresses[pod][0], 8080) for pod in pods]
    reached = sum(answer == pod for answer, pod in zip(answers, pods, strict=True))
    return "all" if reached == len(pods) else "one or none" if reached <= 1 else "some"


async def pods_that_reach(b: Bench, node: str) -> str:
    """How many of three pods of the node reach a pod elsewhere."""
    pods = [f"{kind}-{_n(node)}" for kind in ("ws", "wc", "wk")]
    answers = [await b.fetch(pod, b.addresses["ls-2"][0], 8080) for pod in pods]
    reached = answers.count("ls-2")
    return "all" if reached == len(pods) else "one or none" if reached <= 1 else "some"


async def minute(b: Bench, node: str) -> str:
    """Whether connections of a minute, one every few seconds, all reach a pod elsewhere."""
    answers = []
    for _ in range(16):
        answers.append(await b.fetch(f"wc-{_n(node)}", b.addresses["ls-2"][0], 8080))
        await asyncio.sleep(4)
    lost = len(answers) - answers.count("ls-2")
    return "all" if not lost else "most" if lost <= 3 else "few"


async def large_datagram(b: Bench, node: str) -> str:
    """How a small and a large datagram to a pod elsewhere fare, and a large request."""
    pod, address = f"wc-{_n(node)}", b.addresses["ls-2"][0]
    found = []
    for protocol, port, start, size in (
        ("udp", 8081, "echo+", 9),
        ("udp", 8081, "echo+", 1340),
        ("http", 8080, "echo?msg=", 3000),
    ):
        request = start.replace("?", "%3F").replace("=", "%3D") + "x" * size
        path = f"dial?host={address}&port={port}&protocol={protocol}&tries=1&request={request}"
        _, text = await b.run(pod, "curl.exe", "-g", "-s", "--max-time", "30", f"http://127.0.0.1:8080/{path}")
        found.append("back" if json.loads(text).get("responses") == ["x" * size] else "lost")
    return " ".join(found)


async def beside_a_new_pod(b: Bench, node: str) -> str:
    """Who answers for an old pod once another one has started beside it."""
    async with b.pod(node):
        return await inbound(b, node)


async def address_elsewhere(b: Bench, node: str) -> str:
    """Whether a new pod has an address that a pod of another node has."""
    other = "12".replace(_n(node), "")
    taken = {b.addresses[f"{kind}-{other}"][0] for kind in ("wc", "ws", "wk", "wp", "wn")}
    async with b.pod(node) as made:
        return "shared" if made["status"]["podIP"] in taken else "own"


async def three_new_pods(b: Bench, node: str) -> str:
    """How many of three new pods a Linux pod reaches."""
    async with b.pod(node) as one, b.pod(node) as two, b.pod(node) as three:
        ways = [await b.connects("lc-1", f"{each['status']['podIP']}:8080") for each in (one, two, three)]
    return str(ways.count("reached"))


async def _kept(b: Bench, pod: str, url: str) -> str:
    """Whether a connection that is used every ten seconds lasts for a minute and a half."""
    pause = "http://127.0.0.1:8080/dial?host=127.0.0.1&port=8081&protocol=udp&request=pause&tries=2"
    uses = [url, pause] * 10
    _, text = await b.run(pod, "curl.exe", "-s", "--max-time", "15", "-w", "#%{num_connects}\\n", *uses)
    lines = text.splitlines()[::2]
    answered = sum(not line.startswith("#") for line in lines)
    return f"{answered} over {sum(int(line.rpartition('#')[2]) for line in lines)}"


async def connection_to_pod(b: Bench, node: str) -> str:
    """A Windows pod keeps a connection to a Linux pod."""
    return await _kept(b, f"wc-{_n(node)}", f"http://{b.addresses['ls-1'][0]}:8080/hostname")


async def connection_to_service(b: Bench, node: str) -> str:
    """A Windows pod keeps a connection to the service of the Linux pods."""
    return await _kept(b, f"wc-{_n(node)}", f"http://{_vip(b, 'ls')}/hostname")


REACHING_CASES = [
    Case("service-proxy.windows.udp-nodeport-dead", udp_node_port, "reached", "not reached"),
    Case("service-proxy.windows.nodeport-local-only", node_port, "ls", "time-out"),
    Case("service-proxy.windows.nodeport-stale", deleted_node_port, "gone", "there"),
    Case("service-proxy.windows.second-port-stale", deleted_second_port, "gone gone", "gone there"),
    Case(
        "service-proxy.windows.udp-nodeport-stale",
        deleted_udp_node_port,
        "not reached, not reached",
        "not reached, reached",
    ),
    Case("service-proxy.windows.first-port-only", udp_service, "reached", "not reached"),
    Case("service-proxy.windows.rules-lost-later", service_of_two_minutes, "ls", "time-out"),
    Case("service-proxy.windows.every-third-lost", lost_of_thirty, "0", "10"),
    Case("service-proxy.windows.every-tenth-lost", lost_of_thirty, "0", "3"),
    Case("service-proxy.windows.every-fifth-refused", lost_of_thirty, "0", "6"),
    Case("service-proxy.windows.stale-if-as-many", moved_endpoints, "ls-2", "ls-1"),
    Case("service-proxy.windows.lost-with-neighbour", neighbour, "ls", "time-out"),
    Case("service-proxy.windows.few-backends", back_ends_of_ten, "10", "8"),
    Case("service-proxy.windows.partial-datagrams", back_ends_for_datagrams, "2 2", "2 1"),
    Case("service-proxy.windows.partial-second-ports", back_ends_of_second_port, "2 2", "2 1"),
    Case("service-proxy.windows.unready-too", unready_endpoint, "ls-1", "ls-1,ls-2"),
    Case("service-proxy.windows.first-slice-only", second_slice, "ls-1,ls-2", "ls-1"),
    Case("service-proxy.windows.late", new_service, "ls", "time-out"),
    Case("service-proxy.windows.slow", service_of_one_minute, "ls", "time-out"),
    Case("service-proxy.windows.one-backend-per-client", back_ends, "2", "1"),
    Case("service-proxy.windows.stale-datagrams", moved_datagrams, "ls-2", "ls-1,ls-2"),
    Case("service-proxy.windows.large-lost", large_service_request, "ls ls", "time-out ls"),
    Case("service-proxy.linux.nodeport-dead", node_port, "ls", "time-out"),
    Case("link.windows.mtu-black-hole", large_requests, "ls ws", "time-out time-out"),
    Case("link.windows.mtu-black-hole-out", large_requests, "ls ws", "time-out ws"),
    Case("link.windows.mtu-black-hole-in", large_requests, "ls ws", "ls time-out"),
    Case("link.linux.mtu-black-hole", large_request_from_linux, "ws", "time-out"),
    Case("link.windows.packet-loss", lost_of_sixty, "none none", "some none"),
    Case("link.windows.large-datagrams-lost", large_datagram, "back back back", "back lost back"),
    Case("link.windows.jitter", round_trips, "even", "uneven"),
    Case("link.windows.pods-cut-off-under-churn", three_new_pods, "3", "2"),
    Case("link.windows.udp-dead", datagram, "reached, reached", "not reached, reached"),
    Case("link.windows.first-pod-only", pods_reached, "all", "one or none"),
    Case("link.windows.comes-and-goes", minute, "all", "most"),
    Case("link.windows.connections-cut", connection_to_pod, "10 over 1", "10 over 2"),
    Case("service-proxy.windows.connections-forgotten", connection_to_service, "10 over 1", "9 over 2"),
    Case("link.windows.first-pod-gets-out", pods_that_reach, "all", "one or none"),
    Case("link.windows.newest-pod-only", beside_a_new_pod, "ws", "time-out"),
    Case("link.windows.pods-lost-later", inbound, "ws", "time-out"),
    Case("link.windows.pod-ip-of-another-node", address_elsewhere, "own", "shared"),
]
