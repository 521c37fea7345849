"""kube-proxy and calico-node: the processes on whose life a node's service tables and policies depend."""

from __future__ import annotations

from winready_sandbox.machine.process import Process
from winready_sandbox.programs.agnhost.golang import klog
from winready_sandbox.programs.net import endpoint_of


async def kube_proxy(process: Process) -> int:
    """Program services while running; the kernel keeps the tables afterwards."""
    stack = endpoint_of(process).stack
    if stack.node is None or stack.is_pod:
        klog(process, "kube-proxy needs the host's network", level="E", source="server.go:140")
        return 1
    mode = "kernelspace" if process.windows else "iptables"
    klog(
        process,
        f'"Using proxy mode" mode="{mode}"',
        source="server_windows.go:97" if process.windows else "server.go:97",
    )
    stack.node.proxy.start()
    try:
        await process.stop_requested.wait()
    finally:
        stack.node.proxy.stop()
    return 0


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
