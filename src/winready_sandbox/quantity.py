"""Kubernetes quantities (``500m``, ``2Gi``, ``1e3``) as exact numbers."""

from __future__ import annotations

import functools
import re
from fractions import Fraction

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?")
_DECIMAL, _BINARY = "kMGTPE", ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000 ** (power + 1)) for power, letter in enumerate(_DECIMAL)},
    **{name: Fraction(1024 ** (power + 1)) for power, name in enumerate(_BINARY)},
}
REFUSAL = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
"""What the API server says of a text that is none."""


def parse(quantity: object) -> Fraction:
    """The number that a quantity stands for; ``ValueError`` if it is none."""
    if isinstance(quantity, bool):
        raise ValueError(f"{quantity} is not a quantity")
    return _number(str(quantity))


@functools.lru_cache(maxsize=8192)
def _number(text: str) -> Fraction:
    found = _FORM.fullmatch(text)
    if found is None or len(text) > 64:
        raise ValueError(f"{text!r} is not a quantity")
    number, exponent, suffix = found.groups()
    if exponent and abs(int(exponent[1:])) > 30:
        raise ValueError(f"{text!r} is out of range")
    return Fraction(number + (exponent or "")) * _SUFFIXES.get(suffix or "", Fraction(1))


def canonical(quantity: object) -> str:
    """The form in which the API server writes a quantity: no fractions, the largest suffix that allows it."""
    if isinstance(quantity, bool):
        raise ValueError(f"{quantity} is not a quantity")
    return _canonical(str(quantity))


@functools.lru_cache(maxsize=8192)
def _canonical(text: str) -> str:
    amount = _number(text)
    found = _FORM.fullmatch(text)
    suffix = (found[3] if found else "") or ""
    if suffix.endswith("i") and amount.denominator == 1 and abs(amount) >= 1024:
        scale = [*_BINARY]
    elif found and found[2]:
        return text
    else:
        scale = ["n", "u", "m", "", *_DECIMAL]
    for name in reversed(scale):
        scaled = amount / _SUFFIXES.get(name, Fraction(1))
        if scaled.denominator == 1 and (scaled or not name):
            return f"{scaled}{name}"
    return text if suffix.endswith("i") else f"{-(-amount // _SUFFIXES['n'])}n"


def of_bytes(size: int) -> str:
    """A number of bytes in the largest binary unit that needs no fraction."""
    for name in reversed(_BINARY):
        if size and size % _SUFFIXES[name] == 0:
            return f"{size // _SUFFIXES[name]}{name}"
    return str(size)
