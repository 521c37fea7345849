"""Feature gates as an API server tells them: the metric ``kubernetes_feature_enabled`` at ``/metrics``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

METRIC = "kubernetes_feature_enabled"
MOST_GATES = 5_000
_LINE = re.compile(
    rb"^"
    + METRIC.encode()
    + rb'\{name="(?P<name>[A-Za-z0-9_]{1,100})",stage="(?P<stage>[A-Z]{0,20})"\} (?P<on>[01])\s*$',
    re.MULTILINE,
)


class GatesError(ValueError):
    """Metrics that cannot be used; the message begins with a verb."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One feature gate of one version."""

    stage: str  # alpha, beta, ga or deprecated
    on: bool

    def __str__(self) -> str:
        return f"{self.stage} {'on' if self.on else 'off'}"


def read(data: bytes) -> Mapping[str, Gate]:
    """The gates among the metrics of an API server, sorted by name."""
    found: dict[str, Gate] = {}
    for match in _LINE.finditer(data):
        # A gate that is stable has no stage in the metric.
        found[match["name"].decode()] = Gate(match["stage"].decode().lower() or "ga", match["on"] == b"1")
        if len(found) > MOST_GATES:
            raise GatesError(f"names more than {MOST_GATES:,} feature gates")
    if not found:
        raise GatesError(f"has no metric {METRIC}; save what 'kubectl get --raw /metrics' prints")
    return dict(sorted(found.items()))
