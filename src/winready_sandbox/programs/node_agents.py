"""kube-proxy and calico-node: the processes on whose life a node's service tables and policies depend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import AddressInUse
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost.golang import klog
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import endpoint_of
from winready_sandbox.streams import Connection

PROXY_HEALTH = 10256


@contextmanager
def serve_health(process: Process, port: int) -> Iterator[None]:
    """Answer probes of the kubelet meanwhile; where somebody else has the port, nobody hears of this one."""
    try:
        listener = endpoint_of(process).listen(port, _say_ok) if port else None
    except AddressInUse as error:
        klog(process, f'"Failed to start healthz server" err="{error}"', level="E", source="proxy_health.go:197")
        listener = None
    try:
        yield
    finally:
        if listener is not None:
            listener.close()


async def _say_ok(connection: Connection) -> None:
    async def page(request: Request) -> Response:
        return Response("ok") if request.path in ("/healthz", "/livez") else http1.error("404 page not found", 404)

    await http1.serve(connection, page, connection.remote, connection.local)


async def kube_proxy(process: Process) -> int:
    """Program services while running; the kernel keeps the tables afterwards."""
    if process.argv[1:] == ["--version"]:
        process.out(f"Kubernetes {process.container.machine.kubernetes}\n")
        return 0
    stack = endpoint_of(process).stack
    if stack.node is None or stack.is_pod:
        klog(process, "kube-proxy needs the host's network", level="E", source="server.go:140")
        return 1
    if (missing := _missing(process)) is not None:
        klog(process, f'"Error running ProxyServer" err="{missing}"', level="E", source="server.go:140")
        return 1
    mode = "kernelspace" if process.windows else "iptables"
    klog(
        process,
        f'"Using proxy mode" mode="{mode}"',
        source="server_windows.go:97" if process.windows else "server.go:97",
    )
    stack.node.proxy.start()
    try:
        with serve_health(process, PROXY_HEALTH if process.windows else 0):
            await process.stop_requested.wait()
    finally:
        stack.node.proxy.stop()
    return 0


def _missing(process: Process) -> str | None:
    """What kube-proxy on Windows does not start without, once it is told which network it serves."""
    name = process.env.get("KUBE_NETWORK", "") if process.windows else ""
    if not name:
        return None
    networks = [network for network in process.container.machine.hns_networks if network.name == name]
    if not networks:
        return f"Unable to find HNS Network specified, please check network name and CNI deployment: {name}"
    if networks[0].type == "Overlay" and not any(word.startswith("--source-vip=") for word in process.argv):
        return "source-vip flag not set"
    return None


async def calico_node(process: Process) -> int:
    """Enforce policies while running; what is in force stays in force afterwards."""
    stack = endpoint_of(process).stack
    if stack.node is None or stack.is_pod:
        process.err("calico-node needs the host's network\n")
        return 1
    process.out("Calico node started successfully\n")
    stack.node.policies.start()
    try:
        await process.stop_requested.wait()
    finally:
        stack.node.policies.stop()
    return 0
