"""What a look at the cluster brought to light."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "problem", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, and what to do about it."""

    subject: str
    level: Level
    message: str
    todo: str = ""
