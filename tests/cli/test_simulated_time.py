"""``run --sandbox``: sandbox and run in one process, whose time is simulated."""

from __future__ import annotations

import gc
import json
import signal
from pathlib import Path

import pytest

from cli.conftest import CommandLine
from winready.cli.venue import Venue, simulated
from winready.cluster.settings import Settings
from winready.engine.options import Options
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready.report.record import Record
from winready.spec.loader import load_standard

QUICK = "core.network.distinct-pod-ips"


def test_times_are_those_of_the_cluster_and_said_to_be_simulated(command_line: CommandLine, tmp_path: Path) -> None:
    result = command_line("run", "--sandbox", "--requirement", QUICK, "--report-dir", str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0].endswith("a simulated cluster (sandbox), in simulated time")
    (folder,) = tmp_path.iterdir()
    run = json.loads((folder / "run.json").read_text())
    assert (run["settings"]["virtual_time"], run["settings"]["time_scale"]) == (True, 1.0)
    # A Windows container alone takes longer to start than this whole command may.
    assert run["requirements"][0]["duration_s"] > 10
    assert "of simulated time" in (folder / "report.html").read_text()


def test_a_sandbox_with_a_speed_goes_by_the_wall_clock(command_line: CommandLine, tmp_path: Path) -> None:
    options = ["--speed", "50", "--report-dir", str(tmp_path), "-o", "json"]
    run = json.loads(command_line("run", "--sandbox", "--requirement", QUICK, *options).stdout)
    assert (run["verdict"], run["settings"]["virtual_time"], run["settings"]["time_scale"]) == ("Pass", False, 50.0)


def test_an_interrupted_run_cleans_up_and_ends_with_130(command_line: CommandLine, tmp_path: Path) -> None:
    process = command_line.start("run", "--sandbox", "--report-dir", str(tmp_path), "-o", "json")
    assert process.stderr is not None
    for line in process.stderr:
        if "will be verified" in line:
            break
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate()
    run = json.loads(printed)
    assert process.returncode == 130
    assert run["leftovers"] == []
    assert (run["verdict"], run["verdict_text"]) == (None, "Interrupted, no verdict")
    # Its cluster is gone with it: there is nothing to resume.
    assert {item["next_step"] for item in run["requirements"] if item["outcome"] == "blocked"} == {"run again"}


@pytest.mark.parametrize(
    ("fault", "said"),
    [("dns.windows.ded", "did you mean 'dns.windows.dead'?"), ("dns.windows.dead@linux-1", "is not one of windows-1")],
)
def test_a_fault_that_cannot_be_had_leaves_no_run_behind(
    fault: str, said: str, command_line: CommandLine, tmp_path: Path
) -> None:
    result = command_line("run", "--sandbox", "--fault", fault, "--report-dir", str(tmp_path / "runs"))
    assert (result.returncode, said in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "runs").exists()


def test_runs_in_a_row_of_one_process_leave_nothing_in_its_memory() -> None:
    async def one(venue: Venue) -> str | None:
        record = Record()
        async with venue.connected() as client:
            options = Options(settings=Settings(run_id="memory"), selection=Selection(requirements=[QUICK]))
            async for event in Run(client, load_standard(), options).stream():
                record.apply(event)
        return record.verdict

    kept = []
    for _ in range(4):
        with simulated((), {}) as venue:
            assert venue.run(one(venue)) == "Pass"
        del venue
        gc.collect()
        kept.append(len(gc.get_objects()))
    # The first one fills caches.
    assert kept[-1] < kept[1] * 1.01
