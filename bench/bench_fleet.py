#!/usr/bin/env python3
"""What a fleet costs: 10,000 runs of 46 results, opened, filtered and asked about over HTTP, and the memory of it.

The promise is that they open in a second with the index at hand. Seconds are CPU seconds of the server, so that a busy
machine does not lie. How much a fleet of a tenth of the runs takes, measured in the same run, says how it grows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from figures import keep

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

RUNS, CLUSTERS = 10_000, 40
OPEN_SECONDS = 1.0
"""From the start of asking to a whole page, with the index at hand."""
VIEW_SECONDS = 0.5
"""Any other view, filtered or not."""
GROWTH = 12.0
"""Ten times as many runs may take so many times as long."""
MEGABYTES = 60
"""What ten times as many runs may add to the memory of the server."""
INDEX_SHARE = 0.05
"""The index is small beside the runs."""
VIEWS = {
    "fleet": "fleet",
    "fleet, filtered": "fleet?state=fail&kubernetes=1.36&sort=-age",
    "runs": "grid",
    "runs of a cluster": "grid?cluster=uid-0003",
    "runs, filtered": "grid?requirement=core.network.dns-external&outcome=failed",
    "requirements": "requirements",
    "who fails dns-external": "requirements/dns-external",
    "flaky": "flaky",
    "trends": "trends",
    "metrics": "metrics",
    "API, runs": "api/v1/runs?limit=100",
}


@dataclass
class Measured:
    """A fleet as the server meets it."""

    indexed: float
    first: float
    """CPU seconds until the first page answered while nothing was in the index."""
    opened: float
    views: dict[str, float]
    megabytes: float
    share: float


class Server:
    """``winready dashboard`` over a folder, whose processor time and memory are read from outside."""

    def __init__(self, base: Path) -> None:
        command = [sys.executable, "-P", "-m", "winready", "dashboard", "--port", "0", "--report-dir", str(base)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().rsplit(" ", 1)[1].strip()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)

    def cpu(self) -> float:
        """Processor seconds so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        """The most memory that it ever had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def get(self, path: str) -> bytes:
        """A page."""
        with urllib.request.urlopen(self.address + path, timeout=600) as answer:  # noqa: S310 - our own server
            return bytes(answer.read())

    def settle(self) -> None:
        """Wait until all runs are taken in."""
        while b'"pending":0' not in self.get("api/v1"):
            time.sleep(0.2)


def measure(base: Path, runs: int) -> Measured:
    """Index a fleet, open it again, look at everything."""
    from report.fleets import write_fleet
    from winready.report.indexing import NAME

    write_fleet(base, clusters=CLUSTERS, runs=runs)
    size = sum(path.stat().st_size for path in base.glob("*/run.json"))
    with Server(base) as server:
        server.get("fleet")
        first = server.cpu()
        server.settle()
        indexed = server.cpu()
    with Server(base) as server:
        begun = server.cpu()
        assert b"40 clusters" in server.get("fleet")
        opened = server.cpu() - begun
        views = {}
        for name, path in VIEWS.items():
            server.get(path)
            start = server.cpu()
            for _ in range(3):
                server.get(path)
            views[name] = (server.cpu() - start) / 3
        index = sum(path.stat().st_size for path in base.glob(f"{NAME}*"))
        return Measured(indexed, first, opened, views, server.megabytes(), index / size)


def main() -> None:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        small = measure(Path(folder) / "small", RUNS // 10)
        large = measure(Path(folder) / "large", RUNS)
    print(f"fleet: {RUNS} runs of {CLUSTERS} clusters, 46 results each")
    print(f"  opened in {large.opened:.2f} s of CPU ({small.opened:.2f} with a tenth), index at hand")
    print(f"  the first page without an index after {large.first:.2f} s, all taken in after {large.indexed:.1f} s")
    for name, seconds in large.views.items():
        print(f"  {name:<24} {seconds * 1000:4.0f} ms ({small.views[name] * 1000:.0f} with a tenth)")
    print(
        f"  memory {large.megabytes:.0f} MB ({small.megabytes:.0f} with a tenth); index {large.share:.1%} of the runs"
    )
    slowest = max(large.views, key=large.views.__getitem__)
    keep("fleet_open_s", large.opened)
    keep("fleet_added_mb", large.megabytes - small.megabytes)
    assert large.opened < OPEN_SECONDS, f"{RUNS} runs open in {large.opened:.2f} s, {OPEN_SECONDS:g} are promised"
    assert large.views[slowest] < VIEW_SECONDS, f"{slowest} takes {large.views[slowest]:.2f} s"
    assert large.indexed < GROWTH * max(small.indexed, 0.5), "taking runs in grows faster than their number"
    assert large.megabytes - small.megabytes < MEGABYTES, (
        f"{large.megabytes - small.megabytes:.0f} MB more for more runs"
    )
    assert large.share < INDEX_SHARE, f"the index is {large.share:.1%} of the runs"


if __name__ == "__main__":
    main()
