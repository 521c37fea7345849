#!/usr/bin/env python3
"""What must pass before a change lands, in stages that share one clock.

The first stages are never left out. The others run in the order of the table as far as the time reaches: before each
one starts, the runner looks whether it still fits. A stage whose outcome does not depend on how busy the machine is
runs beside those after it, with what they leave of the processors; one that mostly waits runs beside the next one.
Whatever did not run is named with the reason.
Whatever fails fails the run, and the stages after it run all the same, so that one run tells everything. A new stage
is one entry in ``STAGES``.

Needs nothing but Python: the first stage makes the environment that the others use.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import IO

from real_programs import cache_root
from windows_ground import layers

ROOT = Path(__file__).resolve().parent.parent
MINUTE = 60
LIMIT = 74 * MINUTE
"""The whole run ends before that: who calls it gives it 90, and is to read the closing lines."""
AIM_COLD, AIM_WARM = 136 * MINUTE, 36 * MINUTE
"""What the sums of the table stay below: with everything built it all runs, without it the last stages may not fit."""
GRACE = 10
"""Seconds between asking a process to end and ending it."""
MARK = "WINREADY_CI_STAGE"
"""Set for all that a stage starts: even what has left the stage's process group is found when the stage is stopped."""
LOWEST = 19
BESIDE = " (beside those that follow)"
NEWEST, OLDER = "1.36.3", "1.32.2"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
FOR_WINDOWS = (
    "kubeadm",
    *(f"{name}.exe" for name in ("kubeadm", "kubelet", "kube-proxy", "kube-log-runner", "agnhost", "host-local")),
)


@dataclass(frozen=True)
class Stage:
    """A command with a budget. ``warm`` and ``cold`` are what it takes, in seconds, as measured on two cores."""

    name: str
    command: tuple[str, ...]
    budget: float
    """It is stopped after that: tests that take longer hang."""
    warm: float
    cold: float
    required: bool = False
    """Never left out."""
    builds: tuple[Path, ...] = ()
    """What it leaves in a cache for stages that need it. To run out of time is then no failure: they are left out."""
    needs: tuple[str | Path, ...] = ()
    """What it cannot run without: files, or all that another stage builds."""
    beside: bool = False
    """Where nothing has to be built it is begun in its turn, at the lowest priority, and waited for at the end;
    ``warm`` is that wait. Builds would leave it nothing of the processors."""
    waits: bool = False
    """For real programs, for most of its time: where nothing has to be built, the next stage begins meanwhile."""
    elsewhere: bool = False
    """What it builds cannot be had on every machine. Not to get it is then no failure, either."""

    @property
    def missing(self) -> list[Path]:
        """What it has yet to build."""
        return [path for path in self.builds if not path.exists()]


def programs(version: str, *names: str) -> tuple[Path, ...]:
    """Where ``tools/real_programs.py`` puts real programs of a Kubernetes version."""
    return tuple(cache_root() / "kubernetes" / f"v{version}" / "bin" / name for name in names)


