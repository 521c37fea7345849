"""Who notices faults of container runtimes."""

from __future__ import annotations

from winready.proof.expected.model import Expectation
from winready.proof.expected.names import WINDOWS, WINDOWS_PODS

RUNTIME = {
    "lcow.windows-pods-run-linux": Expectation(f"{WINDOWS_PODS} no-linux-passing", features="lcow ws2022"),
    "runtime.windows.pulls-fail": Expectation(
        blocks=f"{WINDOWS} no-linux-passing pod-os images", features="pause-image resource-quota"
    ),
    "runtime.windows.wrong-image": Expectation("images"),
    "runtime.windows.hostprocess-own-address": Expectation("P3 P5 P6", blocks="W3"),
    "runtime.windows.hostprocess-unprivileged": Expectation("P2 P4 P5", blocks="P6 P7 S6"),
    "runtime.windows.wrong-image-beside": Expectation("images"),
    "runtime.windows.tag-moved": Expectation("images"),
    "runtime.windows.hostprocess-always-system": Expectation("P5"),
    "runtime.windows.hostprocess-no-volumes": Expectation("P1"),
}
