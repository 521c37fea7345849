"""Who notices faults of nodes: kubelet, container runtime, the machine itself, its domain."""

from __future__ import annotations

from winready.proof.expected.model import HARMLESS, Expectation

WINDOWS_CORE = "N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 N11 N12 N13 S1 S2 S3 S4 S5 S6 H1 H2 C1 C2 C3"
WINDOWS_PODS = f"{WINDOWS_CORE} A1 A2 A3 A4 K1 K2 X1 X2 X3 X4 X5"
"""Everything that is shown with ordinary Windows pods."""
WINDOWS = f"{WINDOWS_PODS} P1 P2 P3 P4 P5 P6 P7 W1 W2 W3 W4"
"""Everything that is shown on Windows nodes."""
WINDOWS_BUT_C1 = " ".join(name for name in WINDOWS.split() if name != "C1")

NODES = {
    "lcow.windows-pods-run-linux": Expectation(f"{WINDOWS_PODS} no-linux-passing"),
    "kubelet.windows.slow-start": HARMLESS,
    "kubelet.windows.loses-pods": Expectation("C1", blocks=f"{WINDOWS_BUT_C1} no-linux-passing pod-os"),
    "kubelet.windows.stats-unavailable": Expectation(blocks="H1"),
    "kubelet.windows.exec-broken": Expectation(blocks=f"{WINDOWS} no-linux-passing"),
    "kubelet.windows.exec-flaky": HARMLESS,
    "runtime.windows.pulls-fail": Expectation(blocks=f"{WINDOWS} no-linux-passing pod-os images"),
    "runtime.windows.wrong-image": Expectation("images"),
    "runtime.windows.user-name-ignored": Expectation("A4"),
    "runtime.windows.hostprocess-own-address": Expectation("P3 P6", blocks="P5 W2 W3"),
    "runtime.windows.hostprocess-unprivileged": Expectation("P2 P4 P5", blocks="P6 P7 S6 W1"),
    "runtime.windows.gmsa-for-everyone": Expectation("A3"),
    "node.windows.does-not-join": Expectation("cluster-size", blocks="S6"),
    "node.linux.does-not-join": Expectation("cluster-size"),
    "node.windows.wrong-build": Expectation("windows-builds"),
    "node.windows.never-returns": Expectation("S6 P7"),
    "node.windows.boot-id-stays": Expectation("S6 P7"),
    "node.windows.pods-stay-down": Expectation("S6"),
    "machine.windows.cpu-limit-ignored": Expectation("H1"),
    "machine.windows.memory-limit-ignored": Expectation("H1"),
    "machine.windows.hns-down": Expectation("P2", blocks="P5"),
    "machine.windows.defender-scans-runtime": Expectation("W1"),
    "machine.windows.pings-dropped": Expectation("W2"),
    "machine.windows.remote-access-closed": Expectation("W4"),
    "domain.lets-everybody-in": Expectation("A1 A3"),
    "domain.controller-down": Expectation("A1 A2", blocks="A3"),
}
