"""Who notices faults of volumes and of the tokens in them."""

from __future__ import annotations

from winready.proof.expected.model import HARMLESS, Expectation

VOLUME = {
    "volumes.windows.read-only": Expectation("S1 S2 S4 A2", blocks="S3 A3"),
    "volumes.windows.read-only-ignored": Expectation("S1"),
    "volumes.windows.empty-files": Expectation("S1 P1", blocks="S5"),
    "volumes.windows.updates-never-arrive": Expectation("S1 S5"),
    "volumes.windows.labels-never-updated": Expectation("S1"),
    "volumes.windows.hostpath-not-persistent": Expectation("S2 S3 S4", blocks="A3"),
    "volumes.windows.not-shared": Expectation("S1 S2 S4", blocks="S3"),
    "volumes.windows.torn-writes": Expectation("S1 S2 S4 A2", blocks="S3 A3"),
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
    "volumes.windows.large-files-cut": Expectation("S1"),
    "volumes.windows.line-ends-converted": Expectation("S1"),
    "volumes.windows.nested-paths-missing": Expectation("S1"),
    "volumes.windows.updates-first-key": Expectation("S1 S5"),
    "volumes.windows.updates-one-by-one": Expectation("S1"),
    "volumes.windows.removed-keys-stay": Expectation("S1"),
    "volumes.windows.added-keys-missing": Expectation("S1"),
    "volumes.windows.first-update-only": Expectation("S1"),
    "volumes.windows.updates-first-container": Expectation("S1 S5"),
    "volumes.windows.updates-slow": HARMLESS,
    "volumes.windows.found-by-name": Expectation("S1"),
    "volumes.windows.emptydir-recycled": Expectation("S1"),
    "volumes.windows.read-only-first-container": Expectation("S1"),
    "volumes.windows.two-containers-share": Expectation("S4"),
    "volumes.windows.sharing-ends": Expectation("S4"),
    "volumes.windows.appends-lost": Expectation("S2 S4"),
    "volumes.windows.hostpath-folders-missing": Expectation("S3"),
    "volumes.windows.hostpath-large-files-lost": Expectation("S2"),
}
