"""Ports of the nodes themselves, behind their firewalls (facts W2, W4, P6)."""

from __future__ import annotations

import pytest

from sandbox.helpers.containers import machine
from winready_sandbox.clock import Clock
from winready_sandbox.machine.windows_host import FirewallRule
from winready_sandbox.network.endpoint import TimedOut
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.nodes.host_services import open_host_ports


async def test_administrators_get_in_and_strangers_need_a_rule() -> None:
    fabric, windows = Fabric(Clock(100)), machine("windows")
    node = fabric.add_node("w", "windows", ["10.250.0.4"], ["10.244.4.0/24"])
    fabric.add_node("l", "linux", ["10.250.0.2"], ["10.244.2.0/24"])
    node.admits = windows.windows_host.admits
    open_host_ports(windows, fabric.host("w"), (10250, 1))
    client, host = fabric.host("l"), fabric.host("w")
    connection = await client.connect("10.250.0.4", 22, timeout=5)
    assert (await connection.readline()).startswith(b"SSH-2.0-OpenSSH_for_Windows")
    (await client.connect("10.250.0.4", 3389, timeout=5)).close()

    async def serve(_connection: object) -> None:
        return

    host.listen(20001, serve)
    (await host.connect("10.250.0.4", 20001, timeout=5)).close()
    with pytest.raises(TimedOut):
        await client.connect("10.250.0.4", 20001, timeout=2)
    rules = windows.windows_host.firewall
    rules.append(FirewallRule("mine", "mine", protocol="TCP", local_port="20000-20010"))
    (await client.connect("10.250.0.4", 20001, timeout=5)).close()
    assert await client.ping("10.250.0.4", timeout=2) > 0
    for rule in rules:
        rule.enabled = rule.protocol != "ICMPv4"
    with pytest.raises(TimedOut):
        await client.ping("10.250.0.4", timeout=2)
    fabric.close()
