"""How much processor time the proof of one fault costs, beside that of an earlier commit, measured in one run.

The earlier commit is taken out of this repository's own history and runs with the same Python and the same packages.
Both prove the whole of their tables; names of faults that both know, given as arguments, make it shorter.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
EARLIER = "f16f3a4"
LIMIT = 1.3
PR_SET_CHILD_SUBREAPER = 36
"""Of Linux: workers that outlive the command become our children, and what they spent is counted."""


def proved(source: Path, names: Sequence[str]) -> tuple[float, int]:
    """Processor seconds that the proofs of the sources in a folder cost, and how many proofs they are."""
    command = [sys.executable, "-P", "-m", "winready", "sandbox", "prove", "-o", "json"]
    command += [word for name in names for word in ("--fault", name)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        document = json.loads(result.stdout)
    except ValueError:
        sys.exit(f"prove: {source} proves nothing: {result.stderr.strip()[-500:]}")
    if wrong := document["missed"] + document["false_alarms"]:
        sys.exit(f"prove: {source}: {wrong} missed or false alarms; what is wrong has no price")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, len(document["faults"]) + len(document.get("healthy", []))


def earlier(folder: Path) -> Path:
    """The sources of the earlier commit, unpacked."""
    archive = subprocess.run(["git", "archive", EARLIER, "src"], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        sys.exit(f"prove: commit {EARLIER} is not in this clone's history: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder / "src"


def main() -> None:
    """Prove with both and compare."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    each = {}
    with tempfile.TemporaryDirectory() as folder:
        for label, source in ((EARLIER, earlier(Path(folder))), ("now", ROOT / "src")):
            spent, proofs = proved(source, sys.argv[1:])
            each[label] = spent / proofs
            print(
                f"prove: {label}: {proofs} proofs, {spent:.0f} s of processor time, {each[label]:.2f} s each",
                flush=True,
            )
    ratio = each["now"] / each[EARLIER]
    print(f"prove: processor time of a proof, now and at {EARLIER}: ratio {ratio:.2f} (limit {LIMIT})")
    if ratio > LIMIT:
        sys.exit(1)


if __name__ == "__main__":
    main()
