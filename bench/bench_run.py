"""How close a run comes to the shortest time that any order of its work could take, at realistic Windows latencies.

The critical path is computed from the sandbox's configured latencies and the checks' declared holds, never from what
was measured: cold image pull, pod start, then the longest check, a service deleted and created again twice. The
sandbox's clock is its own, at scale 1: what the machine is busy with does not count, what the run waits for does.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile

from figures import keep

from winready.cluster.settings import AGNHOST
from winready.cluster.timing import TABLE
from winready_sandbox.machine import images
from winready_sandbox.nodes.latency import WINDOWS, Range

LIMIT = 1.10
ROUNDS = 3
SYNC = (1.0, 4.0)
"""Cluster seconds after which a Windows service proxy programs a change."""
READINESS = 2.0 + 1.5
"""Initial delay of the servers' readiness probe, and half of its period."""


def mean(span: Range) -> float:
    """The mean of a latency as the sandbox draws it: short ones are more frequent."""
    return span[0] + (span[1] - span[0]) / 3


def critical_path() -> dict[str, float]:
    """Cluster seconds of each step of the longest chain."""
    command = mean(WINDOWS.exec)
    sync = sum(SYNC) / 2
    image = images.resolve(AGNHOST, "windows", "20348")
    return {
        "pull the image, cold": mean(WINDOWS.pull_base) + image.size / WINDOWS.pull_bytes_per_second,
        "start a pod": mean(WINDOWS.sandbox) + mean(WINDOWS.container) + READINESS + command,
        "hold twice": 2 * (TABLE.hold + 4 * command),
        "observe": TABLE.observe + 4 * command,
        "service gone, twice": 2 * (sync + TABLE.tcp_connect + 2 * command),
        "service back, twice": 2 * sync,
        "settle": TABLE.settle_after_delete,
        "delete the pods": 5 + mean(WINDOWS.teardown),
    }


def main() -> None:
    """Run Core.Network a few times: latencies are drawn anew for each."""
    steps = critical_path()
    shortest = sum(steps.values())
    print("run: critical path " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in steps.items()))
    ratios, passed = [], True
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "winready", "run", "--sandbox", "--report-dir", folder]
            command += ["--category", "Core.Network", "-o", "json"]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        run = json.loads(result.stdout)
        passed = passed and run["verdict"] == "Pass"
        ratios.append(run["duration_s"] / shortest)
        print(
            f"run: {run['verdict_text']} in {run['duration_s']:.0f} s, critical path {shortest:.0f} s, "
            f"ratio {ratios[-1]:.2f}, {run['windows_pods_started']} Windows pods started"
        )
    ratio = statistics.median(ratios)
    print(f"run: ratio {ratio:.2f} (limit {LIMIT})")
    keep("core_network_ratio", ratio)
    if not passed or ratio > LIMIT:
        sys.exit("run: outside its limit")


if __name__ == "__main__":
    main()
