"""In the plugin's pod, with a stand-in for Sonobuoy's worker: however the run ends, results are handed over."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import SPEED, CommandLine
from cli.test_run import left_behind
from winready.report import sonobuoy

FILES = {"journal.jsonl", "junit.xml", "report.html", "run.json", "sonobuoy_results.yaml", "winready.log"}


@dataclass
class Worker:
    """Takes progress posts, as Sonobuoy's sidecar does."""

    port: int
    posts: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def listening(port: int = 0) -> Iterator[Worker]:
    worker = Worker(port)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            worker.posts.append({"path": self.path, **json.loads(body)})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    worker.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield worker
    server.shutdown()
    server.server_close()


@pytest.fixture
def worker() -> Iterator[Worker]:
    with listening() as found:
        yield found


@dataclass
class HandedOver:
    """What Sonobuoy's worker would upload."""

    names: set[str]
    tree: dict[str, Any]

    @property
    def failed(self) -> list[str]:
        return [leaf["name"] for leaf in leaves(self.tree["items"]) if leaf["status"] == "failed"]


def leaves(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [leaf for item in items for leaf in (leaves(item["items"]) if "items" in item else [item])]


def handed_over(results: Path) -> HandedOver:
    """Read ``done`` as the worker does."""
    archive = Path((results / "done").read_text().strip())
    assert archive.is_absolute()
    assert not list(results.glob(".*"))
    with tarfile.open(archive, "r:gz") as tar:
        members = tar.getmembers()
        assert all(member.isreg() and not member.name.startswith(("/", "..")) for member in members)
        tree = yaml.safe_load(tar.extractfile(sonobuoy.NAME).read())  # type: ignore[union-attr]
    assert tree["status"] == sonobuoy.aggregate(tree["items"])
    return HandedOver({member.name for member in members}, tree)


def in_pod(command_line: CommandLine, results: Path, port: int, *arguments: str) -> subprocess.Popen[str]:
    environment = {"SONOBUOY_RESULTS_DIR": str(results), "SONOBUOY_PROGRESS_PORT": str(port)}
    return command_line.start("sonobuoy", "run", *arguments, **environment)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, errors = process.communicate(timeout=110)
    assert "Traceback" not in output + errors
    return process.returncode, output


def test_a_pass_is_handed_over_with_everything(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path, worker: Worker
) -> None:
    process = in_pod(
        command_line, tmp_path, worker.port, "--kubeconfig", kubeconfig, "--time-scale", SPEED, "--requirement", "N5"
    )
    code, output = ended(process)
    assert code == 0, output
    found = handed_over(tmp_path)
    assert found.names == FILES
    assert found.tree["status"] == "passed"
    assert found.failed == []
    assert "Pass (partial: 1 of 24 core requirements)" in output
    assert {post["path"] for post in worker.posts} == {"/progress"}
    last = worker.posts[-1]
    assert last["msg"] == "Pass (partial: 1 of 24 core requirements)"
    assert (last["total"], last["completed"], last["failures"]) == (1, 1, [])
    assert left_behind(kubeconfig) == []


def test_what_fails_in_the_cluster_fails_in_sonobuoy(command_line: CommandLine, tmp_path: Path, worker: Worker) -> None:
    cluster = command_line.sandbox("sono-broken", "--fault", "dns.windows.no-search-path")
    arguments = ["--kubeconfig", str(cluster["kubeconfig"]), "--time-scale", SPEED]
    name = "core.network.dns-internal"
    process = in_pod(command_line, tmp_path, worker.port, *arguments, "--requirement", name)
    code, output = ended(process)
    command_line("sandbox", "down", "--name", "sono-broken")
    assert code == 1, output
    found = handed_over(tmp_path)
    assert found.names == FILES
    assert found.failed == ["Verdict", name]
    assert worker.posts[-1]["failures"] == [name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--category", "core.netwrk"], "unknown category 'core.netwrk'; did you mean 'Core.Network'?"),
        (
            ["--requirement", "N5", "--skip", "N5"],
            "the selection is empty: nothing would be verified; loosen --skip or",
        ),
        (["--no-such-flag"], "no such option --no-such-flag"),
        (["--timeout", "soon"], "invalid value for --timeout: 'soon' is not a duration"),
    ],
)
def test_wrong_usage_and_nothing_selected_have_failed_by_name(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path, worker: Worker, arguments: list[str], words: str
) -> None:
    code, output = ended(in_pod(command_line, tmp_path, worker.port, "--kubeconfig", kubeconfig, *arguments))
    assert code == 2, output
    found = handed_over(tmp_path)
    assert found.tree["status"] == "failed"
    assert found.failed[0].startswith(words)
    assert found.tree["items"][0]["details"]["log"]
    assert worker.posts[-1]["msg"].startswith(words)


