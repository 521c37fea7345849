"""What the command line costs over bare Python, in one run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 9


def cost(*command: str) -> float:
    """Median wall milliseconds of a command."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def main() -> None:
    """Print the cost of the commands that people wait for."""
    bare = cost(sys.executable, "-c", "pass")
    for args in (["--version"], ["--help"]):
        over = cost(sys.executable, "-m", "winready", *args) - bare
        print(f"startup: winready {args[0]} costs {over:.0f} ms over bare Python ({bare:.0f} ms)")


if __name__ == "__main__":
    main()
