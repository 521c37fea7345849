"""Which of Kubernetes' own tests judge the simulated nodes, on which cluster, and why some of them cannot pass."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from winready.upstream.binary import Binary
from winready.upstream.listing import Listing, key
from winready.upstream.mapping import load_mapping
from winready.upstream.shards import Selected

CONFORMANCE = "[Conformance]"
LINUX_ONLY = "[LinuxOnly]"
SPEED = 5.0
"""Half a second for a probe of one second: on a busy machine less would not do."""


@dataclass(frozen=True)
class Round:
    """One sandbox and what is different about it."""

    name: str
    about: str
    options: dict[str, Any] = field(default_factory=dict)
    steered: bool = False
    os: str = "windows"
    """What e2e.test is told that the nodes are."""
    alone: bool = False
    """Whether nodes of the other OS take only pods that tolerate a control plane, so that specs choose among these."""
    fault: str = ""
    """What is broken on every node of that OS."""

    def broken(self, fault: str) -> Round:
        """The same cluster with a fault."""
        return replace(self, name=f"{self.name} with {fault}", fault=fault) if fault else self


LINUX_NODES = {"linux": 3, "windows": 0}
ROUNDS = {
    each.name: each
    for each in (
        Round("pinned", "two Linux and two Windows nodes"),
        Round(
            "steered",
            "the same; pods that name no operating system are sent to Windows, and Linux nodes have the taint of a"
            " control plane",
            steered=True,
            alone=True,
        ),
        Round(
            "steered-timed",
            "the same without haste: its specs measure time",
            {"speed": 1.0},
            steered=True,
            alone=True,
        ),
        Round("dual-stack", "nodes, pods and services with IPv6 as well, steered", {"dual_stack": True}, steered=True),
        Round("containerd-1.6", "nodes with containerd 1.6.33", {"containerd": "1.6.33"}),
        Round("hyper-v", "nodes with Hyper-V, and a RuntimeClass for it", {"hyper_v": True}),
        # Grace periods of a few seconds must be long enough for a test that looks once a second.
        Round(
            "shutdown",
            "nodes with graceful shutdown: 20 s, the last 10 for critical pods",
            {"shutdown_grace": 20.0, "shutdown_grace_critical": 10.0, "speed": 2.0},
        ),
        Round("linux", "three Linux nodes", LINUX_NODES, os="debian"),
        Round(
            "linux-timed",
            "the same without haste: its specs measure time",
            {**LINUX_NODES, "speed": 1.0},
            os="debian",
        ),
    )
}
LINUX_ROUNDS = ("linux", "linux-timed")
STEERED_ROUNDS = ("steered", "steered-timed")

ELSEWHERE = {
    "HostProcess containers container command path validation": "containerd-1.6",
    "HyperV containers should start a hyperv isolated container": "hyper-v",
}
"""Specs that want a node of a certain kind, by a part of their text."""
TIMED = (
    "Probing container with readiness probe should not be ready before initial delay",
    'Probing container should *not* be restarted with a exec "cat /tmp/health" liveness probe',
    "Pods should run through the lifecycle of Pods and PodStatus",
)
"""Specs that compare times of the cluster with their own clock, by a part of their text."""
NO_DOMAIN = (
    "needs a node in the Active Directory domain k8sgmsa.lan (label `agentpool=windowsgmsa`), and a download to install"
    " the gMSA webhook"
)
REASONS = {
    "GMSA Full GMSA support works end to end": NO_DOMAIN,
    "GMSA Full GMSA support can read and write file to remote SMB folder": NO_DOMAIN,
    "RebootHost containers should run as a reboot process on the host/node": (
        "upstream skips it unconditionally since 1.35; `core.storage.reboot-recovery` is our own check for it"
    ),
    "Networking Granular Checks: Services should function for service endpoints using hostNetwork": (
        "its HostProcess pods start `/agnhost`, which has no `.exe` and does not start through `cmd /c`; upstream's CI"
        " installs a webhook that rewrites the command"
    ),
    "SSH should SSH to all nodes and run commands": "needs a cloud provider and an SSH key",
}
"""Why specs do not pass on the Windows nodes, by a part of their text without tags."""
LINUX_REASONS: dict[str, str] = {}
"""Why conformance specs do not pass on the Linux nodes, in the same way."""
NEVER_RUN = {
    "Device Plugin should be able to create a functioning device plugin for Windows": (
        "needs a DirectX GPU and its device plugin; not run, since it waits for one for five hours"
    ),
}


def conformance(text: str) -> bool:
    """Is it one of the conformance tests?"""
    return CONFORMANCE in text


def round_of(text: str, steered: bool) -> str:
    """The sandbox that a spec for Windows is run on."""
    for part, name in ELSEWHERE.items():
        if part in key(text):
            return name
    if conformance(text):
        return _in_time("steered", text)
    if "[Disruptive]" in text:
        return "shutdown"
    if "[Feature:IPv6DualStack]" in text:
        return "dual-stack"
    return _in_time("steered", text) if steered else "pinned"


def _in_time(name: str, text: str) -> str:
    plain = _untagged(text)
    return f"{name}-timed" if any(part in plain for part in TIMED) else name


def chosen(listing: Listing, binary: Binary, only: str = "") -> dict[str, list[Selected]]:
    """The specs by round: all of sig-windows, all of conformance, and whatever else the mapping uses."""
    mapping = load_mapping()
    mapped = {test.text(binary.version): (name, test) for name, test in mapping.tests.items()}
    used = {name for coverage in mapping.requirements.values() for name in coverage.tests}
    rounds: dict[str, list[Selected]] = {name: [] for name in ROUNDS}
    for number, text in enumerate(listing.texts):
        name, test = mapped.get(text, ("", None))
        mine = text.startswith("[sig-windows]") or name in used
        if not (mine or conformance(text)) or not re.search(only, text) or explained(NEVER_RUN, text):
            continue
        steered = test is not None and test.placement == "steered"
        expected, alone = (test.expected_s, test.alone) if test is not None else (40.0, False)
        spec = Selected(name or f"spec-{number}", text, expected, alone)
        if mine or LINUX_ONLY not in text:
            rounds[round_of(text, steered)].append(spec)
        if conformance(text):
            rounds[_in_time("linux", text)].append(spec)
    return rounds


def generic(listing: Listing, binary: Binary) -> set[str]:
    """The texts of the generic specs that the mapping uses."""
    mapping = load_mapping()
    used = {name for coverage in mapping.requirements.values() for name in coverage.tests}
    texts = {test.text(binary.version) for name, test in mapping.tests.items() if name in used}
    return {text for text in listing.texts if text in texts and not text.startswith("[sig-windows]")}


def in_shard(text: str, shard: tuple[int, int]) -> bool:
    """Whether a spec belongs to the I-th of N parts; always to the same one."""
    part, parts = shard
    return zlib.crc32(text.encode()) % parts == part - 1


def explained(reasons: Mapping[str, str], text: str) -> str:
    """The known reason for a spec, if there is one."""
    plain = _untagged(text)
    return next((reason for part, reason in reasons.items() if part in plain), "")


def _untagged(text: str) -> str:
    return re.sub(r"\s*\[[^\]]*\]", "", key(text))
