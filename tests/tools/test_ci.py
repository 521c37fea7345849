"""The runner behind ``.ci/run``: what ran, what did not and why, and nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import ci
import windows_ground
from ci import MINUTE, STAGES, Runner, Stage

ROOT = Path(__file__).resolve().parents[2]
SLEEP = "sleep 600"
"""Nobody waits for it: whoever sleeps that long is stopped."""


def stage(
    name: str,
    script: str,
    *,
    budget: float = MINUTE,
    cold: float = 1,
    required: bool = False,
    builds: tuple[Path, ...] = (),
    needs: tuple[str | Path, ...] = (),
    beside: bool = False,
) -> Stage:
    return Stage(name, ("sh", "-c", script), budget, 1, cold, required, builds, needs, beside)


Outcome = tuple[int, list[str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run stages; the exit code and the closing lines, without the seconds that each took."""

    def outcome(*stages: Stage, limit: float = 10 * MINUTE, only: tuple[str, ...] = ()) -> Outcome:
        code = Runner(stages, limit, only).run()
        lines = capfd.readouterr().out.splitlines()
        return code, [line.rpartition(", ")[0] if line.endswith(" s") else line for line in lines[lines.index("") :]]

    return outcome


@pytest.fixture
def closing(run: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """The same without what the stages print."""

    def outcome(*stages: Stage, **options: object) -> Outcome:
        code, lines = run(*stages, **options)
        last = len(lines) - lines[::-1].index("")
        return code, lines[last:]

    return outcome


def ends(pid: int) -> bool:
    """Wait until a process is gone; one that nobody has buried yet is."""
    for _ in range(1000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_output_streams_through_and_every_stage_has_a_closing_line(run: Callable[..., Outcome]) -> None:
    code, lines = run(stage("one", "echo 5 passed"), stage("two", "true"))
    assert code == 0
    assert lines[:5] == ["", "== stage one: sh -c echo 5 passed", "5 passed", "", "== stage two: sh -c true"]
    assert lines[5:] == ["", "stage one: ran", "stage two: ran", "everything ran and passed"]


def test_a_stage_beside_others_waits_for_none_and_is_told_whole_at_the_end(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    met = tmp_path / "met"
    wait = f"until test -e {met}; do sleep 0.05; done"
    code, lines = run(
        stage("one", f"echo begun; {wait}; nice; exit 7", beside=True), stage("two", f"echo seen; touch {met}")
    )
    assert code == 1
    assert lines == [
        "",
        f"== stage one: sh -c echo begun; {wait}; nice; exit 7 (beside those that follow)",
        "",
        f"== stage two: sh -c echo seen; touch {met}",
        "seen",
        "",
        "== stage one: its output",
        "begun",
        "19",
        "",
        "stage one: FAILED with exit code 7",
        "stage two: ran",
        "failed: one",
    ]


def test_a_stage_that_mostly_waits_lets_the_next_one_begin_and_no_third(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    met = tmp_path / "met"
    wait = f"until test -e {met}; do sleep 0.05; done"
    first = replace(stage("one", f"{wait}; nice; rm {met}"), waits=True)
    second = replace(stage("three", f"test ! -e {met}"), waits=True)
    code, lines = run(first, stage("two", f"touch {met}"), second, stage("four", "true"))
    assert code == 0
    assert lines[-5:] == [
        "stage one: ran",
        "stage two: ran",
        "stage three: ran",
        "stage four: ran",
        "everything ran and passed",
    ]
    assert lines[lines.index("== stage one: its output") + 1] == str(os.nice(0)), "it gives way to nobody"
    assert lines.index("== stage one: its output") < lines.index(
        f"== stage three: sh -c test ! -e {met} (beside those that follow)"
    )


def test_nothing_runs_beside_builds(run: Callable[..., Outcome], tmp_path: Path) -> None:
    built = tmp_path / "program"
    code, lines = run(stage("one", "echo begun", beside=True), stage("build", f"touch {built}", builds=(built,)))
    assert code == 0
    assert lines[1:3] == ["== stage one: sh -c echo begun", "begun"]


def test_a_stage_beside_others_is_stopped_where_its_budget_ends(closing: Callable[..., Outcome]) -> None:
    code, lines = closing(stage("one", SLEEP, budget=0.1, beside=True), stage("two", "true"))
    assert code == 1
    assert [line.partition(" after ")[0] for line in lines] == [
        "stage one: FAILED: stopped",
        "stage two: ran",
        "failed: one",
    ]


def test_a_failure_fails_the_run_and_the_rest_is_told_all_the_same(closing: Callable[..., Outcome]) -> None:
    stages = [stage("one", "exit 7"), stage("two", "true"), Stage("three", ("no-such-program",), 1, 1, 1)]
    assert closing(*stages) == (
        1,
        [
            "stage one: FAILED with exit code 7",
            "stage two: ran",
            "stage three: FAILED: No such file or directory: no-such-program",
            "failed: one, three",
        ],
    )


def test_stages_that_do_not_fit_are_left_out_with_the_reason(closing: Callable[..., Outcome], tmp_path: Path) -> None:
    built = tmp_path / "e2e.test"
    stages = [
        stage("slow", "exit 1", budget=20 * MINUTE),
        stage("build e2e.test", "exit 1", cold=25 * MINUTE, builds=(built,)),
        stage("upstream", "exit 1", needs=("build e2e.test",)),
        stage("image", "exit 1", needs=(tmp_path / "podman",)),
        stage("quick", "true", needs=(tmp_path,)),
    ]
    assert closing(*stages) == (
        0,
        [
            "stage slow: not run: it may take 20 min of the 10 left",
            "stage build e2e.test: not run: e2e.test is not built and would take about 25 min and 1 min to use of the "
            "10 left",
            "stage upstream: not run: it needs e2e.test, see stage build e2e.test",
            "stage image: not run: it needs podman, which is not there",
            "stage quick: ran",
            "what ran passed; 4 of 5 stages were not run",
        ],
    )


def test_what_is_cached_costs_nothing_and_what_nobody_could_use_is_not_built(
    closing: Callable[..., Outcome], tmp_path: Path
) -> None:
    program, tests = tmp_path / "etcd", stage("tests", "true", needs=("build",))
    build = stage("build", f"touch {program}", cold=8 * MINUTE, builds=(program,))
    too_late = closing(build, stage("tests", "true", budget=5 * MINUTE, needs=("build",)))[1]
    assert "etcd is not built and would take about 8 min and 5 min to use of the 10 left" in too_late[0]
    assert closing(build, tests) == (0, ["stage build: ran", "stage tests: ran", "everything ran and passed"])
    assert closing(build, tests, limit=2 * MINUTE)[1] == [
        "stage build: ran",
        "stage tests: ran",
        "everything ran and passed",
    ]


def test_required_stages_run_whatever_the_time(closing: Callable[..., Outcome]) -> None:
    stages = [stage("needed", "true", required=True), stage("other", "true")]
    assert closing(*stages, limit=0) == (
        0,
        [
            "stage needed: ran",
            "stage other: not run: it may take 1 min of the 0 left",
            "what ran passed; 1 of 2 stages were not run",
        ],
    )


def test_what_is_asked_for_by_name_runs_or_fails(closing: Callable[..., Outcome], tmp_path: Path) -> None:
    stages = [
        stage("needed", "exit 1", required=True),
        stage("build", "true", builds=(tmp_path / "etcd",)),
        stage("tests", "true", needs=("build",)),
        stage("quick", "true"),
    ]
    assert closing(*stages, limit=0, only=("quick",)) == (0, ["stage quick: ran", "everything ran and passed"])
    assert closing(*stages, only=("tests",)) == (
        1,
        ["stage tests: FAILED: not run: it needs etcd, see stage build", "failed: tests; 1 of 1 stages were not run"],
    )


def test_an_overrunning_stage_leaves_no_process(
    closing: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ci, "GRACE", 1)
    pids = tmp_path / "pids"
    script = f"""
        {SLEEP} & echo $! >> {pids}
        setsid {SLEEP} & echo $! >> {pids}
        (trap '' TERM; while :; do sleep 1; done) & echo $! >> {pids}
        echo $$ >> {pids}; {SLEEP}
    """
    code, lines = closing(stage("hangs", script, budget=3), stage("next", "true"))
    assert code == 1
    assert lines[0].startswith("stage hangs: FAILED: stopped after ")
    assert lines[1:] == ["stage next: ran", "failed: hangs"]
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 4
    assert all(ends(pid) for pid in started)


def test_building_that_takes_too_long_leaves_out_what_needs_it(closing: Callable[..., Outcome], tmp_path: Path) -> None:
    build = stage("build", SLEEP, budget=0.5, builds=(tmp_path / "etcd",))
    code, lines = closing(build, stage("tests", "exit 1", needs=("build",)))
    assert code == 0
    assert lines[0].startswith("stage build: not run to its end: stopped after ")
    assert lines[1:] == [
        "stage tests: not run: it needs etcd, see stage build",
        "what ran passed; 2 of 2 stages were not run",
    ]


def test_a_stopped_run_stops_its_stage(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    driver = f"""
import sys, ci
long = ("sh", "-c", "echo $$ > {pids}; echo ready; {SLEEP}")
ci.STAGES = (ci.Stage("long", long, 600, 1, 1), ci.Stage("next", ("true",), 1, 1, 1))
sys.argv = ["ci"]
sys.exit(ci.main())
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    with subprocess.Popen([sys.executable, "-c", driver], env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert any(line == "ready\n" for line in run.stdout)
        run.send_signal(signal.SIGTERM)
        lines = run.stdout.read().splitlines()
    assert run.returncode == 1
    assert lines[1].startswith("stage long: FAILED: interrupted by SIGTERM after ")
    assert lines[2:] == [
        "stage next: FAILED: not run: interrupted by SIGTERM",
        "failed: long, next; 1 of 2 stages were not run",
    ]
    assert ends(int(pids.read_text()))


def test_the_table_keeps_its_aims_and_what_must_run() -> None:
    assert [stage.name for stage in STAGES if stage.required] == ["test", "prove"]
    assert sum(stage.warm for stage in STAGES) <= ci.AIM_WARM
    assert sum(stage.cold for stage in STAGES) <= ci.AIM_COLD
    for place, one in enumerate(STAGES):
        assert max(one.warm, one.cold) < one.budget
        assert all(STAGES[:place].count(builder) for builder in STAGES if builder.name in one.needs)
        assert {need for need in one.needs if isinstance(need, str)} <= {
            builder.name for builder in STAGES if builder.builds
        }


def test_what_cannot_be_had_on_every_machine_fails_nothing(closing: Callable[..., Outcome], tmp_path: Path) -> None:
    ground = replace(stage("ground", "exit 1", builds=(tmp_path / "ground",)), elsewhere=True)
    user = stage("user", "true", needs=("ground",))
    assert closing(ground, user) == (
        0,
        [
            "stage ground: not run to its end: ground cannot be had here, as it says above",
            "stage user: not run: it needs ground, see stage ground",
            "what ran passed; 2 of 2 stages were not run",
        ],
    )
    # Whoever names the stage wants it; and what is there and fails, fails.
    assert closing(ground, only=("ground",))[0] == 1
    (tmp_path / "ground").touch()
    assert closing(ground)[0] == 1


KUBERNETES_BUILDERS = [stage for stage in STAGES if stage.builds and stage.builds[0].parent.name == "bin"]


def test_the_ground_for_windows_programs_is_made_by_its_tool() -> None:
    (builder,) = [stage for stage in STAGES if stage.builds and stage not in KUBERNETES_BUILDERS]
    assert {path.name for path in builder.builds} == set(windows_ground.PARTS)
    command = subprocess.run([*builder.command, "-n"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "tools/windows_ground.py" in command.split()


@pytest.mark.parametrize("builder", KUBERNETES_BUILDERS, ids=lambda stage: stage.name)
def test_builders_build_what_they_declare(builder: Stage) -> None:
    command = subprocess.run([*builder.command, "-n"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    words = command.replace(">", " ").split()
    assert {path.name for path in builder.builds} <= set(words)
    assert {path.parent.parent.name for path in builder.builds} == {f"v{words[words.index('--kubernetes') + 1]}"}


def test_the_entry_lists_the_stages() -> None:
    listing = subprocess.run([ROOT / ".ci" / "run", "--list"], capture_output=True, text=True, check=True).stdout
    assert [line.split("  ")[0] for line in listing.splitlines()[1:-1]] == [stage.name for stage in STAGES]
