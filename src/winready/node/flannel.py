"""Flannel on the Linux side: whether Windows nodes can be part of its network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from winready.node.findings import Finding
from winready.node.parameters import VXLAN_PORT, VXLAN_VNI, Parameters

BACKENDS = {"overlay": "vxlan", "l2bridge": "host-gw"}
LINUX_VNI, LINUX_PORT = 1, 8472
"""What Flannel takes on Linux when it is not told otherwise."""
CHANGE = "in net-conf.json of ConfigMap kube-flannel-cfg, then restart Flannel on all nodes"


def flannel_findings(parameters: Parameters, conf: dict[str, Any]) -> Iterator[Finding]:
    """What net-conf.json of the Linux side means for Windows nodes."""
    network = parameters.network
    if network.cni != "flannel":
        return
    if not conf:
        text = "no Flannel was found on the Linux side (ConfigMap kube-flannel-cfg)"
        yield Finding("flannel", "problem", text, "install it there first, or choose --cni none")
        return
    given = conf.get("Backend")
    backend: dict[str, Any] = given if isinstance(given, dict) else {}
    kind, wanted = str(backend.get("Type") or "udp"), BACKENDS[network.mode]
    if kind != wanted:
        other = next((mode for mode, name in BACKENDS.items() if name == kind), None)
        text = f"Flannel on the Linux side works as {kind!r}, which --mode {network.mode} cannot talk to"
        yield Finding(
            "flannel", "problem", text, f"choose --mode {other}" if other else f'set "Type": "{wanted}" {CHANGE}'
        )
        return
    wrong = False
    if str(conf.get("Network") or "") not in network.pod_cidrs:
        wrong = True
        text = f"Flannel hands out {conf.get('Network')}, the parameters say {', '.join(network.pod_cidrs)}"
        yield Finding("flannel", "problem", text, "both must be the same range of pods")
    if kind == "vxlan":
        for field, value, fits, todo in (
            ("VNI", backend.get("VNI", LINUX_VNI), f"a VNI from {VXLAN_VNI} on", f'set "VNI": {VXLAN_VNI} {CHANGE}'),
            ("Port", backend.get("Port", LINUX_PORT), f"UDP port {VXLAN_PORT}", f'set "Port": {VXLAN_PORT} {CHANGE}'),
        ):
            good = isinstance(value, int) and (value >= VXLAN_VNI if field == "VNI" else value == VXLAN_PORT)
            if not good:
                wrong = True
                text = f"Flannel on the Linux side uses {field} {value}; Windows can only do {fits}"
                yield Finding("flannel", "problem", text, todo)
            elif field == "VNI" and value != network.vni:
                wrong = True
                text = f"Flannel on the Linux side uses VNI {value}, the parameters say {network.vni}"
                yield Finding("flannel", "problem", text, "make the bundle anew")
        if backend.get("DirectRouting"):
            wrong = True
            text = "Flannel on the Linux side routes directly where it can (DirectRouting), which Windows cannot answer"
            yield Finding("flannel", "problem", text, f'remove "DirectRouting" {CHANGE}')
    if not wrong:
        how = f"VNI {network.vni}, UDP port {VXLAN_PORT}" if kind == "vxlan" else "host gateway"
        yield Finding("flannel", "ok", f"the Linux side can be joined ({how})")
