"""Files that the kubelet writes for a pod from API objects: secrets, config maps, downward API, projections.

A kubelet writes a new version into a fresh directory and turns the link ``..data`` to it, so that readers see the
old files or the new ones, never a mixture. The tree here has the same shape and is swapped in one step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from winready_sandbox.clock import utc_now
from winready_sandbox.machine.files import PROTECTED_ACL
from winready_sandbox.machine.tree import Directory, File, Symlink
from winready_sandbox.nodes.environment import binary_data

Object = dict[str, Any]
Find = Callable[[str, str], Object | None]


class VolumeError(Exception):
    """A volume that cannot be set up now; the kubelet says so in an event and tries again."""


@dataclass(frozen=True)
class Entry:
    """One file of a projection."""

    data: bytes
    mode: int


Payload = dict[str, Entry]


def object_entries(resource: str, source: Object, name: str, default_mode: int, find: Find) -> Payload:
    """The files of a ``secret`` or ``configMap`` source: all keys, or the listed ones under their paths."""
    found = find(resource, name)
    optional = bool(source.get("optional"))
    if found is None:
        if optional:
            return {}
        raise VolumeError(f'{resource[:-1]} "{name}" not found')
    data = binary_data(found)
    if not source.get("items"):
        return {key: Entry(value, default_mode) for key, value in data.items()}
    payload: Payload = {}
    for item in source["items"]:
        if item["key"] in data:
            payload[item["path"]] = Entry(data[item["key"]], item.get("mode", default_mode))
        elif not optional:
            raise VolumeError(f"references non-existent {resource[:-1]} key: {item['key']}")
    return payload


def downward_entries(
    items: list[Object], default_mode: int, field: Callable[[str], str], resource: Callable[[Object], str]
) -> Payload:
    """The files of a ``downwardAPI`` source."""
    payload: Payload = {}
    for item in items:
        value = field(item["fieldRef"]["fieldPath"]) if "fieldRef" in item else resource(item["resourceFieldRef"])
        payload[item["path"]] = Entry(value.encode("utf-8", "surrogateescape"), item.get("mode") or default_mode)
    return payload


CLOSED_ACL = {name: rights for name, rights in PROTECTED_ACL.items() if name != "Users"}


def write(target: Directory, payload: Payload, *, windows: bool, keep_modes: bool = False) -> None:
    """Give a directory this content, in one step."""
    acl = PROTECTED_ACL if windows else None
    version = utc_now().strftime("..%Y_%m_%d_%H_%M_%S.") + f"{random.randrange(10**9):09}"
    content = Directory(0o777, fold=windows, acl=acl)
    files = Directory(0o755, fold=windows, acl=acl)
    for path, entry in payload.items():
        closed = CLOSED_ACL if keep_modes and not entry.mode & 0o004 else None
        files.make(path, File(entry.data, entry.mode, acl=closed))
    content.put(version, files)
    content.put("..data", Symlink(version))
    separator = "\\" if windows else "/"
    for name in {path.split("/")[0] for path in payload}:
        content.put(name, Symlink(f"..data{separator}{name}"))
    target.replace(content)
