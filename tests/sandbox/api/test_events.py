"""Events do not pile up."""

from __future__ import annotations

from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.events import LIFETIME, EventSweeper
from winready_sandbox.api.registry import Registry


def test_an_event_goes_an_hour_after_it_was_last_written(registry: Registry) -> None:
    now = 0.0
    EventSweeper(registry, lambda: now)
    client = LocalClient(registry)

    def write(name: str) -> None:
        client.create("events", {"metadata": {"name": name}, "involvedObject": {"kind": "Pod"}}, "default")

    write("old")
    write("repeated")
    now = LIFETIME / 2
    client.patch("events", "repeated", {"count": 2}, "default")
    now = LIFETIME + 1
    write("new")
    assert [event["metadata"]["name"] for event in client.list("events")[0]] == ["new", "repeated"]