def test_a_cluster_that_cannot_be_reached_is_told(command_line: CommandLine, tmp_path: Path, worker: Worker) -> None:
    code, output = ended(in_pod(command_line, tmp_path, worker.port, "--requirement", "N5"))
    assert code == 2, output
    assert handed_over(tmp_path).failed == ["no kubeconfig found"]


def test_sigterm_ends_the_run_with_cleanup_and_results(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path, worker: Worker
) -> None:
    slow = ["--requirement", "core.scheduling.limits-honoured", "--requirement", "N5"]
    process = in_pod(command_line, tmp_path, worker.port, "--kubeconfig", kubeconfig, "--time-scale", "5", *slow)
    assert process.stdout is not None
    while "will be verified" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    code, output = ended(process)
    assert code == 130, output
    found = handed_over(tmp_path)
    assert found.names == FILES
    assert found.tree["status"] == "failed"
    assert "the run was interrupted" in found.tree["items"][0]["details"]["reasons"]
    assert left_behind(kubeconfig) == []


def test_its_own_deadline_comes_first(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path, worker: Worker
) -> None:
    slow = ["--requirement", "core.scheduling.limits-honoured", "--timeout", "1s", "--time-scale", "5"]
    code, output = ended(in_pod(command_line, tmp_path, worker.port, "--kubeconfig", kubeconfig, *slow))
    assert code == 3, output
    found = handed_over(tmp_path)
    assert found.failed[:2] == ["Verdict", "core.scheduling.limits-honoured"]
    assert "the run's time of 1 s was over" in found.tree["items"][0]["details"]["reasons"][0]
    assert left_behind(kubeconfig) == []


def guarded(
    results: Path, command: list[str], *, port: int = 1, room: int | None = None, **settings: float
) -> subprocess.Popen[str]:
    """A guard over a program that is no run of ours."""
    call = "import sys; from pathlib import Path; from winready.deploy.sonobuoy_pod import Guard; "
    call += f"sys.exit(Guard({command!r}, Path({str(results)!r}), port={port}, **{settings!r}).run())"

    def limited() -> None:
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", call], stdout=pipe, stderr=pipe, text=True, preexec_fn=limited)


def test_a_run_that_was_killed_is_handed_over_as_far_as_it_came(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path, worker: Worker
) -> None:
    slow = ["--requirement", "core.scheduling.limits-honoured", "--requirement", "N5", "--time-scale", SPEED]
    process = in_pod(command_line, tmp_path, worker.port, "--kubeconfig", kubeconfig, *slow)
    assert process.stdout is not None
    while "windows-to-linux-pod-ip" not in (line := process.stdout.readline()):
        assert process.poll() is None, line
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    code, output = ended(process)
    command_line("cleanup", "--kubeconfig", kubeconfig)
    assert code == 128 + signal.SIGKILL, output
    found = handed_over(tmp_path)
    assert found.names == FILES
    assert found.failed == ["Verdict", "core.scheduling.limits-honoured"]
    assert "was killed (signal 9)" in found.tree["items"][0]["details"]["reasons"][0]


def test_a_run_that_hangs_is_left_behind_and_ended(tmp_path: Path) -> None:
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(1000)"
    process = guarded(tmp_path, [sys.executable, "-c", program], timeout=0.5, clean_up=0.5, patience=0.5)
    code, _ = ended(process)
    assert code == 128 + signal.SIGKILL
    assert handed_over(tmp_path).failed == ["winready did not end in time"]


def test_a_program_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    code, _ = ended(guarded(tmp_path, ["/no/such/program"]))
    assert code == 3
    assert "could not be run: FileNotFoundError" in handed_over(tmp_path).failed[0]


def test_it_stays_until_the_worker_has_read_done_unless_it_is_told_to_end(tmp_path: Path) -> None:
    process = guarded(tmp_path, [sys.executable, "-c", ""], linger=1000)
    while not (tmp_path / "done").exists():
        assert process.poll() is None
    assert process.poll() is None
    process.terminate()
    code, _ = ended(process)
    assert code == 0
    assert handed_over(tmp_path).failed == ["winready ended before its run began"]


def test_without_room_for_the_evidence_the_verdict_is_handed_over(tmp_path: Path) -> None:
    program = "import random; print(random.randbytes(30000).hex()); print('error: something is wrong')"
    process = guarded(tmp_path, [sys.executable, "-c", program], room=9000)
    _, errors = process.communicate(timeout=60)
    assert "the archive could not be made" in errors
    assert handed_over(tmp_path).failed[0].startswith("the results could not be kept")


def test_a_worker_that_comes_late_gets_the_last_words(tmp_path: Path) -> None:
    with listening() as gone:
        port = gone.port
    waits, results = tmp_path / "go", tmp_path / "results"
    program = f"import os, time\nwhile not os.path.exists({str(waits)!r}): time.sleep(0.05)\nprint('error: nothing')"
    process = guarded(results, [sys.executable, "-c", program], port=port)
    with listening(port) as late:
        waits.touch()
        ended(process)
    assert late.posts[-1]["msg"] == "nothing"
