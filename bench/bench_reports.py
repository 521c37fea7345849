#!/usr/bin/env python3
"""What looking at runs costs: the grid of 1,000 runs by all requirements and a report with thousands of probes.

Where there is Chromium, both are opened in it. Seconds are CPU seconds, of the server and of the page's main thread, so
that a busy machine does not lie; what a person waits for on this machine stands beside them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

RUNS, PROBES, FRAMES = 1000, 390, 60
GRID_SECONDS = 1.0
"""The promise: 1,000 runs open in under a second."""


def make_runs(base: Path) -> None:
    """A thousand runs, as the index finds them."""
    from report import samples
    from winready.report import record

    clock = datetime(2026, 1, 1)
    for number in range(RUNS):
        clock += timedelta(hours=7)
        name = f"{clock:%y%m%d-%H%M%S}-{number:04x}"
        (base / name).mkdir()
        outcomes = samples.many_outcomes(number)
        record.write(samples.make_record(run_id=name, ids=samples.ALL, outcomes=outcomes), base / name)


def grid_seconds(base: Path) -> tuple[float, float]:
    """CPU seconds for the first grid, which makes the index, and for one of a new process after that."""
    import msgspec

    from winready.report.dashboard.server import Dashboard
    from winready.report.history import History

    taken = []
    for _ in range(2):
        start = time.process_time()
        with History(base) as index:
            index.sync()
            msgspec.json.encode(Dashboard(base).gridded(index, {"limit": str(RUNS)})["data"])
        taken.append(time.process_time() - start)
    return taken[0], taken[1]


def large_report(path: Path) -> float:
    """CPU seconds for a report with 390 probes in each of all requirements."""
    from report import samples
    from winready.report.html import page

    run = samples.make_record(
        results=[samples.result(name, found=samples.evidence(probes=PROBES)) for name in samples.ALL]
    )
    start = time.process_time()
    path.write_text(page.render(run), encoding="utf-8")
    return time.process_time() - start


class Watched:
    """A page in Chromium whose main thread is measured."""

    def __init__(self, browser: Any) -> None:
        self.page = browser.new_page(viewport={"width": 1280, "height": 900})
        self.page.set_default_timeout(300_000)
        self._session = self.page.context.new_cdp_session(self.page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def cpu(self) -> float:
        """CPU seconds of the page's main thread so far."""
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(item["value"] for item in metrics if item["name"] == "TaskDuration"))

    def open(self, url: str, until: str) -> tuple[float, float]:
        """(CPU seconds, wall seconds) until an element shows."""
        self.page.goto("about:blank")
        cpu, wall = self.cpu(), time.perf_counter()
        self.page.goto(url)
        self.page.wait_for_selector(until)
        return self.cpu() - cpu, time.perf_counter() - wall

    def scroll(self, what: str) -> float:
        """CPU seconds per frame while somebody scrolls fast."""
        cpu = self.cpu()
        frame = "await new Promise((next) => requestAnimationFrame(next));"
        self.page.evaluate(f"(async () => {{ for (let i = 0; i < {FRAMES}; i++) {{ {what}; {frame} }} }})()")
        return (self.cpu() - cpu) / FRAMES


def in_browser(program: str, base: Path, report: Path) -> float:
    """Open both pages; the CPU seconds that the grid takes in the browser."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "winready", "dashboard", "--port", "0", "--report-dir", str(base)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().rsplit(" ", 1)[1].strip()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            watched = Watched(browser)
            watched.open(f"{address}grid?limit={RUNS}", ".cell")  # the first start of everything
            cpu, wall = watched.open(f"{address}grid?limit={RUNS}", ".cell")
            frame = watched.scroll("document.getElementById('grid').scrollLeft += 300")
            print(f"  in Chromium: {cpu:.2f} s, {wall:.2f} s on the clock; a frame of scrolling {frame * 1000:.0f} ms")
            large, waited = watched.open(f"file://{report}", "#shown")
            watched.page.click("#expand")
            frame = watched.scroll("scrollBy(0, 500)")
            print(
                f"report in Chromium: {large:.2f} s, {waited:.2f} s on the clock; with all of it unfolded, a frame of "
                f"scrolling {frame * 1000:.0f} ms"
            )
            browser.close()
    finally:
        server.terminate()
        server.wait(30)
    return cpu


def main() -> None:
    """Measure."""
    from report import samples

    with tempfile.TemporaryDirectory() as folder:
        base, report = Path(folder) / "runs", Path(folder) / "report.html"
        base.mkdir()
        make_runs(base)
        indexed, grid = grid_seconds(base)
        cells = RUNS * len(samples.ALL)
        print(f"dashboard: {RUNS} runs, {cells} cells: {grid:.2f} s; with an index made anew {indexed:.2f} s")
        rendered = large_report(report)
        size = report.stat().st_size >> 20
        print(f"report: {PROBES * len(samples.ALL)} probes: {rendered:.2f} s, {size} MB")
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        total = grid + in_browser(program, base, report) if program else grid
    assert total < GRID_SECONDS, f"the grid takes {total:.2f} s, at most {GRID_SECONDS:g} are promised"


if __name__ == "__main__":
    main()