STAGES = (
    Stage("test", ("make", "test"), budget=35 * MINUTE, warm=450, cold=480, required=True),
    Stage("prove", ("make", "prove"), budget=55 * MINUTE, warm=240, cold=900, required=True, beside=True),
    Stage("chaos", ("make", "test-chaos"), budget=20 * MINUTE, warm=20, cold=50, beside=True),
    Stage("release", ("make", "release-check"), budget=12 * MINUTE, warm=60, cold=180, needs=(ROOT / ".git",)),
    Stage("host node", ("make", "test-host"), budget=15 * MINUTE, warm=10, cold=300, waits=True),
    Stage("browser", ("make", "test-browser"), budget=8 * MINUTE, warm=60, cold=180),
    Stage(
        "build charts",
        ("make", "build-charts"),
        budget=12 * MINUTE,
        warm=1,
        cold=180,
        builds=programs(NEWEST, "helm", "kustomize"),
    ),
    Stage(
        "in the cluster",
        ("make", "test-in-cluster"),
        budget=8 * MINUTE,
        warm=10,
        cold=150,
        waits=True,
    ),
    Stage("charts", ("make", "test-charts"), budget=4 * MINUTE, warm=15, cold=15, needs=("build charts",)),
    Stage(
        f"build control plane {NEWEST}",
        ("make", "build-control-plane"),
        budget=30 * MINUTE,
        warm=1,
        cold=780,
        builds=programs(NEWEST, *CONTROL_PLANE, "agnhost"),
    ),
    Stage(
        f"control plane {NEWEST}",
        ("make", "test-control-plane"),
        budget=25 * MINUTE,
        warm=620,
        cold=620,
        needs=(f"build control plane {NEWEST}",),
    ),
    Stage(
        "build sonobuoy",
        ("make", "build-sonobuoy"),
        budget=15 * MINUTE,
        warm=1,
        cold=90,
        builds=programs(NEWEST, "sonobuoy"),
    ),
    Stage(
        "sonobuoy",
        ("make", "test-sonobuoy"),
        budget=15 * MINUTE,
        warm=10,
        cold=300,
        needs=(f"build control plane {NEWEST}", "build sonobuoy", Path("/usr/bin/bwrap")),
        waits=True,
    ),
    Stage(
        "gmsa webhook",
        ("make", "test-gmsa"),
        budget=6 * MINUTE,
        warm=110,
        cold=110,
        needs=(f"build control plane {NEWEST}", *programs(NEWEST, "gmsa-webhook")),
    ),
    Stage(
        f"build control plane {OLDER}",
        ("make", "build-older"),
        budget=25 * MINUTE,
        warm=1,
        cold=780,
        builds=programs(OLDER, *CONTROL_PLANE),
    ),
    Stage(
        f"control plane {OLDER}",
        ("make", "test-older"),
        budget=14 * MINUTE,
        warm=280,
        cold=280,
        needs=(f"build control plane {NEWEST}", f"build control plane {OLDER}"),
    ),
    Stage(
        f"gmsa webhook {OLDER}",
        ("make", "test-gmsa-older"),
        budget=5 * MINUTE,
        warm=60,
        cold=60,
        needs=(f"build control plane {NEWEST}", f"build control plane {OLDER}", *programs(NEWEST, "gmsa-webhook")),
    ),
    Stage(
        "build e2e.test",
        ("make", "build-e2e"),
        budget=30 * MINUTE,
        warm=1,
        cold=900,
        builds=programs(NEWEST, "e2e.test"),
    ),
    Stage(
        "upstream",
        ("make", "test-upstream"),
        budget=15 * MINUTE,
        warm=10,
        cold=180,
        needs=(f"build control plane {NEWEST}", "build e2e.test"),
        waits=True,
    ),
    Stage(
        f"steering {OLDER}",
        ("make", "test-upstream-older"),
        budget=8 * MINUTE,
        warm=60,
        cold=60,
        needs=(f"build control plane {NEWEST}", f"build control plane {OLDER}", "build e2e.test"),
        waits=True,
    ),
    Stage(
        "build windows ground",
        ("make", "build-windows-ground"),
        budget=15 * MINUTE,
        warm=1,
        cold=300,
        builds=tuple(layers()),
        elsewhere=True,
    ),
    Stage(
        "windows",
        ("make", "test-windows"),
        budget=12 * MINUTE,
        warm=10,
        cold=190,
        needs=("build windows ground",),
        waits=True,
    ),
    Stage(
        "build windows programs",
        ("make", "build-windows-programs"),
        budget=30 * MINUTE,
        warm=1,
        cold=900,
        builds=programs(NEWEST, *FOR_WINDOWS),
    ),
    Stage(
        "windows programs",
        ("make", "test-windows-programs"),
        budget=12 * MINUTE,
        warm=110,
        cold=110,
        needs=(f"build control plane {NEWEST}", "build windows ground", "build windows programs"),
    ),
)


