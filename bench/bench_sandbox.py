"""What a sandbox costs: time until it is ready, memory, and how both grow with the number of nodes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 3
MOST_MEGABYTES = 150
SIZES = ((2, 2), (10, 100))


def winready(folder: str, *arguments: str) -> str:
    """Run a sandbox command."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
    command = [sys.executable, "-m", "winready", "sandbox", *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def cost(folder: str, linux: int, windows: int) -> tuple[float, float, float]:
    """Wall seconds until ready, CPU seconds of the process by then, and its megabytes."""
    start = time.perf_counter()
    counts = ["--linux", str(linux), "--windows", str(windows)]
    document = json.loads(winready(folder, "up", "--detach", *counts, "-o", "json"))
    wall = time.perf_counter() - start
    process = Path("/proc") / str(document["pid"])
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    memory = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    assert all(node["ready"] for node in document["nodes"])
    winready(folder, "down")
    return wall, cpu, memory


def main() -> None:
    """Print the best of a few rounds for a small and a large cluster."""
    folder = tempfile.mkdtemp(prefix="wr-")
    best = {}
    for linux, windows in SIZES:
        rounds = [cost(folder, linux, windows) for _ in range(ROUNDS)]
        wall, cpu, memory = (min(values) for values in zip(*rounds, strict=True))
        best[linux + windows] = (wall, cpu, memory)
        print(f"sandbox: {linux + windows} nodes ready in {wall:.1f} s ({cpu:.1f} s of CPU), {memory:.0f} MB")
    shutil.rmtree(folder)
    (few, small), (many, large) = sorted(best.items())
    growth = [(b - a) / (many - few) for a, b in zip(small, large, strict=True)]
    print(f"sandbox: each further node costs {growth[1] * 1000:.0f} ms of CPU and {growth[2]:.2f} MB")
    assert small[2] < MOST_MEGABYTES, f"a sandbox of {few} nodes takes {small[2]:.0f} MB, more than {MOST_MEGABYTES}"


if __name__ == "__main__":
    main()
