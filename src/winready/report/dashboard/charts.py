"""Small drawings as numbers: bars that a template turns into SVG, with attributes alone, as the policy wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

WIDTH, HEIGHT, GAP = 720, 150, 0.22
ORDER = ("passed", "not-applicable", "blocked", "error", "failed")
"""From the ground up: what is bad is on top, where its height is seen."""


class Bar(NamedTuple):
    """A rectangle and what it says."""

    x: float
    y: float
    width: float
    height: float
    tone: str
    title: str


class Chart(NamedTuple):
    """Bars over months."""

    bars: list[Bar]
    labels: list[tuple[float, str]]
    """Where on the axis which month stands."""
    most: int
    """What the height of the drawing means."""
    width: int = WIDTH
    height: int = HEIGHT


def stacked(months: Sequence[str], series: Mapping[str, Sequence[int]], things: str) -> Chart:
    """A bar for each month, with a part for each tone."""
    sums = [sum(values[place] for values in series.values()) for place in range(len(months))]
    most = max([*sums, 1])
    step = WIDTH / max(len(months), 1)
    wide = min(step * (1 - GAP), 48)
    bars = []
    for place, month in enumerate(months):
        floor = float(HEIGHT)
        for tone in (name for name in ORDER if name in series):
            if count := series[tone][place]:
                high = HEIGHT * count / most
                floor -= high
                left = place * step + (step - wide) / 2
                bars.append(Bar(*_round(left, floor, wide, high), tone, f"{month}: {count} {things} {_word(tone)}"))
    every = max(1, -(-len(months) // 12))
    labels = [
        (round((place + 0.5) * step, 1), month)
        for place, month in enumerate(months)
        if (len(months) - 1 - place) % every == 0
    ]
    return Chart(bars, labels, most)


def spark(values: Sequence[int], most: int, months: Sequence[str], width: int = 132, height: int = 24) -> list[Bar]:
    """A very small one, as high as the largest of all that stand together."""
    step = width / max(len(values), 1)
    return [
        Bar(*_round(place * step, height - height * value / max(most, 1), step * 0.8, height * value / max(most, 1)),
            "failed", f"{month}: failed in {value}")
        for place, (value, month) in enumerate(zip(values, months, strict=True))
        if value
    ]  # fmt: skip


def share(counts: Mapping[str, int], total: int, width: int = 200, height: int = 12) -> list[Bar]:
    """One bar that is divided; the worst is at the left."""
    bars, left = [], 0.0
    for tone in (name for name in reversed(ORDER) if counts.get(name)):
        wide = width * counts[tone] / max(total, 1)
        bars.append(Bar(*_round(left, 0, wide, height), tone, f"{counts[tone]} {_word(tone)}"))
        left += wide
    return bars


def _word(tone: str) -> str:
    return tone.replace("-", " ")


def _round(*values: float) -> tuple[float, float, float, float]:
    x, y, width, height = (round(value, 2) for value in values)
    return x, y, width, height
