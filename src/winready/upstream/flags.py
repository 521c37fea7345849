"""The command line of e2e.test by version: an unknown flag ends it with a usage text, a missing one changes the run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from winready.spec.versions import Version
from winready.upstream.binary import GINKGO_2

SUITE = "Kubernetes e2e suite"
FAILS_ON_EMPTY = Version(1, 31)
ONLY_MASTER, BOTH_NAMES = Version(1, 23), Version(1, 27)


@dataclass(frozen=True)
class Invocation:
    """What one process is told, whatever its version."""

    kubeconfig: Path
    report_dir: Path
    texts: Sequence[str]
    deadline: float
    provider: str = "skeleton"
    non_blocking_taints: Sequence[str] = ()
    extra: Sequence[str] = ()


def arguments(call: Invocation, version: Version) -> list[str]:
    """The arguments for an e2e.test of a version."""
    taints = [*default_taints(version), *call.non_blocking_taints]
    common = [
        f"--kubeconfig={call.kubeconfig}",
        f"--provider={call.provider}",
        "--node-os-distro=windows",
        f"--report-dir={call.report_dir}",
        "--disable-log-dump",
        f"--non-blocking-taints={','.join(taints)}",
        # Skips named here would come on top; with a focus the binary's own default skips do not apply.
        f"--ginkgo.focus={focus(call.texts)}",
        "--ginkgo.v",
    ]
    if version < GINKGO_2:
        gates = ["--feature-gates=WindowsHostProcessContainers=true"] if version == Version(1, 23) else []
        return [*common, "--ginkgo.noColor", *gates, *call.extra]
    modern = ["--ginkgo.no-color", f"--ginkgo.timeout={max(round(call.deadline), 1)}s"]
    if version >= FAILS_ON_EMPTY:
        modern += ["--ginkgo.fail-on-empty", "--ginkgo.silence-skips"]
    return [*common, *modern, *call.extra]


def focus(texts: Sequence[str]) -> str:
    """A pattern that matches these specs and no other; blanks count as one, as they do in our listings."""
    quoted = sorted({r"\s+".join(re.escape(word) for word in text.split()) for text in texts})
    # Python escapes more than Go knows as escapes; Go refuses none of these characters bare.
    plain = [re.sub(r"\\([^\w\s.+*?()|\[\]{}^$\\])", r"\1", text) for text in quoted]
    return rf"^{re.escape(SUITE)}\s+(?:{'|'.join(plain)})\s*$".replace(r"\ ", " ")


def default_taints(version: Version) -> list[str]:
    """The taints that the binary tolerates by itself; naming further ones replaces them."""
    if version <= ONLY_MASTER:
        return ["node-role.kubernetes.io/master"]
    if version <= BOTH_NAMES:
        return ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]
    return ["node-role.kubernetes.io/control-plane"]
