"""What strangers wrote into files and clusters, on its way to a terminal, a page or a traceback."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from click.testing import CliRunner

from report.samples import write_run
from winready.cli.main import cli
from winready.report.dashboard.guard import POLICY, Access
from winready.report.dashboard.server import Dashboard
from winready.report.history import History

CLI = Path(__file__).resolve().parents[2] / "src" / "winready" / "cli"
STEERING = "\x1b]0;stolen\x07"
RUN = "261101-101500-ab12"
ODD: list[dict[str, Any]] = [
    {"duration_s": 1e12},
    {"exit_code": 10**30},
    {"started": "yesterday"},
    {"cleanup_s": 1e300},
]


def spoil(folder: Path, change: dict[str, Any]) -> None:
    """Change the record of a run."""
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


@pytest.mark.parametrize("change", ODD[:3], ids=str)
def test_an_impossible_run_is_named_and_the_others_are_shown(tmp_path: Path, change: dict[str, Any]) -> None:
    write_run(tmp_path, "261101-101500-0001")
    spoil(write_run(tmp_path, RUN), change)
    with History(tmp_path) as index:
        index.sync()
        assert [entry.folder for entry in index.runs()] == ["261101-101500-0001"]
        assert [name for name, _ in index.damaged()] == [RUN]


@pytest.mark.parametrize("change", ODD, ids=str)
@pytest.mark.parametrize("form", ["html", "prow", "markdown"])
def test_an_impossible_run_is_told_by_its_journal(tmp_path: Path, change: dict[str, Any], form: str) -> None:
    spoil(write_run(tmp_path, RUN), change)
    arguments = ["report", RUN, "--report-dir", str(tmp_path), "--format", form, "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code in (0, 2), result.output
    assert "is no record of a run" in result.stderr


def test_a_link_out_of_the_report_folder_is_not_followed(tmp_path: Path) -> None:
    write_run(tmp_path / "elsewhere", RUN)
    base = tmp_path / "runs"
    write_run(base, "261101-101500-0001")
    (base / RUN).symlink_to(tmp_path / "elsewhere" / RUN)
    with History(base) as index:
        index.sync()
        assert [entry.folder for entry in index.runs()] == ["261101-101500-0001"]
    result = CliRunner().invoke(cli, ["report", RUN, "--report-dir", str(base), "--format", "csv"])
    assert result.exit_code == 2
    assert "there is no run" in result.stderr


async def test_every_answer_of_the_dashboard_is_guarded(tmp_path: Path) -> None:
    write_run(tmp_path / "elsewhere", RUN)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / RUN).symlink_to(tmp_path / "elsewhere" / RUN)
    async with TestClient(TestServer(Dashboard(tmp_path / "runs").app(Access(token="t")))) as client:
        for path, status in {
            "/?token=t": 303,
            f"/runs/{RUN}": 404,
            "/nowhere": 404,
            "/grid": 200,
        }.items():
            answer = await client.get(path, allow_redirects=False, headers={"Authorization": "Bearer t"})
            assert answer.status == status, path
            assert answer.headers["X-Content-Type-Options"] == "nosniff", path
            assert answer.headers["Content-Security-Policy"] == POLICY, path
        refused = await client.post("/", headers={"Authorization": "Bearer t"})
        assert (refused.status, refused.headers["Cache-Control"]) == (405, "no-store")


def test_words_of_a_file_in_wrong_usage_do_not_steer_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(json.dumps({"lint": {STEERING: 1}}))
    result = CliRunner().invoke(cli, ["lint", "--config", str(tmp_path / "c.yaml"), "x.yaml"])
    assert result.exit_code == 2
    assert "\x1b" not in result.output + result.stderr


def test_text_for_people_goes_one_way() -> None:
    # Documents for machines are written without a line end of ours; what else is printed passes `say`.
    allowed = {"options.py", "completion.py", "dashboard.py", "main.py", "sandbox.py", "prove.py", "verify.py"}
    allowed |= {"help.py", "rbac.py", "certify.py", "node_commands.py", "steer.py", "lint.py"}
    found = []
    for path in sorted(CLI.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            called = isinstance(node, ast.Call) and ast.unparse(node.func) == "click.echo"
            if called and isinstance(node, ast.Call) and not any(each.arg == "nl" for each in node.keywords):
                found.append(path.name)
    assert set(found) <= allowed


def test_an_interrupt_during_start_up_leaves_no_trace(tmp_path: Path) -> None:
    code = (
        # Whoever was started in the background of a script has been told to ignore interrupts.
        "import builtins, os, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "real = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == 'winready.cli.main':\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = interrupted\nsys.argv = ['winready', 'spec']\n"
        "from winready.__main__ import main\nmain()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + signal.SIGINT, "", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--nodes", "\u00b2"],
        ["plan", "--nodes", "9" * 5000],
        ["cleanup", "--timeout", "9" * 5000],
        ["node", "preflight", "--kubernetes", f"1.36.{'9' * 5000}", "--no-registries"],
        ["deploy", "cronjob", "--image", "a/b:1", "--schedule", f"{'9' * 5000} * * * *"],
        ["deploy", "job", "--image", "a/b:1", "--metrics-port", "9" * 5000],
    ],
    ids=lambda arguments: " ".join(arguments)[:30],
)
def test_numbers_that_are_none_are_wrong_usage(tmp_path: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, arguments, env={"KUBECONFIG": str(tmp_path / "none")})
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2, result.output
