"""Who notices faults of kubelets, and nodes that do not join, lie about themselves or do not return."""

from __future__ import annotations

from winready.proof.expected.model import HARMLESS, Expectation
from winready.proof.expected.names import WINDOWS, WINDOWS_BUT_C1

KUBELET = {
    "kubelet.windows.slow-start": HARMLESS,
    "kubelet.windows.loses-pods": Expectation("C1", blocks=f"{WINDOWS_BUT_C1} no-linux-passing pod-os"),
    "kubelet.windows.stats-unavailable": Expectation(blocks="H1", features="metrics"),
    "kubelet.windows.exec-broken": Expectation(blocks=f"{WINDOWS} no-linux-passing", features="kubectl-exec"),
    "kubelet.windows.exec-flaky": HARMLESS,
    "node.windows.does-not-join": Expectation("cluster-size", blocks="S6 P7 K1 K2 X5"),
    "node.linux.does-not-join": Expectation("cluster-size"),
    "node.windows.wrong-build": Expectation("windows-builds", features="os-build-match"),
    "node.windows.never-returns": Expectation("S6 P7"),
    "node.windows.boot-id-stays": Expectation("S6 P7"),
    "node.windows.pods-stay-down": Expectation("S6"),
    "node.windows.labelled-linux": Expectation("cluster-size", blocks="S6 P7 K1 K2 X5"),
    "node.linux.labelled-windows": Expectation("cluster-size", blocks="H2"),
    "node.windows.build-lies": Expectation("windows-builds"),
    "node.windows.build-label-lies": Expectation("windows-builds", features="windows-build-label"),
    "node.windows.shutdown-taint": Expectation("cluster-size", blocks="S6 P7 K1 K2 X5"),
    "kubelet.windows.hostprocess-misreported": Expectation("P3"),
}
