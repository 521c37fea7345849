"""``make chaos``: every kind of trouble, storms, crashes, kills, signals and more, as many as asked for, as figures.

Parts come one after the other, and the figures of each are kept as soon as it has ended, beside those of parts that
were not asked for this time. A run that does not end at all is a trouble of its part and loses no other figure.
Exits with 1 when a verdict was changed, a finished result lost, or something left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from chaos.crashes import Crashed, crash
from chaos.figures import Figures, crash_figures, failed, kill_figures, node_figures, weather_figures
from chaos.kills import STAGES, Killed, interrupt, kill, measured, objects, stormy
from chaos.kinds import KINDS, alone, storm
from chaos.nodes import WAYS, Gone, lose_node
from chaos.scenes import weather_run
from chaos.writes import closed_pipe, full_disk
from cli.conftest import CommandLine
from engine.stage import Stage
from winready.engine.selection import Selection, select
from winready.spec.loader import load_standard
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop

J = TypeVar("J")
R = TypeVar("R")
STORM = 0.05
"""Of every kind at once: more than half of all requests meet something."""
SELECTIONS = (
    ["N1", "N5"],
    ["core.storage.hostpath-write", "core.storage.shared-files"],
    ["extend.hostprocess.host-networking", "extend.hostprocess.system-api"],
    ["core.network.service-recreated", "core.network.statefulset-identity"],
    ["core.storage.reboot-recovery"],
)
"""Each leaves other things behind when it is killed: objects, folders, host networking objects and groups, a reboot."""
WRITERS = (["N1"], ["core.storage.hostpath-write"])
CRASH_SECONDS = 420.0
CRASH_EVENTS = 14
NODE_SECONDS = (5.0, 320.0)
REAL_STORM = 0.02
"""The same on the wall clock, where every pause of a client that was refused is waited for."""
SHOWN_EVERY = 20.0
"""Seconds between two lines that say how far it is."""


def weather(job: tuple[str, dict[str, float], list[str]]) -> Figures:
    """One run in some weather."""
    seed, rates, requirements = job
    ended = weather_run(rates, seed, requirements)
    wrong = {
        item.id: f"{item.outcome}: {item.reason}" for item in ended.record.requirements if item.outcome != "passed"
    }
    return {
        "seed": seed,
        "wrong": wrong,
        "changed": ended.record.verdict != "Pass",
        "left": ended.record.leftovers,
        "requests": ended.weather.requests,
        "met": sum(ended.weather.met.values()),
    }


def crashed(number: int) -> tuple[int, Crashed]:
    """One crash: every second while a line is written, every third cleaned up before another run takes over."""
    chance = random.Random(f"crash {number}")
    when: dict[str, Any] = {"at_event": chance.randint(0, CRASH_EVENTS)}
    if number % 2:
        when = {"after": chance.uniform(0, CRASH_SECONDS)}
    with tempfile.TemporaryDirectory() as folder:
        chosen = SELECTIONS[number % len(SELECTIONS)]
        return number, crash(f"crash {number}", chosen, Path(folder), clean_first=number % 3 == 0, **when)


def node_gone(number: int) -> Gone:
    """One node that goes away: in each way over some requirements, at any time."""
    after = random.Random(f"node {number}").uniform(*NODE_SECONDS)
    return lose_node(f"node {number}", SELECTIONS[number % len(SELECTIONS)], WAYS[number % len(WAYS)], after)


def write(job: tuple[str, list[str]]) -> Figures:
    """A run, with a full disk or a closed pipe, for each of its writes, on a cluster that they share."""
    what, requirements = job
    tried, bad = 0, list[Figures]()
    with own_stage() as stage:
        there = True
        while there:
            with tempfile.TemporaryDirectory() as folder:
                attempt = full_disk if what == "full disk" else closed_pipe
                there, wrong = attempt(stage, Path(folder), tried, *requirements)
            bad += [{"what": what, "write": tried, "wrong": wrong}] if wrong else []
            tried += there
    return {"what": what, "tried": tried, "troubles": bad}


def weather_part(given: argparse.Namespace) -> Figures:
    """Each kind alone over some requirements, and storms of all of them over the whole core."""
    core = [item.id for item in select(load_standard(), Selection())]
    jobs = [
        (f"{kind} {number}", storm(alone(kind), [kind]), SELECTIONS[number % len(SELECTIONS)])
        for kind in KINDS
        for number in range(given.seeds)
    ]
    jobs += [(f"storm {number}", storm(STORM), core) for number in range(given.storms)]
    jobs = [job for job in jobs if not given.only or job[0] in given.only]
    results, errors = _each("weather", weather, jobs, given.jobs)
    figures = weather_figures(results)
    return {**figures, "storms": given.storms, "troubles": figures["troubles"] + failed(errors)}


def crash_part(given: argparse.Namespace) -> Figures:
    """Runs that are dropped where they are, in virtual time."""
    results, errors = _each("crash", crashed, _numbers(given, "crash", given.crashes), given.jobs)
    figures = crash_figures(results)
    return {**figures, "troubles": figures["troubles"] + failed(errors)}


def node_part(given: argparse.Namespace) -> Figures:
    """Nodes that go away in the middle of a run."""
    results, errors = _each("node", node_gone, _numbers(given, "node", given.nodes), given.jobs)
    figures = node_figures(results)
    return {**figures, "troubles": figures["troubles"] + failed(errors)}


def write_part(given: argparse.Namespace) -> Figures:
    """A full disk and a closed pipe, at every write of a run."""
    jobs = [(what, chosen) for chosen in WRITERS[: given.writers] for what in ("full disk", "closed pipe")]
    results, errors = _each("writes", write, jobs, given.jobs)
    tried = {
        what: sum(each["tried"] for each in results if each["what"] == what) for what in ("full disk", "closed pipe")
    }
    return {
        "runs": sum(tried.values()),
        "with_a_full_disk": tried["full disk"],
        "with_a_closed_pipe": tried["closed pipe"],
        "troubles": [bad for each in results for bad in each["troubles"]] + failed(errors),
    }


def memory_part(given: argparse.Namespace) -> Figures:
    """The most memory that runs take, without trouble and in a storm, the sandbox in another process."""
    peaks: dict[str, list[float]] = {"calm": [], "storm": []}
    bad, errors, struck = list[Figures](), list[str](), 0
    with own_cluster() as (command_line, kubeconfig):
        before = objects(kubeconfig)
        for number in range(given.measured):
            for what, found in peaks.items():
                with _guarded(f"memory {number}", errors), tempfile.TemporaryDirectory() as name:
                    folder = Path(name)
                    way = folder / "kubeconfig"
                    if what == "storm":
                        with stormy(command_line, kubeconfig, REAL_STORM, way, f"storm {number}") as met:
                            one = measured(command_line, str(way), folder)
                        struck += sum(met.values())
                    else:
                        one = measured(command_line, kubeconfig, folder)
                    found.append(one.peak_mb)
                    _say(f"memory {number}, {what}: exit code {one.exit_code}, {one.peak_mb:.0f} MB")
                    left = sorted(objects(kubeconfig) ^ before)
                    if one.exit_code or left:
                        bad.append({"what": what, "exit_code": one.exit_code, "words": one.words[-2000:], "left": left})
    return {
        "runs": sum(map(len, peaks.values())),
        "requests_struck": struck,
        "peak_mb_without_trouble": round(max(peaks["calm"], default=0), 1),
        "peak_mb_in_a_storm": round(max(peaks["storm"], default=0), 1),
        "troubles": bad + failed(errors),
    }


def kill_part(given: argparse.Namespace) -> Figures:
    """Processes that are killed for real."""
    runs, errors = list[Killed](), list[str]()
    with own_cluster() as (command_line, kubeconfig):
        for number in range(given.kills):
            with _guarded(f"kill {number}", errors), tempfile.TemporaryDirectory() as folder:
                runs.append(kill(command_line, kubeconfig, Path(folder), f"kill {number}"))
                _say(f"kill {number}: {runs[-1]}")
    figures = kill_figures(runs)
    return {**figures, "troubles": figures["troubles"] + failed(errors)}


def signal_part(given: argparse.Namespace) -> Figures:
    """SIGTERM, SIGINT and two of them at each stage of a run."""
    runs, bad, errors = 0, list[Figures](), list[str]()
    stages = STAGES[: given.stages]
    with own_cluster() as (command_line, kubeconfig):
        for stage in stages:
            for number, times in ((signal.SIGTERM, 1), (signal.SIGINT, 1), (signal.SIGINT, 2)):
                runs += 1
                what = f"{stage}, {number.name} {times} times"
                with _guarded(what, errors), tempfile.TemporaryDirectory() as folder:
                    one = interrupt(command_line, kubeconfig, Path(folder), number, stage, times)
                    # What comes when everything is judged changes nothing any more.
                    right = one.exit_code == 130 or (stage in STAGES[-2:] and one.exit_code == 0)
                    _say(f"{what}: exit code {one.exit_code}, left {one.remains}")
                    if one.remains or one.lost or "Traceback" in one.words or not right:
                        bad.append({"what": what, "exit_code": one.exit_code, "left": one.remains, "lost": one.lost})
    return {"runs": runs, "stages": len(stages), "wrong": len(bad), "troubles": bad + failed(errors)}


PARTS: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "weather": weather_part,
    "crashes": crash_part,
    "nodes gone": node_part,
    "writes": write_part,
    "kills": kill_part,
    "signals": signal_part,
    "memory": memory_part,
}


@contextmanager
def own_stage() -> Iterator[Stage]:
    """A sandbox in this process, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        sandbox = Sandbox(Plan(name="stage"))
        runner.run(sandbox.__aenter__())
        try:
            runner.run(sandbox.settled())
            yield Stage(runner, sandbox)
        finally:
            runner.run(sandbox.__aexit__(None, None, None))


