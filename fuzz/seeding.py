"""The sound inputs that hostile ones are made from, and those that once were a finding."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from random import Random

SEEDS = Path(__file__).with_name("seeds")
Make = Callable[[Random], bytes]


@functools.cache
def seeds(name: str) -> list[bytes]:
    """The sound inputs of a target."""
    return [path.read_bytes() for path in sorted((SEEDS / name).iterdir())]


def from_seeds(name: str, mutate: Callable[[bytes, Random], bytes]) -> Make:
    """Change one of the seeds."""
    return lambda random: mutate(random.choice(seeds(name)), random)
