"""How much processor time the proof of one fault costs: beside an earlier commit, and with twice the requirements.

The earlier commit is taken out of this repository's own history and runs with the same Python and the same packages.
Both prove the whole of their tables; names of faults that both know, given as arguments, make it shorter. Then a few
faults are proved once with the core's requirements alone and once with all that there are, twice as many: a proof runs
what its fault can concern, so its price must not follow the size of the standard. Everything is measured in one run.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import math
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from figures import keep

from winready.spec.loader import load_standard

ROOT = Path(__file__).parents[1]
EARLIER = "f16f3a4"
LIMIT = 1.3
DOUBLED = 1.15
SOME = [
    "service-proxy.windows.not-programmed",
    "dns.windows.dead",
    "link.windows.one-way-out",
    "kubelet.windows.exec-broken",
]
"""Faults of the core."""
PR_SET_CHILD_SUBREAPER = 36
"""Of Linux: workers that outlive the command become our children, and what they spent is counted."""


def proved(source: Path, names: Sequence[str], categories: Sequence[str] = ()) -> tuple[float, int]:
    """Processor seconds that the proofs of the sources in a folder cost, and how many proofs they are."""
    command = [sys.executable, "-P", "-m", "winready", "sandbox", "prove", "-o", "json"]
    command += [word for name in names for word in ("--fault", name)]
    command += [word for name in categories for word in ("--category", name)]
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


def against_half(names: Sequence[str], rounds: int) -> bool:
    """Whether proofs cost the same with the core's requirements and with all of them."""
    standard = load_standard()
    core = [category.name for category in standard.document.categories if category.level == "core"]
    few = sum(item.category in core for item in standard.requirements)
    # In turns, and the best of each: what else the machine does makes a proof dearer, and never cheaper.
    halves, wholes = dict.fromkeys(names, math.inf), dict.fromkeys(names, math.inf)
    for _ in range(rounds):
        for name in names:
            halves[name] = min(halves[name], proved(ROOT / "src", [name], core)[0])
            wholes[name] = min(wholes[name], proved(ROOT / "src", [name])[0])
    half, whole = sum(halves.values()), sum(wholes.values())
    ratio = whole / half
    print(
        f"prove: {len(names)} faults with {few} requirements {half:.0f} s of processor time, "
        f"with {len(standard.requirements)} {whole:.0f} s: ratio {ratio:.2f} (limit {DOUBLED})"
    )
    keep("prove_doubling", ratio)
    return ratio <= DOUBLED


def main() -> None:
    """Prove and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*")
    parser.add_argument("--doubling", action="store_true", help="compare with half of the requirements alone")
    parser.add_argument("--rounds", type=int, default=3, help="how often each of these proofs is held")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    good = against_half(options.faults if options.doubling and options.faults else SOME, options.rounds)
    if not options.doubling:
        good = against_earlier(options.faults) and good
    if not good:
        sys.exit("prove: outside its limit")


def against_earlier(names: Sequence[str]) -> bool:
    """Whether a proof costs little more than at the earlier commit."""
    each = {}
    with tempfile.TemporaryDirectory() as folder:
        for label, source in ((EARLIER, earlier(Path(folder))), ("now", ROOT / "src")):
            spent, proofs = proved(source, names)
            each[label] = spent / proofs
            print(
                f"prove: {label}: {proofs} proofs, {spent:.0f} s of processor time, {each[label]:.2f} s each",
                flush=True,
            )
    ratio = each["now"] / each[EARLIER]
    print(f"prove: processor time of a proof, now and at {EARLIER}: ratio {ratio:.2f} (limit {LIMIT})")
    keep("prove_ratio", ratio)
    return ratio <= LIMIT


if __name__ == "__main__":
    main()
