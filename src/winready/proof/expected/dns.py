"""Who notices faults of name resolution in pods."""

from __future__ import annotations

from winready.proof.expected.model import HARMLESS, Expectation

DNS = {
    "dns.windows.dead": Expectation("N9 N10 N11 N12", blocks="N8"),
    "dns.windows.no-search-path": Expectation("N10 N12", features="svc-externalname"),
    "dns.windows.dns-config-ignored": Expectation("N10 N12"),
    "dns.windows.host-aliases-ignored": Expectation("N12"),
    "dns.windows.external-dead": Expectation("N11"),
    "dns.windows.wrong-answers": Expectation("N9 N10", blocks="N8"),
    "dns.windows.other-service": Expectation("N10", blocks="N8"),
    "dns.windows.stale-answers": Expectation("N8 N10"),
    "dns.windows.missing-names-kept": Expectation("N10"),
    "dns.windows.every-second-lost": Expectation("N10 N11"),
    "dns.windows.every-third-fails": Expectation("N10 N11"),
    "dns.windows.every-seventh-wrong": Expectation("N10"),
    "dns.windows.one-address-more": Expectation("N10"),
    "dns.windows.few-lost": HARMLESS,
    "dns.windows.slow": HARMLESS,
    "dns.windows.dead-after-a-minute": Expectation("N9 N10 N11 N12", blocks="N8"),
    "dns.windows.large-answers-lost": Expectation("N10"),
    "dns.windows.ipv6-unanswered": Expectation("N10"),
    "dns.windows.headless-names-missing": Expectation("N9 N10"),
    "dns.windows.headless-names-merged": Expectation("N9 N10"),
    "dns.windows.invents-names": Expectation("N10 N12"),
    "dns.windows.node-servers-too": Expectation("N11"),
    "dns.windows.second-server-unused": Expectation("N12"),
    "dns.windows.first-suffix-only": Expectation("N12"),
    "dns.windows.suffix-of-default": Expectation("N10 N12"),
    "dns.windows.hosts-first-container": Expectation("N12"),
    "dns.windows.first-alias-only": Expectation("N12"),
    "dns.windows.hosts-of-another-pod": Expectation("N12"),
}
