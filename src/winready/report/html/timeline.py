"""Where the time of a run went: what ran beside what, what waited for what, and the chain that bounded it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from winready.report.record import Record

TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200)
FINEST = 250
"""Parts of the axis that an eye can tell apart; questions that lie closer are drawn as one."""


@dataclass
class Bar:
    """One row: when something ran, which part of it was waiting, and when it put questions to the cluster."""

    name: str
    kind: str
    start: float
    end: float
    outcome: str = ""
    waited: float = 0.0
    """Seconds at the start spent on waiting for shared pods and services."""
    busy: list[tuple[float, float]] = field(default_factory=list)
    critical: bool = False

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start


@dataclass
class Timeline:
    """All rows, over a common axis."""

    total: float
    bars: list[Bar]
    ticks: list[float]
    """Where lines stand, in seconds."""
    critical: list[str]
    """Names along the chain that bounded the run, in order."""
    critical_s: float

    def share(self, seconds: float) -> str:
        """A stretch of time as a share of the whole axis."""
        return f"{100 * seconds / (self.total or 1):.3f}%"


def make_timeline(record: Record) -> Timeline:
    """The timeline of a run, in the order in which things ended."""
    fixtures = {
        item.name: Bar(
            f"shared {item.name}",
            "fixture",
            max(item.started_s, 0.0),
            item.started_s + item.seconds,
            "failed" if item.reason else "passed",
        )
        for item in record.fixtures
    }
    planned = {item.id: item for item in record.plan.requirements} if record.plan else {}
    checks: list[Bar] = []
    for result in record.requirements:
        if not result.duration_s:
            continue
        bar = Bar(result.id, "requirement", result.started_s, result.started_s + result.duration_s, result.outcome)
        needed = planned[result.id].fixtures if result.id in planned else []
        ready = max((fixtures[name].end for name in needed if name in fixtures), default=bar.start)
        bar.waited = min(max(ready - bar.start, 0.0), bar.seconds)
        asked = ((probe.at_s, probe.at_s + probe.seconds) for probe in result.evidence.probes)
        bar.busy = _merged(asked, record.duration_s / FINEST)
        checks.append(bar)
    bars = [*sorted(fixtures.values(), key=lambda bar: bar.end), *sorted(checks, key=lambda bar: bar.end)]
    if record.cleanup_s:
        ended = record.duration_s
        bars.append(Bar("cleanup", "cleanup", max(ended - record.cleanup_s, 0.0), ended, "passed"))
    total = max([record.duration_s, *(bar.end for bar in bars)], default=0.0)
    chain = _critical(bars, {name: planned[name].fixtures for name in planned}, fixtures, max(total / 50, 0.25))
    for bar in chain:
        bar.critical = True
    seconds = _covered(chain)
    return Timeline(total, bars, _ticks(total), [bar.name for bar in chain], seconds)


def _critical(bars: list[Bar], needs: dict[str, list[str]], fixtures: dict[str, Bar], at_once: float) -> list[Bar]:
    """Backwards from the end: what ended last, and what kept each link from beginning or going on earlier."""
    checks = [bar for bar in bars if bar.kind == "requirement"]
    chain = [bar for bar in bars if bar.kind == "cleanup"]
    last = max(checks, key=lambda bar: bar.end, default=None)
    first = min((bar.start for bar in checks), default=0.0)
    while last is not None:
        chain.insert(0, last)
        if last.waited:
            shared = [fixtures[name] for name in needs.get(last.name, []) if name in fixtures]
            chain.insert(0, max(shared, key=lambda bar: bar.end))
            break
        if last.start - first <= at_once:
            break
        # It began late: it had to wait for a place, or for its turn (disruptive requirements come last).
        before = [bar for bar in checks if bar.end <= last.start + 0.05 and bar not in chain]
        last = max(before, key=lambda bar: bar.end, default=None)
    return chain


def _covered(bars: Iterable[Bar]) -> float:
    return sum(end - start for start, end in _merged((bar.start, bar.end) for bar in bars))


def _merged(spans: Iterable[tuple[float, float]], gap: float = 0.0) -> list[tuple[float, float]]:
    """Overlapping stretches of time put together."""
    result: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1] + gap:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def _ticks(total: float) -> list[float]:
    step = next((tick for tick in TICKS if total / tick <= 6), total / 6)
    return [round(number * step, 3) for number in range(1, min(int(total / step), 6) + 1)]
