"""Killed and interrupted for real; the rest of them is `make chaos`."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from chaos.kills import arguments, interrupt, kill, objects, stormy
from cli.conftest import CommandLine, command_line

__all__ = ["command_line"]


@pytest.fixture(scope="module")
def own_cluster(command_line: CommandLine) -> str:
    """A cluster on which nobody else's runs are cleaned up."""
    return str(command_line.sandbox("chaos")["kubeconfig"])


def test_a_run_that_is_killed_loses_nothing_and_is_cleaned_up_after(
    command_line: CommandLine, own_cluster: str, tmp_path: Path
) -> None:
    killed = kill(command_line, own_cluster, tmp_path, "kill 3")
    assert (killed.lost, killed.verdict, killed.words) == ([], "Pass", "")
    assert killed.cleanup == "0 ['nothing of winready is left on the cluster']"
    assert killed.remains == []


@pytest.mark.parametrize(
    ("number", "stage", "times"),
    [(signal.SIGINT, "fixture-ready", 2), (signal.SIGTERM, "inventory-taken", 1), (signal.SIGTERM, "cleaned-up", 1)],
)
def test_a_run_that_is_interrupted_cleans_up_and_says_so(
    command_line: CommandLine, own_cluster: str, tmp_path: Path, number: signal.Signals, stage: str, times: int
) -> None:
    ended = interrupt(command_line, own_cluster, tmp_path, number, stage, times)
    assert "Traceback" not in ended.words
    assert (ended.remains, ended.record["leftovers"], ended.lost) == ([], [], [])
    # What comes when everything is judged changes nothing any more.
    assert ended.exit_code == (0 if stage == "cleaned-up" else 130)


def test_a_run_passes_through_a_proxy_with_all_kinds_of_trouble(
    command_line: CommandLine, own_cluster: str, tmp_path: Path
) -> None:
    before, way = objects(own_cluster), tmp_path / "kubeconfig"
    with stormy(command_line, own_cluster, 0.02, way) as met:
        run = command_line(*arguments(str(way), tmp_path / "runs"))
        assert run.returncode == 0, run.stdout + run.stderr
    assert met
    assert objects(own_cluster) == before
