"""A small cluster network for tests, and the objects that shape its traffic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from winready_sandbox.clock import Clock
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.streams import Connection

Obj = dict[str, Any]


def small_cluster(*, dual_stack: bool = False, build: int = 20348) -> Fabric:
    """Two Linux and two Windows nodes: l1, l2, w1, w2."""
    fabric = Fabric(Clock(100))
    for number, name in enumerate(("l1", "l2", "w1", "w2"), start=11):
        addresses = [f"10.250.0.{number}"] + ([f"fd00:250::{number}"] if dual_stack else [])
        cidrs = [f"10.244.{number}.0/24"] + ([f"fd00:10:244:{number}::/64"] if dual_stack else [])
        windows = name.startswith("w")
        fabric.add_node(name, "windows" if windows else "linux", addresses, cidrs, build=build if windows else 0)
    return fabric


def pod(
    fabric: Fabric, node: str, name: str, namespace: str = "ns", labels: dict[str, str] | None = None
) -> NetworkEndpoint:
    """A pod that the API knows as well."""
    endpoint = fabric.attach(node, namespace=namespace, name=name, uid=f"uid-{name}", labels=labels)
    fabric.view.put("pods", pod_object(name, namespace, endpoint.addresses, node, labels or {}))
    return endpoint


def pod_object(name: str, namespace: str, ips: list[str], node: str, labels: dict[str, str]) -> Obj:
    """The pod's object."""
    ports = [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "c", "ports": ports}]},
        "status": {"phase": "Running", "podIPs": [{"ip": ip} for ip in ips]},
    }


def serve_name(endpoint: NetworkEndpoint, name: str, port: int = 8080) -> None:
    """Answer every connection, and every datagram, with a name and the caller's address."""

    async def serve(connection: Connection) -> None:
        connection.write(f"{name} {connection.remote[0]}".encode())

    async def answer(payload: bytes, source: tuple[str, int]) -> bytes:
        return f"{name} {source[0]}".encode()

    endpoint.listen(port, serve)
    endpoint.bind_udp(port, answer)


async def ask(client: NetworkEndpoint, address: str, port: int, timeout: float = 3) -> list[str]:
    """Name of the server that answered, and the address that it saw."""
    connection = await client.connect(address, port, timeout=timeout)
    try:
        return (await connection.read_all()).decode().split()
    finally:
        connection.close()


def service(
    name: str, ip: str, *, port: int = 80, node_port: int = 0, uid: str = "", namespace: str = "ns", **spec: Any
) -> Obj:
    """A service with one TCP and one UDP port."""
    ports = [
        {"name": protocol.lower(), "port": port, "protocol": protocol, **({"nodePort": node_port} if node_port else {})}
        for protocol in ("TCP", "UDP")
    ]
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}"},
        "spec": {
            "clusterIP": ip,
            "clusterIPs": [ip],
            "type": "NodePort" if node_port else "ClusterIP",
            "ports": ports,
            **spec,
        },
    }


def endpoint_slice(
    name: str,
    backends: list[NetworkEndpoint],
    *,
    port: int = 8080,
    namespace: str = "ns",
    family: int = 4,
    **conditions: bool,
) -> Obj:
    """The slice of a service."""
    endpoints = [
        {
            "addresses": [next(a for a in backend.addresses if (":" in a) == (family == 6))],
            "nodeName": backend.node,
            "conditions": {"ready": True, "serving": True, "terminating": False, **conditions},
            "targetRef": {"kind": "Pod", "name": backend.stack.name.split("/")[1], "namespace": namespace},
        }
        for backend in backends
    ]
    return {
        "metadata": {
            "name": f"{name}-{family}",
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": f"IPv{family}",
        "ports": [{"name": p.lower(), "port": port, "protocol": p} for p in ("TCP", "UDP")],
        "endpoints": endpoints,
    }


def publish(fabric: Fabric, svc: Obj, endpoints: Obj) -> None:
    """Let the API show a service, and every proxy act on it now."""
    fabric.view.put("services", svc)
    fabric.view.put("endpointslices", endpoints)
    sync(fabric)


def sync(fabric: Fabric) -> None:
    """Do now what proxies and policy engines would do in a few seconds."""
    for node in fabric.nodes.values():
        node.proxy.sync()
        node.policies.sync()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(60):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)
