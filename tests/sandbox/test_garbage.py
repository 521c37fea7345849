"""A cluster that has come up is left out of the collector's rounds for as long as it is there, and not longer."""

from __future__ import annotations

import gc

from winready_sandbox.garbage import left_alone


class _Ring:
    """Garbage that only the collector finds."""

    def __init__(self, gone: list[str]) -> None:
        self.itself = self
        self._gone = gone

    def __del__(self) -> None:
        self._gone.append("gone")


def test_what_was_there_is_left_alone_and_can_be_garbage_afterwards() -> None:
    before, gone = gc.get_threshold(), list[str]()
    there = _Ring(gone)
    with left_alone():
        assert gc.get_threshold()[0] > before[0]
        del there
        _Ring(gone)
        gc.collect()
        assert gone == ["gone"], "what came since is looked at, and nothing else"
    assert gc.get_threshold() == before
    gc.collect()
    assert gone == ["gone", "gone"]
