"""A sandbox that lives as long as one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from winready.cli.options import fail


@contextmanager
def own_sandbox(name: str, speed: str, faults: tuple[str, ...] = ()) -> Iterator[tuple[Path, float]]:
    """Start a sandbox in a process of its own; gives its kubeconfig and its speed, and stops it at the end."""
    from winready.sandbox.clock import parse_speed
    from winready.sandbox.daemon import start
    from winready.sandbox.plan import Plan
    from winready.sandbox.state import Place, StateError, stop

    try:
        factor = parse_speed(speed)
        document = start(Plan(name=name, speed=factor, faults=faults))
    except (StateError, ValueError) as error:
        fail(str(error))
    place = Place.of(name)
    try:
        yield Path(document["kubeconfig"]), factor
    finally:
        stop(place)
