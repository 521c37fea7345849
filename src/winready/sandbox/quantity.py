"""Kubernetes quantities (``500m``, ``2Gi``, ``1e3``) as exact numbers."""

from __future__ import annotations

import re
from fractions import Fraction

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?")
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000 ** (power + 1)) for power, letter in enumerate("kMGTPE")},
    **{f"{letter}i": Fraction(1024 ** (power + 1)) for power, letter in enumerate("KMGTPE")},
}


def parse(quantity: object) -> Fraction:
    """The number that a quantity stands for; ``ValueError`` if it is none."""
    found = _FORM.fullmatch(str(quantity)) if not isinstance(quantity, bool) else None
    if found is None or len(found[0]) > 64:
        raise ValueError(f"{quantity!r} is not a quantity")
    number, exponent, suffix = found.groups()
    if exponent and abs(int(exponent[1:])) > 30:
        raise ValueError(f"{quantity!r} is out of range")
    return Fraction(number + (exponent or "")) * _SUFFIXES.get(suffix or "", Fraction(1))
