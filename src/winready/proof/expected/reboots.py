"""Who notices what does not come back with a node after its reboot: whoever reboots it."""

from __future__ import annotations

from winready.proof.expected.model import Expectation

REBOOT = {
    "reboot.windows.service-proxy-dead": Expectation("S6"),
    "reboot.windows.nodeports-dead": Expectation("S6"),
    "reboot.windows.backends-missing": Expectation("S6"),
    "reboot.windows.second-ports-missing": Expectation("S6"),
    "reboot.windows.nodeport-datagrams-dead": Expectation("S6"),
    "reboot.windows.large-lost": Expectation("S6"),
    "reboot.windows.dns-dead": Expectation("S6"),
    "reboot.windows.search-path-lost": Expectation("S6"),
    "reboot.windows.outside-names-lost": Expectation("S6"),
    "reboot.windows.network-lost": Expectation("S6 P7"),
    "reboot.windows.new-pods-stuck": Expectation("S6 P7"),
    "reboot.windows.new-pods-without-services": Expectation("S6"),
    "reboot.windows.same-address-twice": Expectation("S6 P7"),
    "reboot.windows.routes-stale": Expectation("S6 P7"),
    "reboot.windows.routes-stale-on-windows": Expectation("S6"),
    "reboot.windows.exec-dead": Expectation("S6 P7"),
    "reboot.windows.files-empty": Expectation("S6"),
    "reboot.windows.updates-stop": Expectation("S6"),
    "reboot.windows.disk-wiped": Expectation("S6"),
    "reboot.windows.memory-limit-lost": Expectation("S6"),
    "reboot.windows.cpu-limit-lost": Expectation("S6"),
    "reboot.windows.memory-missing": Expectation("S6"),
    "reboot.windows.taint-stays": Expectation("S6 P7"),
    "reboot.windows.falls-again": Expectation("S6", blocks="P7"),
    "reboot.windows.slow": Expectation(survived_by="S6 P7"),
}
