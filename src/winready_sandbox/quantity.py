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


def canonical(quantity: object) -> str:
    """The form in which the API server writes a quantity: no fractions, the largest suffix that allows it."""
    amount = parse(quantity)
    found = _FORM.fullmatch(str(quantity))
    suffix = (found[3] if found else "") or ""
    if suffix.endswith("i") and amount.denominator == 1 and abs(amount) >= 1024:
        scale = [f"{letter}i" for letter in "KMGTPE"]
    elif found and found[2]:
        return str(quantity)
    else:
        scale = ["n", "u", "m", "", *"kMGTPE"]
    for name in reversed(scale):
        scaled = amount / _SUFFIXES.get(name, Fraction(1))
        if scaled.denominator == 1 and (scaled or not name):
            return f"{scaled}{name}"
    return str(quantity) if suffix.endswith("i") else f"{-(-amount // _SUFFIXES['n'])}n"
