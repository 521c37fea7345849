"""Faults of nodes: kubelet, container runtime, volumes, the machine itself."""

from __future__ import annotations

from winready.sandbox.faults import ids as r
from winready.sandbox.faults.model import Fault

EVERY_WINDOWS_CORE = (
    *(r.N1, r.N2, r.N3, r.N4, r.N5, r.N6, r.N7, r.N8, r.N9, r.N10, r.N11, r.N12, r.N13),
    *(r.S1, r.S2, r.S3, r.S4, r.S5, r.S6, r.H1, r.H2, r.C1, r.C2, r.C3),
)

NODE_FAULTS = (
    Fault(
        "lcow.windows-pods-run-linux",
        "One Windows node runs the Linux image of Windows pods (LCOW).",
        "node.runtime",
        {"linux_for_windows": True},
        (*EVERY_WINDOWS_CORE, r.NO_LINUX),
        fact="1.1: Running plus spec.os does not prove a Windows container",
    ),
    Fault(
        "kubelet.windows.slow-start",
        "Pods on every Windows node take five times as long to start.",
        "node.kubelet",
        {"slow_start_factor": 5.0},
        everywhere=True,
        fact="1.9: slow is not broken",
    ),
    Fault(
        "node.windows.does-not-join",
        "One Windows worker does not join the cluster.",
        "node.kubelet",
        {"does_not_join": True},
        (r.CLUSTER_SIZE,),
        fact="1.10: two Linux and two Windows nodes",
    ),
)