@dataclass(frozen=True)
class Running:
    """A stage that has begun."""

    stage: Stage
    process: subprocess.Popen[bytes]
    began: float
    mark: str
    output: IO[bytes] | None
    """Of a stage beside others: printed when its turn to be told has come."""


@dataclass(frozen=True)
class Ending:
    """How it went with a stage, in the words of the closing lines."""

    words: str
    failed: bool = False


class Runner:
    """Stages one after the other, until the limit."""

    def __init__(self, stages: Sequence[Stage], limit: float, only: Sequence[str] = ()) -> None:
        self.stages = {stage.name: stage for stage in stages}
        # Whoever names a stage wants to see it run or fail.
        named = [replace(stage, required=True) for stage in stages if stage.name in only]
        self.chosen = named if only else list(stages)
        self.end = time.monotonic() + limit
        self.interrupted: signal.Signals | None = None

    def interrupt(self, number: int, _frame: FrameType | None) -> None:
        """A signal for the run stops the stage, and those after it are not begun."""
        self.interrupted = signal.Signals(number)

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self.end - time.monotonic()

    def run(self) -> int:
        """Run what fits and say how each stage went; 0 only if nothing failed and nothing required is missing."""
        endings: dict[str, Ending] = {}
        beside: list[Running] = []
        waiting: Running | None = None
        cold = any(stage.missing for stage in self.chosen if not stage.elsewhere)
        for stage in self.chosen:
            if reason := self.reason_to_leave_out(stage):
                endings[stage.name] = self.left_out(stage, reason)
                continue
            if waiting and stage.waits:
                endings[waiting.stage.name], waiting = self.wait(waiting), None
            try:
                running = self.begin(stage, beside=(stage.beside or stage.waits) and not cold)
            except OSError as error:
                endings[stage.name] = Ending(f"FAILED: {error.strerror}: {stage.command[0]}", failed=True)
                continue
            if not running.output:
                endings[stage.name] = self.wait(running)
            elif stage.waits:
                waiting = running
            else:
                beside.append(running)
        for running in [*([waiting] if waiting else []), *beside]:
            endings[running.stage.name] = self.wait(running)
        print()
        for stage in self.chosen:
            print(f"stage {stage.name}: {endings[stage.name].words}")
        failed = [name for name, ending in endings.items() if ending.failed]
        not_run = sum("not run" in ending.words for ending in endings.values())
        rest = f"; {not_run} of {len(endings)} stages were not run" if not_run else ""
        passed = "what ran passed" if not_run else "everything ran and passed"
        print((f"failed: {', '.join(failed)}" if failed else passed) + rest, flush=True)
        return 1 if failed else 0

    def reason_to_leave_out(self, stage: Stage) -> str:
        """Why it cannot run now, or nothing."""
        if self.interrupted:
            return f"interrupted by {self.interrupted.name}"
        for need in stage.needs:
            if isinstance(need, Path):
                if not need.exists():
                    return f"it needs {need.name}, which is not there"
            elif missing := self.stages[need].missing:
                return f"it needs {listed(missing)}, see stage {need}"
        if stage.required:
            return ""
        left = f"of the {minutes(self.left)} left"
        if not stage.builds:
            return "" if stage.budget <= self.left else f"it may take {minutes(stage.budget)} min {left}"
        cost = stage.cold if stage.missing else stage.warm
        # Built too late to be used, it would only have cost time.
        users = [user.budget for user in self.stages.values() if stage.name in user.needs]
        if cost + min(users, default=0) <= self.left:
            return ""
        then = f" and {minutes(min(users))} min to use" if users else ""
        built = f"{listed(stage.missing)} is not built and" if stage.missing else "it"
        return f"{built} would take about {minutes(cost)} min{then} {left}"

    def left_out(self, stage: Stage, reason: str) -> Ending:
        failed = stage.required or self.interrupted is not None
        return Ending(f"{'FAILED: ' if failed else ''}not run: {reason}", failed)

    def begin(self, stage: Stage, *, beside: bool) -> Running:
        """Start the command of a stage, in a process group of its own."""
        print(f"\n== stage {stage.name}: {' '.join(stage.command)}{BESIDE if beside else ''}", flush=True)
        began, mark = time.monotonic(), f"{MARK}={uuid.uuid4()}"
        output = tempfile.TemporaryFile() if beside else None  # noqa: SIM115 - read when the stage has ended
        process = subprocess.Popen(
            stage.command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            env={**os.environ, MARK: mark.partition("=")[2]},
            start_new_session=True,
        )
        if beside and not stage.waits:
            give_way(process.pid)
        return Running(stage, process, began, mark, output)

    def wait(self, running: Running) -> Ending:
        """Wait until a stage ends, and stop it where its budget ends."""
        stage, process = running.stage, running.process
        preparing = bool(stage.builds) and not stage.required
        end = running.began + stage.budget
        if preparing:
            end = min(end, self.end)
        while process.poll() is None and time.monotonic() < end and not self.interrupted:
            time.sleep(0.1)
        if (code := process.poll()) is None:
            stop(process, running.mark)
        took = f"{time.monotonic() - running.began:.0f} s"
        if running.output:
            print(f"\n== stage {stage.name}: its output", flush=True)
            running.output.seek(0)
            print(running.output.read().decode(errors="replace"), end="", flush=True)
            running.output.close()
        if code == 0:
            return Ending(f"ran, {took}")
        if code is not None and stage.elsewhere and stage.missing and not stage.required:
            return Ending(f"not run to its end: {listed(stage.missing)} cannot be had here, as it says above, {took}")
        if code is not None:
            return Ending(f"FAILED with exit code {code}, {took}", failed=True)
        if self.interrupted:
            return Ending(f"FAILED: interrupted by {self.interrupted.name} after {took}", failed=True)
        if preparing:
            return Ending(f"not run to its end: stopped after {took}, when its time was over")
        return Ending(f"FAILED: stopped after {took}, its budget", failed=True)


