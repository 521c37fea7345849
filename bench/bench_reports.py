#!/usr/bin/env python3
"""What looking at runs costs: the grid of 1,000 runs by all requirements, the index made anew, and a large report."""

from __future__ import annotations

import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

RUNS = 1000
GRID_SECONDS = 1.0
"""The promise: 1,000 runs open in under a second."""


def main() -> None:
    """Measure in CPU seconds, so that a busy machine does not lie."""
    from report import samples
    from winready.report import record
    from winready.report.dashboard.server import Dashboard
    from winready.report.html import page

    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        clock = datetime(2026, 1, 1)
        for number in range(RUNS):
            clock += timedelta(hours=7)
            name = f"{clock:%y%m%d-%H%M%S}-{number:04x}"
            (base / name).mkdir()
            outcomes = samples.many_outcomes(number)
            record.write(samples.make_record(run_id=name, ids=samples.ALL, outcomes=outcomes), base / name)
        dashboard = Dashboard(base)
        start = time.process_time()
        dashboard._grid()
        indexed = time.process_time() - start
        start = time.process_time()
        size = len(str(dashboard._grid()))
        grid = time.process_time() - start
    results = [samples.result(name, found=samples.evidence(probes=390)) for name in samples.ALL]
    run = samples.make_record(results=results)
    start = time.process_time()
    text = page.render(run)
    rendered = time.process_time() - start
    cells = RUNS * len(samples.ALL)
    print(f"dashboard: {RUNS} runs, {cells} cells: index made anew {indexed:.2f} s, grid {grid:.2f} s, {size >> 10} KB")
    print(f"report: {390 * len(samples.ALL)} probes: {rendered:.2f} s, {len(text) >> 20} MB")
    assert grid < GRID_SECONDS, f"the grid takes {grid:.2f} s, at most {GRID_SECONDS:g} are promised"


if __name__ == "__main__":
    main()