@contextmanager
def own_cluster() -> Iterator[tuple[CommandLine, str]]:
    """A sandbox in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="wr-") as folder:
        command_line = CommandLine(Path(folder))
        try:
            yield command_line, str(command_line.sandbox("chaos")["kubeconfig"])
        finally:
            command_line("sandbox", "down", "--all")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do all parts, or those that were asked for."""
    parser = argparse.ArgumentParser(prog="chaos.whole", description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one; may be repeated")
    parser.add_argument("--only", action="append", help="this run of the part, such as 'crash 59'; writes no figures")
    parser.add_argument("--seeds", type=int, default=3, help="of every kind of trouble")
    parser.add_argument("--storms", type=int, default=3, help="of all kinds at once, over the whole core")
    parser.add_argument("--crashes", type=int, default=200, help="in virtual time")
    parser.add_argument("--nodes", type=int, default=60, help="that go away, in virtual time")
    parser.add_argument("--writers", type=int, default=len(WRITERS), help="runs of which every write fails once")
    parser.add_argument("--kills", type=int, default=20, help="kill -9 of real processes")
    parser.add_argument("--stages", type=int, default=len(STAGES), help="of a run at which signals are sent")
    parser.add_argument("--measured", type=int, default=2, help="runs whose memory is measured, calm and in a storm")
    parser.add_argument("--jobs", type=int, default=2, help="at a time")
    parser.add_argument("--output", type=Path, default=Path("build/chaos.json"))
    given = parser.parse_args(arguments)
    known: dict[str, Figures] = json.loads(given.output.read_text()) if given.part and given.output.exists() else {}
    given.output.parent.mkdir(parents=True, exist_ok=True)
    measured: dict[str, Figures] = {}
    for name in given.part or PARTS:
        start, errors = time.monotonic(), list[str]()
        with _guarded(name, errors):
            measured[name] = PARTS[name](given)
        measured.setdefault(name, {"runs": 0, "troubles": []})["troubles"] += failed(errors)
        found = {**known, **measured}
        if not given.only:
            kept = {part: found[part] for part in PARTS if part in found}
            given.output.write_text(json.dumps(kept, indent=2) + "\n")
        _say(f"{name}, {time.monotonic() - start:.0f} s: {json.dumps(measured[name])}")
    return 1 if any(part["troubles"] for part in measured.values()) else 0


def _numbers(given: argparse.Namespace, what: str, count: int) -> list[int]:
    return [number for number in range(count) if not given.only or f"{what} {number}" in given.only]


def _each(what: str, work: Callable[[J], R], jobs: Iterable[J], at_once: int) -> tuple[list[R], list[str]]:
    """Do each job in a process beside; results of those that ended, and what became of those that did not."""
    waiting, results, errors = list(jobs), list[R](), list[str]()
    start = said = time.monotonic()
    with ProcessPoolExecutor(at_once, get_context("forkserver")) as pool:
        for number, (result, error) in enumerate(pool.map(functools.partial(_attempt, work), waiting), 1):
            if error:
                errors.append(error)
                _say(f"{what} {number}: {error}")
            else:
                results.append(result)
            if (now := time.monotonic()) > said + SHOWN_EVERY or number == len(waiting):
                said = now
                _say(f"{what} {number} of {len(waiting)}, {now - start:.0f} s")
    return results, errors


def _attempt(work: Callable[[J], R], job: J) -> tuple[Any, str]:
    """What came of a job, and why nothing did."""
    try:
        return work(job), ""
    except Exception:
        return None, f"{job}: {traceback.format_exc()}"


@contextmanager
def _guarded(what: str, errors: list[str]) -> Iterator[None]:
    """One run that does not end loses nothing of the others."""
    try:
        yield
    except Exception:
        errors.append(f"{what}: {traceback.format_exc()}")
        _say(errors[-1])


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
