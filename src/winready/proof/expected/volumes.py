"""Who notices faults of volumes and of the tokens in them."""

from __future__ import annotations

from winready.proof.expected.model import Expectation

VOLUMES = {
    "volumes.windows.read-only": Expectation("S1 S2 S4", blocks="S3"),
    "volumes.windows.read-only-ignored": Expectation("S1"),
    "volumes.windows.empty-files": Expectation("S1 P1", blocks="S5"),
    "volumes.windows.updates-never-arrive": Expectation("S1 S5"),
    "volumes.windows.hostpath-not-persistent": Expectation("S2 S3 S4"),
    "volumes.windows.not-shared": Expectation("S1 S2 S4", blocks="S3"),
    "volumes.windows.torn-writes": Expectation("S1 S2 S4", blocks="S3"),
    "volumes.windows.token-not-rotated": Expectation("S5"),
    "tokens.rotated-refused": Expectation("S5"),
    "volumes.linux.updates-never-arrive": Expectation(
        "linux-conformance",
        conformance=(
            "[sig-storage] ConfigMap updates should be reflected in volume [NodeConformance] [Conformance]",
            "[sig-storage] Projected configMap updates should be reflected in volume [NodeConformance] [Conformance]",
            "[sig-storage] Secrets optional updates should be reflected in volume [NodeConformance] [Conformance]",
        ),
    ),
}
