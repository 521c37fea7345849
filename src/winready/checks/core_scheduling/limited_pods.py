"""Containers with limits, and one beside them that has none."""

from __future__ import annotations

from winready.checks.context import Context
from winready.cluster.client import Object
from winready.cluster.pods import idle_container

SECOND, FREE = "second", "free"


def container(ctx: Context, name: str, limits: Object, **more: object) -> Object:
    """A container with these limits; its requests are those of every other, so that nothing else tells them apart."""
    resources = {"limits": limits, "requests": {"cpu": "50m", "memory": "100Mi"}}
    return idle_container(ctx.settings, name=name, resources=resources, **more)


def status_of(raw: Object | None, name: str) -> Object:
    """What the API says of a container of a pod."""
    statuses = ((raw or {}).get("status") or {}).get("containerStatuses") or []
    return next((dict(item) for item in statuses if item["name"] == name), {})


def limits_of(raw: Object | None, name: str) -> dict[str, str]:
    """The limits that a container of a pod has in the API."""
    containers: list[Object] = raw["spec"]["containers"] if raw else []
    found = next((each for each in containers if each["name"] == name), {})
    return dict((found.get("resources") or {}).get("limits") or {})
