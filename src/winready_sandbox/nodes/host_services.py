"""What a node itself serves on its own addresses: the kubelet's port, and the ways in for administrators."""

from __future__ import annotations

from winready_sandbox.machine.machine import Machine
from winready_sandbox.network.endpoint import Listener
from winready_sandbox.network.fabric import bridge
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.streams import Connection

SSH, RDP = 22, 3389
_BANNER = {"windows": b"SSH-2.0-OpenSSH_for_Windows_9.5\r\n", "linux": b"SSH-2.0-OpenSSH_9.6p1 Ubuntu-3ubuntu13.5\r\n"}


def open_host_ports(machine: Machine, host: NetworkEndpoint, kubelet: tuple[int, int]) -> list[Listener]:
    """Listen on the node's addresses; ``kubelet`` is its port in the cluster and on this computer."""

    async def ssh(connection: Connection) -> None:
        if _running(machine, "sshd"):
            connection.write(_BANNER[machine.os])
            await connection.read()

    async def rdp(connection: Connection) -> None:
        if _running(machine, "TermService"):
            await connection.read()

    listeners: list[Listener] = [
        host.listen(kubelet[0], bridge("127.0.0.1", kubelet[1])),
        host.listen(SSH, ssh),
    ]
    if machine.os == "windows":
        listeners.append(host.listen(RDP, rdp))
    return listeners


def _running(machine: Machine, service: str) -> bool:
    if machine.os == "linux":
        return True
    found = machine.windows_host.service(service)
    return found is not None and found.state == "Running"
