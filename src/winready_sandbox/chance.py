"""Ids that nobody else has. Where a trial fixes chance, the same ones each time."""

from __future__ import annotations

import random
import uuid

_chance = random.Random()
"""Apart from the chance of the process, which a test tool may set back while a sandbox lives."""


def fix(seed: str) -> None:
    """Let everything that is left to chance come out the same from here on."""
    random.seed(seed)
    _chance.seed(seed)


def unique() -> str:
    """A random UUID."""
    return str(uuid.UUID(int=_chance.getrandbits(128), version=4))


def unique_hex(digits: int) -> str:
    """So many random hexadecimal digits."""
    return f"{_chance.getrandbits(4 * digits):0{digits}x}"
