"""Who notices faults of the machine itself, and of what administrators expect of it."""

from __future__ import annotations

from winready.proof.expected.model import HARMLESS, Expectation

MACHINE = {
    "machine.windows.cpu-limit-ignored": Expectation("H1"),
    "machine.windows.memory-limit-ignored": Expectation("H1"),
    "machine.windows.hns-down": Expectation("P2", features="kube-proxy-overlay"),
    "machine.windows.defender-scans-runtime": Expectation("W1"),
    "machine.windows.pings-dropped": Expectation("W2"),
    "machine.windows.remote-access-closed": Expectation("W4"),
    "machine.windows.busy": HARMLESS,
    "machine.windows.cpu-limit-is-weight": Expectation("H1"),
    "machine.windows.cpu-limit-lost-later": Expectation("H1"),
    "machine.windows.cpu-limit-per-process": Expectation("H1"),
    "machine.windows.cpu-limit-first-container": Expectation("H1"),
    "machine.windows.memory-limit-lost-later": Expectation("H1"),
    "machine.windows.memory-limit-first-container": Expectation("H1"),
    "machine.windows.limits-lost-on-restart": Expectation("H1"),
    "machine.windows.teardowns-hang": Expectation("C1"),
    "addresses.windows.reused-under-churn": Expectation("C1"),
    "addresses.windows.leaked": Expectation("C1"),
    "machine.windows.hns-keeps-deleted": Expectation("P2"),
    "machine.windows.hns-removes-others": Expectation("P2"),
    "machine.windows.wmi-broken": Expectation("P4", blocks="W1"),
    "machine.windows.firewall-ignores-local-rules": Expectation("P6"),
    "machine.windows.defender-excludes-docker": Expectation("W1"),
    "machine.windows.remote-access-mute": Expectation("W4"),
}
