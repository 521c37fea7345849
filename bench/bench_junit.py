"""Memory for a JUnit file of 300 MB, as e2e.test writes them: many tests that print a lot."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from figures import keep

CASES, PRINTED = 3000, 100_000
LIMIT = 100.0


def write(path: Path) -> None:
    """The file."""
    printed = ("y" * 99 + "\n") * (PRINTED // 100)
    with path.open("w") as file:
        file.write("<testsuites><testsuite>")
        for number in range(CASES):
            case = f'<testcase name="[It] test {number}" status="passed"><system-out>{printed}</system-out></testcase>'
            file.write(case)
        file.write("</testsuite></testsuites>")


def read(path: Path) -> None:
    """As a run reads it; prints the peak of this process in MB."""
    from winready.upstream.junit import quiet, read_cases

    cases = {case.text: quiet(case) for case in read_cases(path)}
    if len(cases) != CASES:
        sys.exit(f"junit: {len(cases)} of {CASES} cases")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Read it in a process of its own."""
    if len(sys.argv) > 1:
        read(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "junit_01.xml"
        write(path)
        command = [sys.executable, __file__, str(path)]
        peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        size = path.stat().st_size / 2**20
    print(f"junit: a file of {size:.0f} MB takes {peak:.0f} MB (limit {LIMIT:g})")
    keep("junit_mb", peak)
    if peak > LIMIT:
        sys.exit("junit: outside its limit")


if __name__ == "__main__":
    main()
