"""How long a run will still take: what was planned, corrected by how long things have really taken so far."""

from __future__ import annotations

from winready.engine import defaults
from winready.engine.outcomes import RequirementResult
from winready.engine.plan import Plan

TRUST = 60.0
"""Planned seconds that have to be gone through before what was measured counts as much as what was planned."""


class Pace:
    """Follows a run; all times are seconds of the run's clock."""

    def __init__(self, plan: Plan, scale: float, parallel: int = defaults.PARALLEL) -> None:
        self._scale = scale
        self._parallel = parallel
        self._whole = plan.expected_s
        self._waiting = {item.id: item.expected_s for item in plan.requirements if item.action == "run"}
        self._running: dict[str, float] = {}
        self._planned = self._taken = 0.0

    def started(self, name: str, now: float) -> None:
        """Something began."""
        self._running[name] = now

    def finished(self, result: RequirementResult) -> None:
        """Something ended, and took its time; what was never begun says nothing."""
        planned = self._waiting.pop(result.id, 0.0)
        if self._running.pop(result.id, None) is not None and result.outcome in ("passed", "failed"):
            self._planned += planned
            self._taken += result.duration_s * self._scale

    @property
    def slowness(self) -> float:
        """How many times as long as planned things take."""
        return (self._taken + TRUST) / (self._planned + TRUST)

    def left(self, gone: float, now: float) -> float:
        """Seconds until the last one should have ended; 0 when they should have by now."""
        factor = self.slowness / self._scale
        ends = [self._waiting.get(name, 0.0) * factor - (now - since) for name, since in self._running.items()]
        queued = sum(seconds for name, seconds in self._waiting.items() if name not in self._running)
        # No order of the work beats the critical path, and no number of hands does without all of the work.
        return max(0.0, *ends, self._whole * factor - gone, queued * factor / self._parallel) if self._waiting else 0.0
