"""Text of strangers on a terminal: a cluster, a run or a bundle may say anything, and must not steer what shows it."""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_COLOUR = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")


def printable(text: str) -> str:
    """Lines and tabs stay, colours go, and what else would move a cursor or turn words round shows as a sign."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", _COLOUR.sub("", text))
