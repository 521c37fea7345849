"""How long things take on a node, in cluster seconds.

The figures follow the planning table of Windows operations: a warm Windows pod needs 5 to 20 s, a HostProcess pod 3 to
10 s, a Linux pod 1 to 5 s, a cold pull of a Windows image minutes; deletion 5 to 20 s beyond the grace on Windows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

OS = Literal["windows", "linux"]
Range = tuple[float, float]


@dataclass(frozen=True)
class Latencies:
    """Ranges from which each delay is drawn."""

    sandbox: Range
    """Network and pause container of a pod."""
    container: Range
    """Creating and starting one container."""
    pull_base: Range
    pull_bytes_per_second: float
    teardown: Range
    """From the last process's end until the pod is gone."""
    exec: Range
    host_process: Range
    """Both steps of a HostProcess pod, each."""
    starts_at_once: int
    """Start-up is bound by disk and CPU: more pods than this wait for each other."""


WINDOWS = Latencies(
    sandbox=(3.0, 9.0),
    container=(2.0, 7.0),
    pull_base=(3.0, 8.0),
    pull_bytes_per_second=6e6,
    teardown=(2.0, 8.0),
    exec=(0.4, 1.5),
    host_process=(1.5, 4.5),
    starts_at_once=4,
)
LINUX = Latencies(
    sandbox=(0.4, 1.6),
    container=(0.3, 1.2),
    pull_base=(0.5, 1.5),
    pull_bytes_per_second=40e6,
    teardown=(0.3, 1.0),
    exec=(0.03, 0.15),
    host_process=(0.3, 1.0),
    starts_at_once=16,
)


def of(os: OS) -> Latencies:
    """The figures of an operating system."""
    return WINDOWS if os == "windows" else LINUX


def draw(rng: random.Random, span: Range) -> float:
    """One delay; short ones are more frequent than long ones, as measured start times are skewed."""
    low, high = span
    return low + (high - low) * rng.betavariate(2, 4)
