"""Pods, hosts and the wires between them."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.network.helpers import ask, pod, serve_name
from winready_sandbox.network.endpoint import AddressInUse, Refused, TimedOut, Unreachable
from winready_sandbox.network.fabric import Fabric, bridge
from winready_sandbox.streams import Connection


async def test_pods_reach_each_other_by_ip_whatever_the_os_and_see_true_addresses(fabric: Fabric) -> None:
    windows, linux = pod(fabric, "w1", "a"), pod(fabric, "l1", "b")
    serve_name(windows, "a")
    serve_name(linux, "b")
    assert await ask(linux, windows.addresses[0], 8080) == ["a", linux.addresses[0]]
    assert await ask(windows, linux.addresses[0], 8080) == ["b", windows.addresses[0]]
    answer = await windows.exchange(linux.addresses[0], 8080, b"hello", timeout=3)
    assert answer.decode() == f"b {windows.addresses[0]}"


async def test_equal_ports_in_several_pods_never_clash_but_host_ports_do(fabric: Fabric) -> None:
    first, second = pod(fabric, "w1", "a"), pod(fabric, "w1", "b")
    serve_name(first, "a")
    serve_name(second, "b")
    host = fabric.host("w1")
    serve_name(host, "w1", 9000)
    with pytest.raises(AddressInUse):
        serve_name(fabric.attach("w1", namespace="ns", name="hp", uid="u", host_network=True), "hp", 9000)
    assert await ask(second, first.addresses[0], 8080) == ["a", second.addresses[0]]


async def test_a_closed_port_refuses_and_a_missing_address_does_not_answer(fabric: Fabric) -> None:
    windows, linux = pod(fabric, "w1", "a"), pod(fabric, "l1", "b")
    with pytest.raises(Refused):
        await linux.connect(windows.addresses[0], 1, timeout=3)
    with pytest.raises(Unreachable):
        await linux.connect("10.244.13.77", 80, timeout=10)
    with pytest.raises(TimedOut):
        await windows.connect("10.244.11.77", 80, timeout=3)


async def test_windows_tells_a_refusal_only_after_its_retries(fabric: Fabric) -> None:
    windows, linux = pod(fabric, "w1", "a"), pod(fabric, "l1", "b")
    with pytest.raises(TimedOut):
        await windows.connect(linux.addresses[0], 1, timeout=1)
    with pytest.raises(Refused):
        await windows.connect(linux.addresses[0], 1, timeout=5)


async def test_the_os_gives_up_by_itself(fabric: Fabric) -> None:
    windows = pod(fabric, "w1", "a")
    with pytest.raises(TimedOut) as outcome:
        await windows.connect("10.244.11.77", 80, timeout=0)
    assert outcome.value.gave_up


async def test_a_released_address_is_the_last_to_come_back(fabric: Fabric) -> None:
    first = pod(fabric, "w1", "a")
    fabric.detach(first)
    second = pod(fabric, "w1", "a")
    assert first.addresses != second.addresses


async def test_deleting_a_pod_ends_its_connections(fabric: Fabric) -> None:
    server, client = pod(fabric, "w1", "a"), pod(fabric, "l1", "b")

    async def serve(connection: Connection) -> None:
        await connection.read()

    server.listen(80, serve)
    connection = await client.connect(server.addresses[0], 80, timeout=3)
    fabric.detach(server)
    assert await connection.read() == b""


async def test_both_families(dual: Fabric) -> None:
    windows, linux = pod(dual, "w1", "a"), pod(dual, "l1", "b")
    serve_name(windows, "a")
    assert [":" in address for address in windows.addresses] == [False, True]
    assert await ask(linux, windows.addresses[1], 8080) == ["a", linux.addresses[1]]
    dual.nodes["w1"].defects.link.ipv6_dead = True
    with pytest.raises(TimedOut):
        await ask(linux, windows.addresses[1], 8080)
    assert await ask(linux, windows.addresses[0], 8080) == ["a", linux.addresses[0]]


async def test_fact_1_5_ping_works_in_the_pod_network_never_to_services_nor_from_windows_to_the_internet(
    fabric: Fabric,
) -> None:
    windows, linux = pod(fabric, "w1", "a"), pod(fabric, "l1", "b")
    assert await linux.ping(windows.addresses[0], timeout=2) > 0
    assert await fabric.host("l1").ping("10.250.0.13", timeout=2) > 0
    with pytest.raises(TimedOut):
        await windows.ping("10.96.0.1", timeout=2)
    assert await linux.ping("8.8.8.8", timeout=2) > 0
    with pytest.raises(TimedOut):
        await windows.ping("8.8.8.8", timeout=2)


async def test_fact_w2_windows_firewall_drops_pings_to_the_host_unless_a_rule_opens_it(fabric: Fabric) -> None:
    fabric.nodes["w1"].admits = lambda protocol, port: protocol != "ICMPv4"
    with pytest.raises(TimedOut):
        await fabric.host("l1").ping("10.250.0.13", timeout=2)
    assert await fabric.host("w1").ping("10.250.0.11", timeout=2) > 0


async def test_a_closed_port_of_a_windows_host_stays_silent(fabric: Fabric) -> None:
    with pytest.raises(TimedOut):
        await fabric.host("l1").connect("10.250.0.13", 4444, timeout=2)
    with pytest.raises(Refused):
        await fabric.host("w1").connect("10.250.0.11", 4444, timeout=5)


async def test_the_outside_world_is_reached_through_nat_unless_the_site_is_air_gapped(fabric: Fabric) -> None:
    windows = pod(fabric, "w1", "a")
    address = fabric.world.names["registry.k8s.io"][0]
    (await windows.connect(address, 443, timeout=5)).close()
    with pytest.raises(TimedOut):
        await windows.connect(address, 22, timeout=2)
    (await windows.connect("8.8.8.8", 53, timeout=5)).close()
    fabric.world.online = False
    with pytest.raises(TimedOut):
        await windows.connect(address, 443, timeout=2)


async def test_a_node_that_is_down_answers_nobody_until_it_is_back(fabric: Fabric) -> None:
    host = fabric.host("w1")
    serve_name(host, "w1", 10250)
    assert await ask(fabric.host("l1"), "10.250.0.13", 10250) == ["w1", "10.250.0.11"]
    fabric.nodes["w1"].go_down()
    with pytest.raises(Unreachable):
        await ask(fabric.host("l1"), "10.250.0.13", 10250, timeout=10)
    with pytest.raises(Unreachable):
        await fabric.host("w2").ping("10.250.0.13", timeout=10)
    with pytest.raises(TimedOut):
        await ask(pod(fabric, "l1", "p"), "10.250.0.13", 10250)
    fabric.nodes["w1"].come_up()
    serve_name(host, "w1", 10250)
    assert await ask(fabric.host("l1"), "10.250.0.13", 10250) == ["w1", "10.250.0.11"]


async def test_loss_takes_its_share_of_new_flows(fabric: Fabric) -> None:
    server, client, neighbour = pod(fabric, "w1", "a"), pod(fabric, "l1", "b"), pod(fabric, "w1", "c")
    serve_name(server, "a")
    fabric.nodes["w1"].defects.link.loss = 0.3

    async def lost(source: object) -> int:
        outcomes = 0
        for _ in range(10):
            try:
                await ask(client if source is client else neighbour, server.addresses[0], 8080, timeout=0.5)
            except TimedOut:
                outcomes += 1
        return outcomes

    assert await lost(client) == 3
    assert await lost(neighbour) == 0


async def test_one_way_connectivity(fabric: Fabric) -> None:
    windows, linux = pod(fabric, "w1", "a"), pod(fabric, "l1", "b")
    serve_name(windows, "a")
    serve_name(linux, "b")
    fabric.nodes["w1"].defects.link.one_way = "in"
    assert (await ask(windows, linux.addresses[0], 8080))[0] == "b"
    with pytest.raises(TimedOut):
        await ask(linux, windows.addresses[0], 8080)


async def test_a_slow_wire_delays_data_and_a_black_hole_swallows_large_packets(fabric: Fabric) -> None:
    server, client = pod(fabric, "w1", "a"), pod(fabric, "l1", "b")

    async def serve(connection: Connection) -> None:
        size = int(await connection.readline())
        connection.write(b"x" * size)

    server.listen(80, serve)
    link = fabric.nodes["w1"].defects.link
    link.latency, link.mtu_black_hole = 1.0, 1400
    with pytest.raises(TimedOut):
        await client.connect(server.addresses[0], 80, timeout=1)
    for size, expected in ((100, 100), (3000, 0)):
        connection = await client.connect(server.addresses[0], 80, timeout=10)
        connection.write(f"{size}\n".encode())
        assert len(await connection.read_all()) == expected


async def test_of_two_pods_with_one_address_now_one_answers_and_now_the_other(fabric: Fabric) -> None:
    first, client = pod(fabric, "w1", "a"), pod(fabric, "l1", "b")
    fabric.nodes["w1"].defects.link.duplicate_ip = True
    second = pod(fabric, "w1", "c")
    serve_name(first, "a")
    serve_name(second, "c")
    assert first.addresses == second.addresses
    assert {(await ask(client, first.addresses[0], 8080))[0] for _ in range(40)} == {"a", "c"}
    fabric.detach(second)
    assert {(await ask(client, first.addresses[0], 8080))[0] for _ in range(4)} == {"a"}


async def test_a_bridge_leads_to_a_real_port(fabric: Fabric) -> None:
    async def real(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"real " + await reader.readline())
        writer.close()

    server = await asyncio.start_server(real, "127.0.0.1", 0)
    machine = fabric.add_machine("control-plane", ["10.250.0.2"])
    machine.listen(6443, bridge("127.0.0.1", server.sockets[0].getsockname()[1]))
    connection = await pod(fabric, "w1", "a").connect("10.250.0.2", 6443, timeout=5)
    connection.write(b"hello\n")
    assert await connection.read_all() == b"real hello\n"
    connection.close()
    server.close()
