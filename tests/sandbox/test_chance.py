"""What is left to chance, and how a trial takes that away."""

from __future__ import annotations

import random
import uuid

from winready_sandbox import chance


def draw() -> list[str]:
    return [chance.unique(), chance.unique_hex(64), str(random.random())]


def test_chance_that_is_fixed_has_the_same_course_again() -> None:
    chance.fix("one")
    first = draw()
    chance.fix("one")
    assert draw() == first
    chance.fix("other")
    assert draw() != first


def test_ids_are_well_formed_and_never_the_same() -> None:
    assert uuid.UUID(chance.unique()).version == 4
    assert len(chance.unique_hex(16)) == 16
    assert len({chance.unique() for _ in range(1000)}) == 1000


def test_ids_stay_apart_when_a_test_tool_sets_back_the_chance_of_the_process() -> None:
    random.seed(0)
    before = chance.unique()
    random.seed(0)
    assert chance.unique() != before
