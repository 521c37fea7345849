"""Who notices faults of the network: service proxies, DNS, links, policies."""

from __future__ import annotations

from winready.proof.expected.model import HARMLESS, Expectation

NETWORK = {
    "service-proxy.windows.not-programmed": Expectation(
        "N1 N3 N4 N8 N9 N10 N11 N12 N13 C2 C3 W3 P1 X1 X2 X4 X5", blocks="S5"
    ),
    "service-proxy.windows.stopped": Expectation("N1 N3 N4 N8 N9 N10 N13 C2 C3 W3 X1 X2 X4 X5", blocks="P1 S5"),
    "service-proxy.windows.stale-after-recreate": Expectation("N8"),
    "service-proxy.windows.stale-endpoints": Expectation("N9 N13 C1"),
    "service-proxy.windows.partial-backends": Expectation("N1 N8 N9 C2 C3 X1", blocks="X5"),
    "service-proxy.windows.nodeport-dead": Expectation("N3 N4 C3 W3 X2 X4"),
    "service-proxy.windows.wrong-backend": Expectation(
        "N1 N3 N4 N8 N9 N10 N11 N12 N13 C2 C3 W3 P1 X1 X2 X4 X5", blocks="S5"
    ),
    "service-proxy.linux.not-programmed": Expectation(
        "N2 N3 N4 N8 N9 N13 C2 C3 W3 X2 X3 X4 linux-conformance",
        blocks="N10 N11 X5",
        conformance=("[sig-network] Services should serve a basic endpoint from pods [Conformance]",),
    ),
    "dns.windows.dead": Expectation("N9 N10 N11 N12"),
    "dns.windows.no-search-path": Expectation("N10 N12"),
    "dns.windows.dns-config-ignored": Expectation("N10 N12"),
    "dns.windows.host-aliases-ignored": Expectation("N12"),
    "dns.windows.external-dead": Expectation("N11"),
    "dns.windows.wrong-answers": Expectation("N9 N10"),
    "link.windows.one-way-out": Expectation(
        "N1 N3 N4 N5 N8 N9 N10 N11 N12 N13 C2 C3 W2 X1 X2 X4 X5", blocks="S5 P1 K1 K2"
    ),
    "link.windows.one-way-in": Expectation(
        "N3 N6 N7 N8 N9 N13 C2 C3 W2 W4 X2 X5", blocks="N2 N4 S6 C1 X3 X4 K1 K2 P6 W3"
    ),
    "link.windows.loss": Expectation(
        "N1 N2 N3 N4 N5 N6 N7 N8 N9 N13 C2 C3 X1 X2 X3 X4 X5", blocks="S5 S6 C1 K1 K2 P1 W2 W3 W4"
    ),
    "link.windows.slow": HARMLESS,
    "link.windows.duplicate-pod-ip": Expectation("N6 N7 N8 N9 N13 C2 C3", blocks="N2 N4 S6 C1"),
    "link.windows.ipv6-dead": Expectation("X1 X2 X3 X4 X5"),
    "policy.windows.not-enforced": Expectation("K1 K2"),
    "policy.windows.blocks-all": Expectation("K1 K2"),
    "policy.windows.namespaces-ignored": Expectation("K2"),
    "policy.windows.pods-ignored": Expectation("K1"),
    "policy.windows.never-removed": Expectation("K1 K2"),
    "service-proxy.windows.udp-dead": Expectation("N9 N10 N11 N12 W3"),
    "service-proxy.windows.own-nodeport-dead": Expectation("W3"),
    "service-proxy.linux.own-nodeport-dead": Expectation("W3"),
    "service-proxy.windows.host-left-out": Expectation("P1"),
}
