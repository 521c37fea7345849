"""Who a container's process is: from the pod, the container and the image."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winready_sandbox.host import rooted
from winready_sandbox.nodes.environment import ConfigError

Object = dict[str, Any]


@dataclass(frozen=True)
class Account:
    """A user with its groups."""

    user: int
    group: int
    groups: tuple[int, ...] = ()


def account(pod: Object, container: Object, image_user: str, root: Path) -> Account:
    """The account of a container; raises `ConfigError` for a name that the image does not know."""
    whole = pod["spec"].get("securityContext") or {}
    context = whole | (container.get("securityContext") or {})
    name, _, group_name = image_user.partition(":")
    user, group = _look_up(root, "passwd", name or "0")
    if group_name:
        group, _ = _look_up(root, "group", group_name)
    if context.get("runAsUser") is not None:
        user = int(context["runAsUser"])
        group = _group_of(root, user)
    if context.get("runAsGroup") is not None:
        group = int(context["runAsGroup"])
    if context.get("runAsNonRoot") and user == 0:
        metadata = pod["metadata"]
        raise ConfigError(
            f'container has runAsNonRoot and image will run as root (pod: "{metadata["name"]}_{metadata["namespace"]}'
            f'({metadata["uid"]})", container: {container["name"]})'
        )
    extra = [whole["fsGroup"]] if whole.get("fsGroup") is not None else []
    return Account(user, group, tuple(dict.fromkeys([*extra, *(whole.get("supplementalGroups") or [])])))


def _look_up(root: Path, file: str, name: str) -> tuple[int, int]:
    """The number of a name in the image, and the number that follows it: for a user, its group."""
    for fields in _entries(root, file):
        if name in (fields[0], fields[2]):
            return int(fields[2]), int(fields[3]) if file == "passwd" else 0
    if name.isdigit():
        return int(name), 0
    raise ConfigError(f"unable to find user {name}: no matching entries in {file} file")


def _group_of(root: Path, user: int) -> int:
    return next((int(fields[3]) for fields in _entries(root, "passwd") if fields[2] == str(user)), 0)


def _entries(root: Path, file: str) -> list[list[str]]:
    path = rooted.outside(root, rooted.resolve(root, f"/etc/{file}"))
    if not path.is_file():
        return []
    lines = [line.split(":") for line in path.read_text(errors="replace").splitlines()]
    return [
        fields
        for fields in lines
        if len(fields) >= 4 and fields[2].isdigit() and (fields[3].isdigit() or file == "group")
    ]
