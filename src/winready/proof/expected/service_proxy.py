"""Who notices faults of service proxies."""

from __future__ import annotations

from winready.proof.expected.model import HARMLESS, Expectation

SERVICE_PROXY = {
    "service-proxy.windows.not-programmed": Expectation(
        "N1 N3 N4 N8 N9 N10 N11 N12 N13 C2 C3 W3 P1 X1 X2 X4 X5", blocks="S5"
    ),
    "service-proxy.windows.stopped": Expectation("N1 N3 N4 N8 N9 N10 N13 C2 C3 W3 X1 X2 X4 X5", blocks="S5"),
    "service-proxy.windows.stale-after-recreate": Expectation("N8"),
    "service-proxy.windows.stale-endpoints": Expectation("N9 N13 C1"),
    "service-proxy.windows.partial-backends": Expectation("N1 N8 N9 N13 C2 C3 X1 X5"),
    "service-proxy.windows.nodeport-dead": Expectation("N3 N4 N8 C3 W3 X2 X4"),
    "service-proxy.windows.wrong-backend": Expectation(
        "N1 N3 N4 N8 N9 N10 N11 N12 N13 C2 C3 W3 P1 X1 X2 X4 X5", blocks="S5"
    ),
    "service-proxy.linux.not-programmed": Expectation(
        "N2 N3 N4 N8 N9 N13 C2 C3 W3 X2 X3 X4 X5 linux-conformance",
        blocks="P7",
        conformance=("[sig-network] Services should serve a basic endpoint from pods [Conformance]",),
    ),
    "service-proxy.windows.udp-dead": Expectation("N1 N3 N4 N8 N9 N10 N11 N12 N13 C2 C3 W3 X1 X2 X4 X5"),
    "service-proxy.windows.own-nodeport-dead": Expectation("W3"),
    "service-proxy.linux.own-nodeport-dead": Expectation("W3"),
    "service-proxy.windows.host-left-out": Expectation("P1"),
    "service-proxy.windows.udp-nodeport-dead": Expectation("N3 N4 N8 C3 W3 X2 X4"),
    "service-proxy.windows.nodeport-local-only": Expectation("N3 N4 N8 C3 W3 X2 X4"),
    "service-proxy.windows.nodeport-stale": Expectation("N8"),
    "service-proxy.windows.second-port-stale": Expectation("N8"),
    "service-proxy.windows.udp-nodeport-stale": Expectation("N8"),
    "service-proxy.windows.first-port-only": Expectation("N1 N3 N4 N8 N9 N10 N13 C2 C3 W3 X1 X2 X4 X5"),
    "service-proxy.windows.rules-lost-later": Expectation("N1 N3 N4 N9 N10 N13 C2 C3", blocks="N8 C1 W3"),
    "service-proxy.windows.every-third-lost": Expectation("N1 N3 N4 N8 N9 N13 C2 C3 W3 P1 X1 X2 X4 X5", blocks="C1"),
    "service-proxy.windows.every-tenth-lost": Expectation("N1 N3 N4 N8 N9 N13 C2 C3 W3 P1 X1 X2 X4 X5", blocks="C1"),
    "service-proxy.windows.every-fifth-refused": Expectation("N1 N3 N4 N8 N9 N13 C2 C3 W3 P1 X1 X2 X4 X5", blocks="C1"),
    "service-proxy.windows.stale-if-as-many": Expectation("N13", blocks="N9 C1"),
    "service-proxy.windows.lost-with-neighbour": Expectation("N8", blocks="N4 N13"),
    "service-proxy.windows.few-backends": Expectation("C2 C3"),
    "service-proxy.windows.partial-datagrams": Expectation("N1 N8 N9 N13 C2 C3 X1 X5"),
    "service-proxy.windows.partial-second-ports": Expectation("N1 N8 N9 N13 C2 C3 X1 X5"),
    "service-proxy.windows.unready-too": Expectation("N13"),
    "service-proxy.windows.first-slice-only": Expectation("N13 X5"),
    "service-proxy.windows.late": Expectation("N1 N3 N4 N8 N9 N10 N13 W3 X1 X2 X4", blocks="C1 C2 C3"),
    "service-proxy.windows.slow": HARMLESS,
    "service-proxy.windows.one-backend-per-client": Expectation("N1 N8 N9 N13 C2 C3 X1 X5"),
    "service-proxy.windows.stale-datagrams": Expectation("N9 N13"),
    "service-proxy.windows.large-lost": Expectation("N1 N3 N4 N8 N9 N10 N13 C2 C3 P1 X1 X2 X4 X5", blocks="S5 C1"),
    "service-proxy.windows.connections-forgotten": Expectation("N1 N3 N4"),
    "service-proxy.linux.nodeport-dead": Expectation("N3 N4 N8 C3 W3 X2 X4"),
    "service-proxy.windows.ipv4-only": Expectation("X1 X2 X4 X5"),
    "service-proxy.windows.second-family-missing": Expectation("X5"),
    "service-proxy.windows.ipv6-nodeport-dead": Expectation("X2 X4"),
    "service-proxy.windows.ipv6-cluster-ip-dead": Expectation("X1 X5"),
    "service-proxy.linux.ipv4-only": Expectation("X2 X3 X4 X5"),
}
