"""What the command line costs over bare Python, in one run: processor time, which neighbours hardly change."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from figures import keep

ROUNDS = 21
LIMIT = 60
COMMANDS = {
    "bare": ["-c", "pass"],
    "--version": ["-m", "winready", "--version"],
    "--help": ["-m", "winready", "--help"],
    "run --help": ["-m", "winready", "run", "--help"],
    "completion": ["-m", "winready"],
}
COMPLETING = {"_WINREADY_COMPLETE": "bash_complete", "COMP_WORDS": "winready ", "COMP_CWORD": "1"}


def cost(name: str) -> float:
    """Milliseconds of processor time of a command."""
    environment = {**os.environ, **(COMPLETING if name == "completion" else {})}
    process = subprocess.Popen([sys.executable, *COMMANDS[name]], env=environment, stdout=subprocess.DEVNULL)
    _, status, spent = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"startup: {name} ended with {process.returncode}")
    return (spent.ru_utime + spent.ru_stime) * 1000


def main() -> None:
    """All commands in turn, as often as it takes; print the median of what each costs more than Python alone."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, each in times.items():
            each.append(cost(name))
    bare = statistics.median(times.pop("bare"))
    over = {name: statistics.median(each) - bare for name, each in times.items()}
    keep("help_ms", over["--help"])
    for name, more in over.items():
        print(f"startup: winready {name} costs {more:.0f} ms over bare Python ({bare:.0f} ms)")
    if over["--help"] > LIMIT:
        sys.exit("startup: outside its limit")


if __name__ == "__main__":
    main()
