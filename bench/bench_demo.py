"""``run --sandbox`` in simulated time, over the same selection on the wall clock at the speed it once had: one run.

Seconds of the wall clock are what a new user waits for; they are compared with each other only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time

from figures import keep

ONCE = "25"
"""How fast the sandbox of a run was before time was simulated."""
LIMIT = 1.0
SELECTION = ("--category", "core.network")


def seconds(*more: str) -> float:
    """Wall seconds of a run that passes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "winready", "run", "--sandbox", *SELECTION, *more, "-o", "json"]
        began = time.monotonic()
        ended = subprocess.run([*command, "--report-dir", folder], capture_output=True, text=True, check=False)
        took = time.monotonic() - began
    if ended.returncode or json.loads(ended.stdout)["verdict"] != "Pass":
        sys.exit(f"demo: {' '.join(more) or 'simulated time'} did not pass: {ended.stderr[-2000:]}")
    return took


def main() -> None:
    """One after the other, twice, so that neither is always the first."""
    times = [(seconds(), seconds("--speed", ONCE)) for _ in range(2)]
    now, before = (min(each) for each in zip(*times, strict=True))
    keep("demo_ratio", now / before)
    print(f"demo: Core.Network of run --sandbox takes {now / before:.2f} of what it took at speed {ONCE}")
    if now > LIMIT * before:
        sys.exit("demo: outside its limit")


if __name__ == "__main__":
    main()
