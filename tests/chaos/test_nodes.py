"""A node that goes away during a run is named, nothing else suffers, and nothing stays; more in `make chaos`."""

from __future__ import annotations

import pytest

from chaos.nodes import NODE, How, lose_node
from engine.stage import BY_ADDRESS

FOLDERS = "core.storage.hostpath-write"
PENDING = "core.scheduling.unschedulable-stays-pending"
HOST = "extend.hostprocess.host-networking"


@pytest.mark.parametrize(
    ("how", "after", "requirements", "finished"),
    [
        ("off", 165.0, [FOLDERS, PENDING], 1),
        ("removed", 160.0, [FOLDERS, PENDING, HOST], 2),
        ("taken-out", 130.0, [BY_ADDRESS, PENDING], 0),
    ],
)
def test_a_node_that_goes_away_is_named_and_nothing_of_the_run_stays(
    how: How, after: float, requirements: list[str], finished: int
) -> None:
    gone = lose_node(f"{how} {after}", requirements, how, after)
    assert gone.gone_at is not None
    assert (gone.verdict, gone.finished) == ("Fail", finished)
    assert "blocked" in gone.outcomes.values()
    assert gone.troubles == []
    # Of what lies on the disk of a silent node nobody can say anything.
    assert bool(gone.unknown) == (how == "off")
    assert all(NODE in words for words in gone.unknown)
