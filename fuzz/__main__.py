"""`python -m fuzz [TARGET...] [--inputs N] [--only NUMBER]`: in forked processes, figures in a file after each round.

All targets go on round by round, so that whenever it ends the figures say how far each of them came.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fuzz.reach import reach
from fuzz.running import MOST_MEGABYTES, Outcome, made
from fuzz.targets import TARGETS
from fuzz.workers import BATCH, fuzzed

FIGURES = Path(__file__).resolve().parent.parent / "build" / "fuzz.json"
ROUND = 1_000
"""Inputs of each target in a round."""


def main() -> int:
    """Fuzz, tell, and keep the figures."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--inputs", type=int, default=100_000, metavar="N")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes at the same time")
    parser.add_argument("--go-on", action="store_true", help="begin after the inputs that the figures tell of")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="print this input of the target instead")
    parser.add_argument("--reach", type=int, metavar="N", help="say how far N inputs get into each reader instead")
    parser.add_argument("--output", type=Path, default=FIGURES, metavar="FILE")
    options = parser.parse_args()
    if unknown := sorted(set(options.targets) - TARGETS.keys()):
        parser.error(f"there is no target {unknown[0]!r}: {', '.join(TARGETS)}")
    names = options.targets or list(TARGETS)
    if options.only is not None:
        sys.stdout.buffer.write(made(names[0], options.only))
        return 0
    if options.reach is not None:
        for name in names:
            print(f"{name:<17} {reach(name, range(options.reach))}", flush=True)
        return 0
    kept = Figures(options.output, names, go_on=options.go_on)
    try:
        fuzzed(_parts(names, kept.found, options.inputs), options.workers, kept.add)
    except KeyboardInterrupt:
        print("interrupted; the figures tell what was done", file=sys.stderr)
        return 130
    return kept.told()


def _parts(names: Iterable[str], found: dict[str, Outcome], inputs: int) -> Iterator[tuple[str, range]]:
    """Inputs batch by batch; a round of every target, then the next."""
    begun = {name: found[name].inputs for name in names}
    for end in range(ROUND, inputs + ROUND, ROUND):
        for name, first in begun.items():
            for start in range(max(first, end - ROUND), min(end, inputs), BATCH):
                yield name, range(start, min(start + BATCH, end, inputs))


class Figures:
    """What is known of each target, on disk as soon as it is."""

    def __init__(self, path: Path, names: Iterable[str], *, go_on: bool) -> None:
        self.path = path
        self.others: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        self.found = {name: Outcome(**self.others.get(name, {}) if go_on else {}) for name in names}

    def add(self, name: str, outcome: Outcome) -> None:
        """Some more inputs were done."""
        self.found[name].add(outcome)
        for each in outcome.told:
            print(each, flush=True)
        document = {**self.others, **{name: found.figures() for name, found in self.found.items() if found.inputs}}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
        fresh.replace(self.path)

    def told(self) -> int:
        """Say all of it; the exit code."""
        failed = False
        for name, one in self.found.items():
            bad = one.findings > 0 or one.peak_mb > MOST_MEGABYTES
            failed = failed or bad
            print(
                f"{name:<17} {one.inputs:>7} inputs  {one.findings:>4} findings  {one.accepted:>6} accepted", end="  "
            )
            print(f"slowest {one.slowest_s:6.3f} s  peak {one.peak_mb:6.1f} MB{'  <--' if bad else ''}")
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
