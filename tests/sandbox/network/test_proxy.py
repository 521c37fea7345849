"""Services as each OS's kube-proxy programs them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sandbox.network.helpers import ask, endpoint_slice, pod, publish, serve_name, service, small_cluster, sync, until
from winready_sandbox.network.endpoint import Refused, TimedOut
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.network.pod_endpoint import NetworkEndpoint

VIP = "10.96.7.7"


async def seen(client: NetworkEndpoint, address: str = VIP, port: int = 80, tries: int = 24) -> set[str]:
    """Names of all servers that answer behind an address."""
    return {(await ask(client, address, port))[0] for _ in range(tries)}


def backends(fabric: Fabric, **spec: Any) -> list[NetworkEndpoint]:
    """A Windows and a Linux backend behind one service with NodePort 30080."""
    servers = [pod(fabric, "w2", "ws"), pod(fabric, "l2", "ls")]
    for server, name in zip(servers, ("ws", "ls"), strict=True):
        serve_name(server, name)
    publish(fabric, service("s", VIP, node_port=30080, **spec), endpoint_slice("s", servers))
    return servers


@pytest.mark.parametrize("node", ["w1", "l1"])
async def test_fact_1_5_each_connection_is_a_new_pick_and_the_client_address_is_kept(fabric: Fabric, node: str) -> None:
    backends(fabric)
    client = pod(fabric, node, "client")
    assert await seen(client) == {"ws", "ls"}
    assert (await ask(client, VIP, 80))[1] == client.addresses[0]
    answers = {(await client.exchange(VIP, 80, b"x", timeout=3)).decode().split()[0] for _ in range(24)}
    assert answers == {"ws", "ls"}


async def test_tables_follow_after_each_oss_own_delay(fabric: Fabric) -> None:
    server = pod(fabric, "w2", "ws")
    fabric.view.put("services", service("s", VIP))
    fabric.view.put("endpointslices", endpoint_slice("s", [server]))
    linux, windows = fabric.nodes["l1"].proxy, fabric.nodes["w1"].proxy
    assert linux.vip(VIP, 80, "TCP") is None
    assert windows.vip(VIP, 80, "TCP") is None
    await until(lambda: linux.vip(VIP, 80, "TCP") is not None)
    await until(lambda: windows.vip(VIP, 80, "TCP") is not None)
    fabric.view.remove("services", "ns", "s")
    await until(lambda: windows.vip(VIP, 80, "TCP") is None and linux.vip(VIP, 80, "TCP") is None)


async def test_a_service_without_endpoints_refuses_on_linux_and_times_out_on_windows(fabric: Fabric) -> None:
    publish(fabric, service("s", VIP), endpoint_slice("s", []))
    with pytest.raises(Refused):
        await ask(pod(fabric, "l1", "a"), VIP, 80)
    with pytest.raises(TimedOut):
        await ask(pod(fabric, "w1", "b"), VIP, 80)


async def test_fact_1_5_node_port_forwards_and_hides_the_client(fabric: Fabric) -> None:
    servers = backends(fabric)
    client = pod(fabric, "l1", "client")
    for node, address in (("w2", "10.250.0.14"), ("l2", "10.250.0.12")):
        assert await seen(client, address, 30080) == {"ws", "ls"}, node
        assert (await ask(client, address, 30080))[1] == address
    with pytest.raises(TimedOut):
        await ask(client, "10.250.0.13", 30080)  # w1 runs no pod
    resident = pod(fabric, "w1", "resident")
    assert await seen(client, "10.250.0.13", 30080) == {"ws", "ls"}
    assert await seen(resident, "10.250.0.13", 30080) == {"ws", "ls"}
    assert await seen(fabric.host("w1"), "10.250.0.13", 30080) == {"ws", "ls"}
    assert servers[0].node == "w2"


async def test_external_traffic_policy_local_keeps_the_client_and_the_node(fabric: Fabric) -> None:
    backends(fabric, externalTrafficPolicy="Local")
    client = pod(fabric, "l1", "client")
    assert await ask(client, "10.250.0.14", 30080) == ["ws", client.addresses[0]]
    with pytest.raises(TimedOut):
        await ask(client, "10.250.0.11", 30080)
    assert await seen(client) == {"ws", "ls"}


async def test_internal_traffic_policy_local(fabric: Fabric) -> None:
    backends(fabric, internalTrafficPolicy="Local")
    assert await seen(pod(fabric, "w2", "a")) == {"ws"}
    with pytest.raises(TimedOut):
        await ask(pod(fabric, "w1", "b"), VIP, 80)


@pytest.mark.parametrize(("build", "names"), [(20348, 1), (17763, 2)])
async def test_fact_1_5_session_affinity_on_windows_needs_server_2022(build: int, names: int) -> None:
    fabric = small_cluster(build=build)
    backends(fabric, sessionAffinity="ClientIP")
    assert len(await seen(pod(fabric, "w1", "a"))) == names
    assert len(await seen(pod(fabric, "l1", "b"))) == 1
    fabric.close()


async def test_fact_1_5_a_windows_pod_never_reaches_itself_through_its_service(fabric: Fabric) -> None:
    windows, linux = pod(fabric, "w1", "w"), pod(fabric, "l1", "l")
    for server, vip in ((windows, "10.96.1.1"), (linux, "10.96.1.2")):
        serve_name(server, server.node)
        publish(fabric, service(server.node, vip), endpoint_slice(server.node, [server]))
    with pytest.raises(TimedOut):
        await ask(windows, "10.96.1.1", 80)
    assert await ask(linux, "10.96.1.2", 80) == ["l1", "10.250.0.11"]


async def test_hns_takes_64_backends_and_one_target_port(fabric: Fabric) -> None:
    servers = [pod(fabric, "l1", f"p{number}") for number in range(70)]
    first, second = endpoint_slice("s", servers[:35]), endpoint_slice("s", servers[35:], port=9090)
    second["metadata"]["name"] = "s-more"
    fabric.view.put("endpointslices", second)
    publish(fabric, service("s", VIP), first)
    windows, linux = (fabric.nodes[node].proxy.vip(VIP, 80, "TCP") for node in ("w1", "l1"))
    assert windows is not None
    assert linux is not None
    assert Counter(b.port for b in linux.backends) == {8080: 35, 9090: 35}
    assert Counter(b.port for b in windows.backends) == {8080: 64}


async def test_fact_1_5_a_local_pod_that_hns_does_not_show_yet_leaves_a_partial_list(fabric: Fabric) -> None:
    here, there = pod(fabric, "w1", "here"), pod(fabric, "w2", "there")
    serve_name(here, "here")
    serve_name(there, "there")
    stranger = pod(fabric, "w1", "x")
    endpoints = endpoint_slice("s", [here, there])
    fabric.detach(here)
    publish(fabric, service("s", VIP), endpoints)
    assert await seen(stranger) == {"there"}
    alone = endpoint_slice("t", [here])
    publish(fabric, service("t", "10.96.7.8"), alone)
    assert fabric.nodes["w1"].proxy.vip("10.96.7.8", 80, "TCP") is None
    assert fabric.nodes["w2"].proxy.vip("10.96.7.8", 80, "TCP") is not None


async def test_terminating_endpoints_serve_only_while_nothing_else_does(fabric: Fabric) -> None:
    old, new = pod(fabric, "w1", "old"), pod(fabric, "w2", "new")
    serve_name(old, "old")
    serve_name(new, "new")
    leaving = endpoint_slice("s", [old], ready=False, terminating=True)
    publish(fabric, service("s", VIP), leaving)
    client = pod(fabric, "l1", "c")
    assert await seen(client, tries=4) == {"old"}
    fresh = endpoint_slice("s", [new])
    fresh["metadata"]["name"] = "s-fresh"
    fabric.view.put("endpointslices", fresh)
    sync(fabric)
    assert await seen(client, tries=12) == {"new"}


async def test_both_families_have_tables_of_their_own(dual: Fabric) -> None:
    server, client = pod(dual, "w1", "a"), pod(dual, "l1", "b")
    serve_name(server, "a")
    svc = service("s", VIP, clusterIPs=[VIP, "fd00:96::7"])
    dual.view.put("endpointslices", endpoint_slice("s", [server], family=6))
    publish(dual, svc, endpoint_slice("s", [server]))
    assert await ask(client, "fd00:96::7", 80) == ["a", client.addresses[1]]
    assert await ask(client, VIP, 80) == ["a", client.addresses[0]]


async def test_a_stopped_kube_proxy_leaves_the_tables_as_they_are(fabric: Fabric) -> None:
    backends(fabric)
    client, proxy = pod(fabric, "w1", "c"), fabric.nodes["w1"].proxy
    proxy.stop()
    fabric.view.remove("services", "ns", "s")
    sync(fabric)
    assert await seen(client) == {"ws", "ls"}
    proxy.start()
    await until(lambda: proxy.vip(VIP, 80, "TCP") is None)


async def test_a_rebooted_node_programs_everything_anew(fabric: Fabric) -> None:
    backends(fabric)
    node = fabric.nodes["w1"]
    node.go_down()
    node.come_up()
    assert node.proxy.vip(VIP, 80, "TCP") is None
    await until(lambda: node.proxy.vip(VIP, 80, "TCP") is not None)


async def test_defect_not_programmed_hits_one_node_and_heals(fabric: Fabric) -> None:
    backends(fabric)
    client, other = pod(fabric, "w1", "c"), pod(fabric, "w2", "d")
    fabric.nodes["w1"].defects.proxy.not_programmed = True
    with pytest.raises(TimedOut):
        await ask(client, VIP, 80)
    assert (await ask(other, VIP, 80))[0] in ("ws", "ls")
    fabric.nodes["w1"].defects.proxy.not_programmed = False
    assert await seen(client) == {"ws", "ls"}


async def test_defect_stale_after_recreate_keeps_the_first_life_until_healed(fabric: Fabric) -> None:
    servers = backends(fabric)
    proxy = fabric.nodes["w1"].proxy
    fabric.nodes["w1"].defects.proxy.stale_after_recreate = True
    fabric.view.remove("services", "ns", "s")
    sync(fabric)
    publish(fabric, service("s", "10.96.8.8", uid="second"), endpoint_slice("s", servers))
    assert proxy.vip(VIP, 80, "TCP") is not None
    assert proxy.vip("10.96.8.8", 80, "TCP") is None
    fabric.nodes["w1"].defects.proxy.stale_after_recreate = False
    await until(lambda: proxy.vip("10.96.8.8", 80, "TCP") is not None and proxy.vip(VIP, 80, "TCP") is None)


async def test_defects_of_backends(fabric: Fabric) -> None:
    servers = backends(fabric)
    other = pod(fabric, "l1", "other")
    serve_name(other, "other")
    publish(fabric, service("o", "10.96.9.9"), endpoint_slice("o", [other]))
    client, defects, proxy = pod(fabric, "w1", "c"), fabric.nodes["w1"].defects.proxy, fabric.nodes["w1"].proxy
    defects.partial_backends = True
    proxy.refresh()
    proxy.sync()
    assert await seen(client) == {"ws"}
    defects.partial_backends, defects.wrong_backend = False, True
    proxy.refresh()
    proxy.sync()
    assert await seen(client) == {"other"}
    defects.wrong_backend, defects.stale_endpoints = False, True
    fabric.view.put("endpointslices", endpoint_slice("s", servers[1:]))
    sync(fabric)
    assert await seen(client) == {"ws", "ls"}
    assert await seen(pod(fabric, "w2", "d")) == {"ls"}
    fabric.view.put("endpointslices", endpoint_slice("s", [*servers[1:], other]))
    sync(fabric)
    assert await seen(client) == {"ws", "ls", "other"}


async def test_defect_node_port_dead_on_one_node_only(fabric: Fabric) -> None:
    backends(fabric)
    client = pod(fabric, "l1", "c")
    fabric.nodes["w2"].defects.proxy.node_port_dead = True
    with pytest.raises(TimedOut):
        await ask(client, "10.250.0.14", 30080)
    assert await seen(client, "10.250.0.12", 30080) == {"ws", "ls"}
    assert await seen(client) == {"ws", "ls"}


async def test_defect_udp_and_own_node_port(fabric: Fabric) -> None:
    backends(fabric)
    client, defects = pod(fabric, "w1", "c"), fabric.nodes["w1"].defects.proxy
    defects.udp_dead = True
    with pytest.raises(TimedOut):
        await client.exchange(VIP, 80, b"x", timeout=2)
    assert await seen(client) == {"ws", "ls"}
    defects.own_node_port_dead = True
    with pytest.raises(TimedOut):
        await ask(fabric.host("w1"), "10.250.0.13", 30080)
    assert await seen(fabric.host("l1"), "10.250.0.13", 30080) == {"ws", "ls"}


async def test_each_hop_to_a_node_port_meets_its_own_wires(fabric: Fabric) -> None:
    backends(fabric)
    pod(fabric, "w1", "resident")
    client = pod(fabric, "l1", "c")

    async def lost(address: str) -> int:
        count = 0
        for _ in range(10):
            try:
                await ask(client, address, 30080, timeout=0.5)
            except TimedOut:
                count += 1
        return count

    fabric.nodes["l1"].defects.link.loss = 0.3
    assert await lost("10.250.0.13") == 3
    fabric.nodes["l1"].defects.link.loss, fabric.nodes["w1"].defects.link.one_way = 0.0, "out"
    assert await lost("10.250.0.13") == 10
    assert await lost("10.250.0.12") == 0


async def test_each_way_to_a_service_loses_its_share_whoever_else_is_on_the_line(fabric: Fabric) -> None:
    servers = [pod(fabric, "w1", f"s{number}") for number in range(5)]
    for server in servers:
        serve_name(server, "s")
    publish(fabric, service("s", VIP, node_port=30080), endpoint_slice("s", servers))
    client = pod(fabric, "l1", "c")
    fabric.nodes["w1"].defects.link.loss = 0.3
    lost = Counter[str]()
    for _ in range(10):
        for address, port in ((VIP, 80), ("10.250.0.13", 30080)):
            try:
                await ask(client, address, port, timeout=0.5)
            except TimedOut:
                lost[address] += 1
    assert lost == {VIP: 3, "10.250.0.13": 3}, "five pods behind one address count as one"
