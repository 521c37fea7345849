"""Who notices faults of the wire between nodes and of pod addresses."""

from __future__ import annotations

from winready.proof.expected.model import HARMLESS, Expectation

X = "X1 X2 X3 X4 X5"
LARGE = f"N1 N2 N3 N4 N5 N6 N7 N8 N9 N13 C2 C3 {X}"
"""Whatever is reached must be reached with more than one small packet."""
BEHIND_LARGE = "S5 S6 C1 P7"
CROSSING = "N1 N2 N3 N4 N7 N8 N9 N10 N11 N12 N13 S5 S6 C1 C2 C3 P1 P5 P6 P7 A1 A2 A3 A4 K1 K2 W2 W3 W4"
"""Uses the way between nodes at one moment or another."""
BEHIND = "S6 C1 K1 K2 W3 X3 X4 X5"
"""Shown with pods that must be reached from other nodes first."""

LINK = {
    "link.windows.one-way-out": Expectation(
        "N1 N3 N4 N5 N8 N9 N10 N11 N12 N13 C2 C3 P1 W2 X1 X2 X4 X5",
        blocks="S5 P5 P7 W3 K1 K2 A3",
        features="cni-calico",
    ),
    "link.windows.one-way-in": Expectation(
        "N3 N6 N7 N8 N9 N13 C2 C3 P6 W2 W4 X2 X5", blocks="N2 N4 S6 C1 X3 X4 K1 K2 P7 W3"
    ),
    "link.windows.loss": Expectation(
        "N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 N11 N13 C2 C3 X1 X2 X3 X4 X5", blocks="S5 S6 C1 K1 K2 P6 P7 W3 W4"
    ),
    # Somebody looks every few seconds for N5 and N6; who else looks while the link is down is a matter of luck.
    "link.windows.comes-and-goes": Expectation("N5 N6", blocks=f"{CROSSING} {X}"),
    # Which of two servers behind the service a connection leads to is a matter of luck for N2.
    "link.windows.connections-cut": Expectation("N1 N3 N4 N5 N6", blocks="N2"),
    "link.windows.slow": HARMLESS,
    "link.windows.duplicate-pod-ip": Expectation(
        "N6 N7 N8 N9 N13 C2 C3 X5", blocks="N2 N4 N12 S6 C1 K1 K2 W3 P7 X3 X4"
    ),
    "link.windows.ipv6-dead": Expectation("X1 X2 X3 X4 X5"),
    "link.windows.mtu-black-hole": Expectation(f"{LARGE} N10 P1", blocks=BEHIND_LARGE),
    "link.windows.mtu-black-hole-out": Expectation(LARGE, blocks=BEHIND_LARGE),
    "link.windows.mtu-black-hole-in": Expectation(f"{LARGE} N10 P1", blocks=BEHIND_LARGE),
    "link.linux.mtu-black-hole": Expectation(LARGE, blocks="N10 S6 C1 P7"),
    "link.windows.large-datagrams-lost": Expectation(LARGE, blocks="S6 P7"),
    "link.windows.packet-loss": HARMLESS,
    "link.windows.jitter": HARMLESS,
    "link.windows.udp-dead": Expectation(f"N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 N11 N12 N13 C2 C3 {X} W3", blocks="S6"),
    "link.windows.first-pod-only": Expectation("N7 C2 C3", blocks=f"N2 N3 N4 N6 N8 N9 N13 {BEHIND} P7"),
    "link.windows.newest-pod-only": Expectation("N6 N7 C2 C3", blocks=f"N2 N3 N4 N8 N9 N13 {BEHIND}"),
    # Whose pod is the oldest one differs from run to run; two pods of the node ask for N1 and N5.
    "link.windows.first-pod-gets-out": Expectation("N1 N5", blocks="N8 N9 N10 N13 S6 C1 C2 P7 K1 K2 X1 X5"),
    "link.windows.pods-lost-later": Expectation("N6 N7 C2 C3", blocks=f"N2 N3 N4 N8 N9 N13 {BEHIND}"),
    "link.windows.pods-cut-off-under-churn": Expectation("C1"),
    "link.windows.pod-ip-of-another-node": Expectation("N7 C2 C3", blocks=f"N2 N4 N6 N8 N9 N12 N13 {BEHIND}"),
    "link.windows.pods-without-ipv6": Expectation("X1 X2 X3 X4 X5"),
    "link.windows.no-pod-with-ipv6": Expectation("X1 X2 X3 X4 X5"),
}
