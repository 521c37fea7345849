"""Killed at any moment, a run loses no result, and nothing of it stays; more of them in `make chaos`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.crashes import crash
from engine.stage import BY_ADDRESS

FOLDERS = "core.storage.hostpath-write"
HOST = "extend.hostprocess.host-networking"


@pytest.mark.parametrize(
    ("when", "clean_first"),
    [
        ({"after": 21.0}, False),
        ({"after": 47.0}, True),
        ({"at_event": 0}, False),
        ({"at_event": 9}, False),
        ({"at_event": 11}, True),
    ],
)
def test_a_killed_run_is_taken_over_and_cleaned_up_after(
    tmp_path: Path, when: dict[str, Any], clean_first: bool
) -> None:
    crashed = crash(f"crash {when}", [BY_ADDRESS, FOLDERS, HOST], tmp_path, clean_first=clean_first, **when)
    assert (crashed.lost, crashed.verdict, set(crashed.outcomes.values())) == ([], "Pass", {"passed"})
    assert (crashed.cleaned, crashed.remains) == ([], [])


def test_a_run_that_is_killed_while_a_node_reboots_is_taken_over_when_it_is_back(tmp_path: Path) -> None:
    crashed = crash("crash 59", ["core.storage.reboot-recovery"], tmp_path, after=228.0)
    assert (crashed.lost, crashed.verdict, crashed.cleaned, crashed.remains) == ([], "Pass", [], [])
