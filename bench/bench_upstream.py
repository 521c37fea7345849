"""Upstream specs by our engine, against one process per spec in sequence, as the existing tool runs them.

The same specs of the same e2e.test on the same real control plane, in one run: everything that upstream has for the
chosen requirements, which are those of Core.Network and Core.Storage whose tests may run beside others and take less
than a minute. Images are warm for both, and nodes three times as fast as real Windows nodes. All specs must pass in
both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from figures import keep

from real_programs import ensure
from winready.spec.versions import Version
from winready.upstream.flags import focus
from winready.upstream.junit import read_cases
from winready.upstream.mapping import load_mapping

KUBERNETES = "1.36.3"
LIMIT = 4.0
NEAR = 1.15
"""What a whole run may take over its longest spec and the time until the first one begins."""
SPEED, TIME_SCALE = "3", "5"
REQUIREMENTS = [
    "core.network.windows-to-linux-service-ip",
    "core.network.linux-to-windows-service-ip",
    "core.network.windows-to-linux-nodeport",
    "core.network.linux-to-windows-nodeport",
    "core.network.windows-to-linux-pod-ip",
    "core.network.linux-to-windows-pod-ip",
    "core.network.service-recreated",
    "core.network.dns-internal",
    "core.network.dns-external",
    "core.network.dns-custom",
    "core.network.endpointslice-routing",
    "core.storage.host-volumes",
    "core.storage.hostpath-write",
    "core.storage.hostpath-read",
    "core.storage.shared-files",
]
CONTROL_PLANE = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]


def specs() -> dict[str, str]:
    """The specs of the requirements: name to text."""
    mapping, version = load_mapping(), Version.parse(KUBERNETES)
    names = dict.fromkeys(name for item in REQUIREMENTS for name in mapping.choose(item, version).tests)
    return {name: str(mapping.tests[name].text(version)) for name in names}


def winready(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run([sys.executable, "-m", "winready", *arguments], capture_output=True, text=True, check=False)


@dataclass
class Measured:
    """A whole run by the engine: wall seconds, specs that passed, the longest of them, and when the first began."""

    seconds: float
    passed: set[str]
    longest: float
    start_up: float

    @property
    def ratio(self) -> float:
        """Over what no order of the specs could go below."""
        return self.seconds / (self.longest + self.start_up)


def by_engine(e2e: Path, kubeconfig: str, folder: Path) -> Measured:
    """The specs in a run."""
    chosen = [word for name in REQUIREMENTS for word in ("--requirement", name)]
    options = ["--engine", "upstream", "--e2e-binary", str(e2e), "--time-scale", TIME_SCALE, "-o", "json"]
    began = time.monotonic()
    result = winready("run", "--kubeconfig", kubeconfig, *options, "--report-dir", str(folder), *chosen)
    seconds = time.monotonic() - began
    if result.returncode not in (0, 1, 3):
        sys.exit(result.stderr)
    document = json.loads(result.stdout)
    probes = [probe for item in document["requirements"] for probe in item["evidence"].get("probes", [])]
    events = [json.loads(line) for path in folder.glob("*/journal.jsonl") for line in path.read_text().splitlines()]
    return Measured(
        seconds,
        {probe["title"] for probe in probes if probe["ok"]},
        max(probe["seconds"] for probe in probes),
        min(event["at_s"] for event in events if event["event"] == "upstream-progress"),
    )


def one_by_one(e2e: Path, kubeconfig: str, folder: Path) -> tuple[float, set[str]]:
    """Wall seconds of a process per spec, and the specs that passed."""
    passed = set()
    began = time.monotonic()
    for name, text in specs().items():
        reports = folder / name
        options = ["--provider", "skeleton", "--kubeconfig", kubeconfig, "--report-dir", str(reports)]
        options += ["--node-os-distro", "windows", "--ginkgo.flake-attempts", "1", "--ginkgo.focus", focus([text])]
        environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
        subprocess.run([e2e, *options], env=environment, capture_output=True, cwd=folder, check=False)
        files = sorted(reports.glob("junit_*.xml"))
        passed |= {case.text for path in files for case in read_cases(path) if case.status == "passed"} & {text}
    return time.monotonic() - began, passed


def main() -> None:
    """Warm the images up, then both ways."""
    programs = ensure(KUBERNETES, [*CONTROL_PLANE, "e2e.test"])
    e2e = programs / "e2e.test"
    name = f"bench-{os.getpid()}"
    up = ["--detach", "--name", name, "--speed", SPEED, "--control-plane", str(programs), "-o", "json"]
    started = winready("sandbox", "up", *up)
    if started.returncode != 0:
        sys.exit(started.stderr)
    kubeconfig = json.loads(started.stdout)["kubeconfig"]
    wanted = set(specs().values())
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            by_engine(e2e, kubeconfig, folder / "warm")
            winready("steer", "apply", "--kubeconfig", kubeconfig)
            (folder / "one").mkdir()
            sequence, passed_one_by_one = one_by_one(e2e, kubeconfig, folder / "one")
            winready("steer", "delete", "--kubeconfig", kubeconfig)
            engine = by_engine(e2e, kubeconfig, folder / "engine")
    finally:
        winready("sandbox", "down", "--name", name)
    ratio = sequence / engine.seconds
    print(
        f"upstream: {len(wanted)} specs, one process each in sequence {sequence:.0f} s, winready run "
        f"{engine.seconds:.0f} s, ratio {ratio:.1f} (at least {LIMIT:g})"
    )
    print(
        f"upstream: the longest spec took {engine.longest:.0f} s, the first began after {engine.start_up:.0f} s: "
        f"ratio {engine.ratio:.2f} (limit {NEAR})"
    )
    keep("upstream_ratio", engine.ratio)
    for way, passed in (("in sequence", passed_one_by_one), ("by the engine", engine.passed)):
        if missing := wanted - passed:
            sys.exit(f"upstream: not passed {way}: {'; '.join(sorted(missing))}")
    if ratio < LIMIT or engine.ratio > NEAR:
        sys.exit("upstream: outside its limit")


if __name__ == "__main__":
    main()
