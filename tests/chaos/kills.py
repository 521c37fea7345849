"""Runs that are killed or interrupted for real, or measured: their own processes, with the sandbox in another one."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.conftest import SPEED, CommandLine
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, CONFIG_MAPS, NAMESPACES, PODS, SERVICES
from winready.engine.events import AnyEvent, RequirementFinished
from winready.engine.journal import NAME, read

REQUIREMENTS = ("core.network.windows-to-linux-pod-ip", "core.storage.hostpath-write")
"""The second one keeps folders on the disks of nodes."""
LONGEST = 9.0
"""Wall seconds after which such a run is over, or nearly."""
MEASURED = """
import atexit, runpy, sys
file = sys.argv.pop(1)
def tell():
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    open(file, "w").write(peak.split()[1])
atexit.register(tell)
runpy.run_module("winready", run_name="__main__")
"""
"""Winready, with its peak of memory in kB written to a file at its end."""
STAGES = ("run-started", "inventory-taken", "plan-made", "fixture-ready", "requirement-finished", "cleaned-up")


@dataclass
class Killed:
    """What became of a killed run and of whoever came after it."""

    finished: int = 0
    lost: list[str] = field(default_factory=list)
    verdict: str = ""
    cleanup: str = ""
    remains: list[str] = field(default_factory=list)
    words: str = ""


def arguments(kubeconfig: str, reports: Path, *more: str) -> list[str]:
    """A run of the chosen requirements."""
    chosen = [word for name in REQUIREMENTS for word in ("--requirement", name)]
    return ["run", "--kubeconfig", kubeconfig, "--time-scale", SPEED, "--report-dir", str(reports), *chosen, *more]


def objects(kubeconfig: str) -> set[str]:
    """Objects of every kind that a run makes."""

    async def ask() -> set[str]:
        found = set()
        async with Client.connect(find_target(kubeconfig)) as client:
            for resource in (NAMESPACES, PODS, SERVICES, CONFIG_MAPS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS):
                for item in await client.list(resource):
                    metadata = item["metadata"]
                    found.add(f"{resource.kind} {metadata.get('namespace', '')}/{metadata['name']}")
        return found

    return asyncio.run(ask())


def kill(command_line: CommandLine, kubeconfig: str, reports: Path, seed: str) -> Killed:
    """kill -9 at a seeded moment, then ``--resume``, then ``cleanup``."""
    result, before = Killed(), objects(kubeconfig)
    process = command_line.start(*arguments(kubeconfig, reports))
    time.sleep(random.Random(seed).uniform(0.5, LONGEST))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    folders = list(reports.iterdir()) if reports.exists() else []
    finished = _finished(reports)
    result.finished = len(finished)
    resume = ["--resume", folders[0].name] if folders and _events(folders[0]) else []
    words = ["run", "--kubeconfig", kubeconfig, "--time-scale", SPEED, "--report-dir", str(reports), *resume]
    done = command_line(*(words if resume else arguments(kubeconfig, reports)), "-o", "json")
    record: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    again = {item["id"]: item for item in record.get("requirements", [])}
    result.lost = [name for name in finished if again.get(name, {}).get("outcome") != "passed"]
    result.verdict = str(record.get("verdict"))
    cleaned = command_line("cleanup", "--kubeconfig", kubeconfig)
    result.cleanup = f"{cleaned.returncode} {cleaned.stdout.splitlines()[-1:]}"
    looked = command_line("cleanup", "--kubeconfig", kubeconfig, "--dry-run")
    result.remains = sorted(objects(kubeconfig) ^ before) + ([] if looked.returncode == 0 else [looked.stdout])
    result.words = "\n".join(text for text in (done.stderr, cleaned.stderr) if "Traceback" in text)
    return result


@dataclass
class Interrupted:
    """How a run ended that was told to."""

    exit_code: int
    words: str
    remains: list[str]
    record: dict[str, Any]
    lost: list[str]
    """Results that were finished before and do not stand in its record."""


def interrupt(
    command_line: CommandLine, kubeconfig: str, reports: Path, number: signal.Signals, stage: str, times: int = 1
) -> Interrupted:
    """Send a signal to a run as soon as its journal tells of a stage."""
    before = objects(kubeconfig)
    process = command_line.start(*arguments(kubeconfig, reports))
    while process.poll() is None and f'"event":"{stage}"' not in _journal(reports):
        time.sleep(0.02)
    for _ in range(times):
        process.send_signal(number)
        time.sleep(0.2)
    finished = _finished(reports)
    said, complained = process.communicate(timeout=110)
    (folder,) = reports.iterdir()
    file = folder / "run.json"
    record = json.loads(file.read_text()) if file.exists() else {}
    kept = {item["id"]: item["outcome"] for item in record.get("requirements", [])}
    lost = [name for name, outcome in finished.items() if kept.get(name) != outcome]
    return Interrupted(process.returncode, said + complained, sorted(objects(kubeconfig) ^ before), record, lost)


@contextmanager
def stormy(
    command_line: CommandLine, kubeconfig: str, rate: float, way: Path, seed: str = "real"
) -> Iterator[dict[str, int]]:
    """A proxy with all kinds of trouble before a cluster; at the end, how often each was met."""
    met: dict[str, int] = {}
    proxy = subprocess.Popen(
        [sys.executable, "-m", "chaos.process", kubeconfig, str(rate), seed, str(way)],
        env=command_line.environment(PYTHONPATH=str(Path(__file__).parents[1])),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert proxy.stdout is not None
    assert proxy.stdout.readline().startswith("https://127.0.0.1:")
    try:
        yield met
    finally:
        met |= json.loads(proxy.communicate("")[0])


@dataclass
class Measured:
    """A run that was watched from outside."""

    exit_code: int
    words: str
    peak_mb: float


def measured(command_line: CommandLine, kubeconfig: str, folder: Path) -> Measured:
    """The most memory that a run has at any time."""
    peak = folder / "peak"
    command = [sys.executable, "-c", MEASURED, str(peak), *arguments(kubeconfig, folder / "runs")]
    done = subprocess.run(
        command, env=command_line.environment(), capture_output=True, text=True, timeout=300, check=False
    )
    return Measured(done.returncode, done.stdout + done.stderr, int(peak.read_text()) / 1024)


def _events(folder: Path) -> list[AnyEvent]:
    return read(folder) if (folder / NAME).exists() else []


def _finished(reports: Path) -> dict[str, str]:
    """What the journal says was judged, and how; what was given up was not."""
    told = [event for folder in reports.glob("*") for event in _events(folder)]
    results = [event.result for event in told if isinstance(event, RequirementFinished)]
    return {item.id: item.outcome for item in results if item.outcome in ("passed", "failed", "not-applicable")}


def _journal(reports: Path) -> str:
    found = list(reports.glob(f"*/{NAME}"))
    return found[0].read_text() if found else ""
