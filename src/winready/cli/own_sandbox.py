"""A sandbox that lives as long as one command."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winready.cli.options import colour_wanted, fail

if TYPE_CHECKING:
    from winready_sandbox.state import Place

SETTLE_TIMEOUT = 310.0
"""Wall seconds; at speed 1 a fresh cluster takes its time."""


@contextmanager
def own_sandbox(
    name: str, speed: str, faults: tuple[str, ...] = (), offers: dict[str, Any] | None = None
) -> Iterator[tuple[Path, float]]:
    """Start a sandbox in a process of its own; gives its kubeconfig and its speed, and stops it at the end.

    ``offers`` are options of its plan, for what is to be verified on it.
    """
    from winready.report.terminal import waiting
    from winready_sandbox.clock import parse_speed
    from winready_sandbox.daemon import start
    from winready_sandbox.plan import Plan
    from winready_sandbox.state import Place, StateError, stop

    try:
        factor = parse_speed(speed)
        with waiting("starting the sandbox", colour=colour_wanted()):
            document = start(Plan(name=name, speed=factor, **(offers or {})))
    except (StateError, ValueError) as error:
        fail(str(error))
    place = Place.of(name)
    try:
        with waiting("the sandbox comes up", colour=colour_wanted()):
            break_when_settled(place, faults)
    except StateError as error:
        stop(place)
        fail(str(error))
    # A closed terminal or a terminated command must not leave the cluster behind.
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(130))
    try:
        yield Path(document["kubeconfig"]), factor
    finally:
        stop(place)


def break_when_settled(place: Place, faults: tuple[str, ...]) -> list[dict[str, Any]]:
    """Give a sandbox faults once it has come up in good health, as clusters break; where they are in force then."""
    from winready_sandbox.state import ask

    if not faults:
        return []
    ask(place, "settle", timeout=SETTLE_TIMEOUT)
    broken: list[dict[str, Any]] = []
    for fault in faults:
        name, _, node = fault.partition("@")
        broken += ask(place, "break", name=name, node=node or None)
    return broken
