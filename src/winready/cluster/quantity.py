"""Amounts as Kubernetes writes them: ``500m``, ``16Gi``, ``16777216Ki``."""

from __future__ import annotations

UNITS = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def amount(text: str) -> float:
    """The number that a quantity stands for; raises ``ValueError`` for what is none."""
    number = text.rstrip("".join(UNITS))
    unit = text[len(number) :]
    if unit and unit not in UNITS:
        raise ValueError(f"{text!r} is no quantity")
    return float(number) * UNITS.get(unit, 1)