def give_way(pid: int) -> None:
    """Let a session have only what others leave of the processors."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, pid, LOWEST)
    # Linux weighs sessions against each other first, and only inside of them processes.
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(LOWEST))


def stop(process: subprocess.Popen[bytes], mark: str) -> None:
    """End a stage with all that it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        for pid in marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        until = time.monotonic() + GRACE
        while time.monotonic() < until and (process.poll() is None or marked(mark)):
            time.sleep(0.05)
    process.wait()


def marked(mark: str) -> list[int]:
    """The living processes of a stage, by their environment; where there is no /proc, its group must do."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def minutes(seconds: float) -> str:
    return f"{max(seconds, 0) / MINUTE:.0f}"


def listed(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)


def show(stages: Sequence[Stage]) -> None:
    """The table, with what it adds up to."""
    row = "{:<28}{:>8}{:>8}{:>8}  {}".format
    print(row("stage", "budget", "warm", "cold", "(seconds)"))
    for stage in stages:
        print(row(stage.name, stage.budget, stage.warm, stage.cold, "never left out" if stage.required else ""))
    sums = [sum(stage.warm for stage in stages), sum(stage.cold for stage in stages)]
    print(row("sum", "", *sums, f"aims: {AIM_WARM} and {AIM_COLD}, limit: {LIMIT}"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--list", action="store_true", help="show the stages and their budgets, and run nothing")
    parser.add_argument("--limit", type=float, default=LIMIT / MINUTE, metavar="MINUTES", help="default: %(default)g")
    parser.add_argument(
        "--only",
        action="append",
        choices=[stage.name for stage in STAGES],
        metavar="STAGE",
        help="run this stage alone, whatever the time; may be repeated",
    )
    args = parser.parse_args()
    if args.list:
        show(STAGES)
        return 0
    runner = Runner(STAGES, args.limit * MINUTE, args.only or ())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, runner.interrupt)
    return runner.run()


if __name__ == "__main__":
    sys.exit(main())
