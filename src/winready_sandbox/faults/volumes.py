"""Faults of volumes and of the tokens in them."""

from __future__ import annotations

from winready_sandbox.faults.model import Fault

VOLUME_FAULTS = (
    Fault(
        "volumes.windows.read-only",
        "Every volume of one Windows node refuses writes.",
        "node.volumes",
        {"read_only": True},
        fact="briefs S1, S2 and S4",
    ),
    Fault(
        "volumes.windows.read-only-ignored",
        "Read-only mounts of one Windows node accept writes.",
        "node.volumes",
        {"writable_read_only": True},
        fact="1.7: read-only mounts work; brief S1",
    ),
    Fault(
        "volumes.windows.empty-files",
        "Files from secrets, config maps, tokens and the downward API are there but empty on one Windows node.",
        "node.volumes",
        {"empty": True},
        fact="brief S1: exact content",
    ),
    Fault(
        "volumes.windows.updates-never-arrive",
        "Files from secrets, config maps and tokens stay as they were at the pod's start on one Windows node.",
        "node.volumes",
        {"updates_never_arrive": True},
        fact="briefs S1 and S5: the kubelet replaces files at the next pod sync",
    ),
    Fault(
        "volumes.windows.hostpath-not-persistent",
        "A hostPath volume is a fresh directory for each pod on one Windows node.",
        "node.volumes",
        {"host_path_not_persistent": True},
        fact="briefs S2, S3 and S4",
    ),
    Fault(
        "volumes.windows.not-shared",
        "Containers that mount the same volume do not see each other's files on one Windows node.",
        "node.volumes",
        {"not_shared": True},
        fact="briefs S1 (second container) and S4",
    ),
    Fault(
        "volumes.windows.torn-writes",
        "Only half of what is written to a volume arrives on one Windows node.",
        "node.volumes",
        {"torn_writes": True},
        fact="brief S4: all reads are exact",
    ),
    Fault(
        "volumes.windows.token-not-rotated",
        "The kubelet of one Windows node never renews service account tokens.",
        "node.volumes",
        {"token_not_rotated": True},
        fact="brief S5: renewed at 80 % of life",
    ),
    Fault(
        "tokens.rotated-refused",
        "Tokens that running pods are given are signed with a key that the API server does not accept.",
        "tokens",
        {"rotated_refused": True},
        where="cluster",
        fact="brief S5: no failed call after the rotation",
    ),
    Fault(
        "volumes.linux.updates-never-arrive",
        "Files from secrets, config maps and tokens stay as they were at the pod's start on one Linux node.",
        "node.volumes",
        {"updates_never_arrive": True},
        where="linux",
        fact="run-level rules: Linux conformance is imported; updates of volumes are part of it",
    ),
)
