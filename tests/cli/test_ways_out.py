"""However a run ends: it cleans up, says what became of it, and blames nobody else for trouble of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import SPEED, CommandLine
from cli.test_run import QUICK, document, left_behind
from report import samples
from winready.cli.run import _last_words
from winready.report import record


def arguments(kubeconfig: str, reports: Path, *more: str) -> list[str]:
    return ["run", "--kubeconfig", kubeconfig, "--time-scale", SPEED, "--report-dir", str(reports), *more]


@pytest.mark.parametrize("room", [3000, 9000])
def test_a_full_disk_ends_a_run_with_cleanup_and_without_a_pass(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path, room: int
) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "winready", *arguments(kubeconfig, tmp_path, "--requirement", "N5")],
        env=command_line.environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert result.returncode == 3, result.stdout + result.stderr
    assert "error: journal.jsonl cannot be written: File too large" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Pass" not in result.stdout
    assert result.stdout.splitlines()[-1].startswith("Fail")
    assert left_behind(kubeconfig) == []
    folder = next(tmp_path.iterdir())
    assert record.read_story(folder).run_id == folder.name
    # What did not fit is not there in part either.
    assert {path.name for path in folder.iterdir()} <= {"journal.jsonl", "junit.xml"}


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_closed_pipe_ends_a_run_with_cleanup(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path, output: str
) -> None:
    # Beside N5 something that takes minutes: whichever line is the first that nobody reads, it is not done by then.
    slow = ["--requirement", "core.scheduling.limits-honoured"] if output == "text" else []
    process = command_line.start(*arguments(kubeconfig, tmp_path, "--requirement", "N5", *slow, "-o", output))
    assert process.stdout is not None
    if output == "text":
        process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.wait(timeout=110)
    assert process.returncode == 3
    assert "error: standard output cannot be written: Broken pipe" in said
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert left_behind(kubeconfig) == []
    run = json.loads(next(tmp_path.glob("*/run.json")).read_text())
    # With a document asked for, the run itself was heard to its end; only the document was lost.
    assert run["requirements"][-1]["outcome"] == ("error" if output == "text" else "passed")


@pytest.mark.parametrize("words", [["status"], ["history"], ["verify", "{bundle}"], ["rbac"], ["report"]])
def test_what_cannot_be_printed_is_no_judgement(command_line: CommandLine, tmp_path: Path, words: list[str]) -> None:
    samples.write_run(tmp_path)
    product = ["--vendor", "a", "--product-name", "b", "--product-version", "1", "--contact", "c@d"]
    bundle = str(tmp_path / "b.tar.gz")
    made = command_line("certify", "--report-dir", str(tmp_path), *product, "--output", bundle)
    assert made.returncode == 0, made.stderr
    where = ["--report-dir", str(tmp_path)] if words[0] in ("status", "history", "report") else []
    command = [sys.executable, "-m", "winready", *(word.format(bundle=bundle) for word in words), *where]
    for full in (True, False):
        with Path("/dev/full" if full else "/dev/null").open("w") as output:
            process = subprocess.Popen(
                command,
                env=command_line.environment(),
                stdout=output if full else subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            if process.stdout is not None:
                process.stdout.close()
            assert process.stderr is not None
            said = process.stderr.read()
            assert process.wait(timeout=60) == 3, said
        assert said.startswith("error: the output cannot be written: ")
        assert len(said.splitlines()) == 1


def test_a_complete_run_that_is_resumed_comes_to_the_same_rules(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path
) -> None:
    chosen = ["--requirement", QUICK, "--windows-builds", "current", "--allow-small-cluster", "-o", "json"]
    first = command_line(*arguments(kubeconfig, tmp_path, *chosen))
    assert first.returncode == 0, first.stdout
    run = document(first.stdout)
    again = command_line(*arguments(kubeconfig, tmp_path, "--resume", run["run_id"], "-o", "json"))
    resumed = document(again.stdout)
    assert resumed["plan"]["requirements"] == []
    assert resumed["rules"] == run["rules"]
    assert (again.returncode, resumed["verdict_text"]) == (0, run["verdict_text"])


def test_what_a_run_left_behind_is_its_last_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = samples.make_record()
    run.leftovers = ["Namespace winready-x (held by a finalizer)", "Namespace winready-y"]
    _last_words(run, {}, tmp_path, "text")
    assert capsys.readouterr().out.startswith("2 objects of this run left behind on the cluster")
    _last_words(run, {"run.json": "run.json cannot be written: No space left on device"}, tmp_path, "json")
    heard = capsys.readouterr()
    assert heard.out == ""
    assert heard.err.splitlines()[-1].startswith("2 objects of this run left behind")
    assert "cleaned up" not in heard.err
