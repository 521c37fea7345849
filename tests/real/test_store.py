"""Runs in a real S3 server: many writers, kills, restarts, no rights, a full disk. Nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from real.store_server import BUCKET, SECRET, STRANGERS_SECRET, Server
from report import samples
from winready.report.sharing.layout import part
from winready.store.addresses import parse
from winready.store.errors import Changed
from winready.store.objects import open_place

pytestmark = pytest.mark.store

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = f"s3://{BUCKET}/fleet"
WRITERS = 20
QUICK = ("run", "--sandbox", "--requirement", "core.network.windows-to-linux-pod-ip")


def run_id(number: int) -> str:
    return f"261101-1000{number:02d}-{number:04x}"


class Ground:
    """A server, and a user with a home of his own."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        self.environment = server.environment

    def all_of(self) -> dict[str, str]:
        homes = {f"XDG_{name}_HOME": str(self.folder / name.lower()) for name in ("STATE", "CACHE", "RUNTIME")}
        return {**os.environ, **homes, "PYTHONPATH": f"{ROOT / 'tests'}", **self.environment}

    def winready(self, *words: str, place: str = ADDRESS) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "winready", *words, "--report-dir", place]
        result = subprocess.run(command, env=self.all_of(), capture_output=True, text=True, timeout=400, check=False)
        assert SECRET not in result.stdout + result.stderr
        assert STRANGERS_SECRET not in result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        return result

    def writer(self, run: str, pace: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "real.store_writer", str(self.folder / "runs"), run, ADDRESS, str(pace)]
        return subprocess.Popen(command, env=self.all_of(), stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def local(self, run: str) -> dict[str, bytes]:
        folder = self.folder / "runs" / run
        return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}

    def lost(self, *runs: str) -> list[str]:
        """What a run has written and the server does not have."""
        there, missing = self.server.objects("fleet"), []
        for run in runs:
            parts = {key: data for key, data in there.items() if key.startswith(f"{run}/journal-")}
            story = b"".join(parts[key] for key in sorted(parts))
            for name, content in self.local(run).items():
                found = story if name == "journal.jsonl" else there.get(f"{run}/{name}")
                missing += [f"{run}/{name}"] if found != content else []
        return missing

    def history(self) -> Any:
        result = self.winready("history", "-o", "json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def names(self) -> set[str]:
        return {run["folder"] for group in self.history()["clusters"] for run in group["runs"]}


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    server = Server(tmp_path / "server")
    yield Ground(tmp_path, server)
    server.stop()


def finish(writers: list[subprocess.Popen[str]]) -> list[int]:
    with ThreadPoolExecutor(len(writers)) as threads:
        list(threads.map(lambda writer: writer.communicate(timeout=400), writers))
    return [writer.returncode for writer in writers]


def test_twenty_writers_at_once_lose_nothing(ground: Ground) -> None:
    runs = [run_id(number) for number in range(WRITERS)]
    assert finish([ground.writer(run, 0.02) for run in runs]) == [0] * WRITERS
    assert ground.lost(*runs) == []
    assert ground.names() == set(runs)


def test_a_server_that_is_killed_and_started_again_in_the_middle_loses_nothing(ground: Ground) -> None:
    runs = [run_id(number) for number in range(4)]
    writers = [ground.writer(run, 0.1) for run in runs]
    for number in (signal.SIGKILL, signal.SIGTERM):
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        ground.server.stop(number)
        time.sleep(1)
        ground.server.start()
    assert finish(writers) == [0] * len(runs)
    assert ground.lost(*runs) == []


def test_a_writer_that_is_killed_half_way_is_told_and_its_rest_is_brought(ground: Ground) -> None:
    run = run_id(0)
    writer = ground.writer(run, 0.1)
    assert writer.stdout is not None
    while not writer.stdout.readline().startswith("12"):
        pass
    # As soon as one of its parts has arrived.
    while not any("journal-" in key for key in ground.server.objects("fleet")):
        time.sleep(0.05)
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate()
    there = ground.server.objects("fleet")
    story = b"".join(there[key] for key in sorted(there))
    assert story
    assert ground.local(run)["journal.jsonl"].startswith(story)
    assert [each["run"] for each in ground.history()["unfinished"]] == [run]
    told = ground.winready("status", run)
    assert told.returncode == 3
    assert "this is what its journal tells" in told.stderr
    whole = samples.write_run(ground.folder / "whole", run)
    begun = (whole / "journal.jsonl").read_bytes()
    assert begun.startswith(story)
    pushed = ground.winready("history", "push", run, "--from", str(ground.folder / "whole"))
    assert pushed.returncode == 0, pushed.stderr
    shutil.rmtree(ground.folder / "runs")
    (ground.folder / "whole").rename(ground.folder / "runs")
    assert ground.lost(run) == []
    assert ground.names() == {run}


def test_a_run_is_sent_read_compared_certified_and_pruned(ground: Ground) -> None:
    result = ground.winready(*QUICK)
    assert result.returncode == 0, result.stderr
    (run,) = ground.names()
    assert f"sent: {ADDRESS}/{run}" in result.stdout
    assert {key.partition("/")[2] for key in ground.server.objects("fleet")} >= {"run.json", "junit.xml", "report.html"}
    other = samples.write_run(ground.folder / "more", run_id(1)).name
    assert ground.winready("history", "push", "--from", str(ground.folder / "more")).returncode == 0
    for words in (("status", run), ("report", run, "-o", "markdown"), ("status", f"{ADDRESS}/{run}")):
        assert ground.winready(*words).returncode == 0, words
    assert ground.winready("compare", other, run).returncode in (0, 1)
    bundle = str(ground.folder / "bundle.tar.gz")
    product = ("--vendor", "v", "--product-name", "p", "--product-version", "1", "--contact", "c@d")
    assert ground.winready("certify", run, "--draft", "--to", bundle, *product).returncode == 0
    again = ground.winready("history", "push", "--from", str(ground.folder / "more"))
    assert "were there already" in again.stdout
    planned = ground.winready("history", "prune", "--keep", "1h", "--drop-last-pass")
    assert planned.returncode == 0, planned.stderr
    assert ground.names() == {run, other}
    assert (
        f"deleted: {other}" in ground.winready("history", "prune", "--keep", "1h", "--drop-last-pass", "--yes").stdout
    )
    assert ground.names() == {run}


@pytest.mark.parametrize("trouble", ["no rights", "wrong secret", "no bucket", "away"])
def test_a_store_that_does_not_take_it_costs_no_verdict(ground: Ground, trouble: str) -> None:
    place, says, code = ADDRESS, f"s3://{BUCKET} refuses", 2
    if trouble == "no rights":
        ground.environment = ground.server.strangers_environment
    elif trouble == "wrong secret":
        ground.environment = {**ground.environment, "AWS_SECRET_ACCESS_KEY": SECRET[::-1]}
        says = f"s3://{BUCKET} does not know who asks"
    elif trouble == "no bucket":
        place, says = "s3://no-such-bucket/fleet", "there is no s3://no-such-bucket"
    else:
        ground.server.stop()
        says, code = f"s3://{BUCKET} does not answer: nobody listens there", 3
    result = ground.winready(*QUICK, place=place)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("results cannot be sent") == 1
    assert says in result.stderr
    assert "to send the rest: winready history push" in result.stderr
    for words in (("history",), ("history", "push")):
        refused = ground.winready(*words, place=place)
        assert (refused.returncode, says in refused.stderr) == (code, True), refused.stderr
    if trouble == "no bucket":
        return
    if trouble == "away":
        ground.server.start()
    ground.environment = ground.server.environment
    pushed = ground.winready("history", "push")
    assert pushed.returncode == 0, pushed.stderr
    assert len(ground.names()) == 1


def test_a_disk_that_fills_up_in_the_middle_is_said_and_the_rest_is_brought_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(tmp_path / "server", megabytes=1)
    try:
        ground = Ground(tmp_path, server)
        for name, value in ground.environment.items():
            monkeypatch.setenv(name, value)
        # Room for the first part of the journal, and not for the last.
        open_place(parse(f"s3://{BUCKET}/other")).create("filler", b"x" * ((1 << 20) - (64 << 10)))
        result = ground.winready(*QUICK)
        assert result.returncode == 0, result.stderr
        there = {entry.key.partition("/")[2] for entry in open_place(parse(ADDRESS)).list()}
        assert part(0) in there
        assert "run.json" not in there
        assert result.stderr.count("results cannot be sent") == 1
        assert f"s3://{BUCKET} takes nothing more (507, InsufficientStorage)" in result.stderr
    finally:
        server.stop()
    server.megabytes = None
    server.start()
    try:
        assert ground.winready("history", "push").returncode == 0
        assert len(ground.names()) == 1
    finally:
        server.stop()


def test_of_many_who_count_at_once_nobody_is_lost(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ground.environment.items():
        monkeypatch.setenv(name, value)
    objects = open_place(parse(f"s3://{BUCKET}/state"))
    objects.create("count", b"0")
    begin = threading.Barrier(12)

    def count(_: int) -> None:
        begin.wait()
        done = 0
        while done < 10:
            found = objects.read("count", 100)
            try:
                objects.replace("count", str(int(found.data) + 1).encode(), found.token)
            except Changed:
                continue
            done += 1

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(count, range(12)))
    assert objects.read("count", 100).data == b"120"
