"""Where benches keep what they measured, for the page of figures."""

from __future__ import annotations

import json
from pathlib import Path

SPEED = Path(__file__).resolve().parents[1] / "build" / "speed.json"


def keep(name: str, value: float) -> None:
    """Write a figure down beside the others."""
    found = json.loads(SPEED.read_text()) if SPEED.exists() else {}
    SPEED.parent.mkdir(parents=True, exist_ok=True)
    SPEED.write_text(json.dumps({**found, name: round(value, 2)}, indent=1, sort_keys=True) + "\n")
