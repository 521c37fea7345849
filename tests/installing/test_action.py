"""The action for GitHub: its steps, run by bash as GitHub's runner does, with the wheel of the release."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from installing.conftest import ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
PYTHON = str(Path(sys.executable).resolve())


@dataclass(frozen=True)
class Job:
    """What a job with the action alone has come to."""

    code: int
    said: str
    outputs: dict[str, str]
    summary: str


Run = Callable[..., Job]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a runner, where one installation serves all tests."""
    return tmp_path_factory.mktemp("runner")


@pytest.fixture
def job(runner: Path, wheel: Path, offline: dict[str, str], tmp_path: Path) -> Run:
    """Runs the steps of the action with inputs, up to one that fails."""

    def run(**given: str) -> Job:
        inputs = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
        inputs |= {
            "wheel": str(wheel),
            "python": PYTHON,
            **{name.replace("_", "-"): text for name, text in given.items()},
        }
        known = {f"inputs.{name}": text for name, text in inputs.items()}
        known |= {"github.action_path": str(ROOT), "runner.temp": str(runner / "temp")}
        files = {
            name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH")
        }
        for file in files.values():
            file.write_text("")
        (runner / "temp").mkdir(exist_ok=True)
        (tmp_path / "work").mkdir(exist_ok=True)
        said, code = "", 0
        for step in STEPS:
            environment = {
                **offline,
                "HOME": str(tmp_path),
                **{name: str(file) for name, file in files.items()},
                **{name: EXPRESSION.sub(lambda found: known[found[1]], text) for name, text in step["env"].items()},
            }
            if "pip" in step["run"] and (runner / "temp" / "winready" / "venv").exists() and not given.get("python"):
                continue
            script = tmp_path / "script.sh"
            script.write_text(step["run"])
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
                cwd=tmp_path / "work",
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            said, code = said + done.stdout + done.stderr, done.returncode
            if code:
                break
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        return Job(code, said, dict(line.split("=", 1) for line in lines), files["GITHUB_STEP_SUMMARY"].read_text())

    return run


def test_no_input_becomes_part_of_a_script() -> None:
    for step in STEPS:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
    named = {name for step in STEPS for text in step["env"].values() for name in re.findall(r"inputs\.([\w-]+)", text)}
    assert named == set(ACTION["inputs"])
    assert all(each["description"] for each in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))
    given = {name for step in STEPS for name in re.findall(r'echo "([\w-]+)=', step["run"])}
    assert {each["value"] for each in ACTION["outputs"].values()} == {
        f"${{{{ steps.run.outputs.{name} }}}}" for name in given
    }
    assert set(ACTION["outputs"]) == given


def test_a_run_leaves_verdict_report_and_summary(job: Run, tmp_path: Path) -> None:
    done = job(args="run --sandbox --requirement N1", report_dir="out/runs")
    assert done.code == 0, done.said
    assert done.outputs["exit-code"] == "0"
    assert done.outputs["verdict"].startswith("Pass (partial: 1 of 24")
    record = json.loads((tmp_path / "work" / done.outputs["run-dir"] / "run.json").read_text())
    assert record["schema"] == "winready-run/1"
    assert done.outputs["report-dir"] == "out/runs"
    assert "Pass" in done.summary


def test_the_exit_code_is_carried(job: Run) -> None:
    failing = "run --sandbox --requirement N1 --fault service-proxy.windows.not-programmed@windows-2"
    done = job(args=failing)
    assert (done.code, done.outputs["exit-code"]) == (1, "1"), done.said
    assert done.outputs["verdict"].startswith("Fail")
    assert "Fail" in done.summary
    again = job(args="run --no-such-option")
    assert (again.code, again.outputs["exit-code"], again.outputs["run-dir"]) == (2, "2", "")


def test_hostile_inputs_are_arguments_and_nothing_else(job: Run, tmp_path: Path) -> None:
    hostile = f"lint '$(touch {tmp_path}/a)' \"`touch {tmp_path}/b`\" ; touch {tmp_path}/c"
    assert job(args=hostile, report_dir="$(id)").code == 2
    assert "report-dir must be the path of a folder" in job(args="status", report_dir="-delete").said
    assert job(args="run 'unbalanced").outputs == {"exit-code": "2"}
    assert job(args="status", report_dir=f"x\nverdict=Pass\n$(touch {tmp_path}/d)").outputs == {"exit-code": "2"}
    assert not [name for name in "abcd" if (tmp_path / name).exists()]


def test_a_kubeconfig_is_private_and_gone_afterwards(job: Run, runner: Path) -> None:
    done = job(
        args="plan", kubeconfig_content="apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: s3cret}}]\n"
    )
    assert done.code in (2, 3), done.said
    assert str(runner / "temp" / "winready" / "kubeconfig") in done.said
    assert "s3cret" not in done.said + done.summary
    assert not (runner / "temp" / "winready" / "kubeconfig").exists()


def test_a_python_that_is_too_old_is_told(job: Run, tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = job(python=str(old))
    assert done.code == 2
    assert "::error::winready needs Python 3.11 or newer" in done.said
