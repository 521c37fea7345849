"""Who owns which fields: reading, changing and writing ``metadata.managedFields``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from winready_sandbox.api.objects import timestamp
from winready_sandbox.api.patches.fields import Difference, Tree, minus, union


@dataclass(frozen=True)
class Manager:
    """One entry: a manager that writes in one way, through one version and subresource."""

    name: str
    operation: str
    api_version: str
    subresource: str
    fields: Tree
    time: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What makes two entries the same manager."""
        return self.name, self.operation, self.api_version, self.subresource

    def entry(self) -> dict[str, Any]:
        """As stored in the object."""
        entry: dict[str, Any] = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
        }
        if self.time:
            entry["time"] = self.time
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": self.fields}
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry

    def spelled(self) -> str:
        """As conflicts name it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


def read(entries: object) -> list[Manager] | None:
    """The managers of an object, or ``None`` if the list is not one the server would accept."""
    if not isinstance(entries, list):
        return None
    managers = []
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("fieldsV1"), dict):
            return None
        if entry.get("operation") not in ("Apply", "Update") or entry.get("fieldsType") != "FieldsV1":
            return None
        if not entry.get("apiVersion"):
            return None
        managers.append(
            Manager(
                str(entry.get("manager", "")),
                str(entry["operation"]),
                str(entry["apiVersion"]),
                str(entry.get("subresource", "")),
                entry["fieldsV1"],
                str(entry.get("time", "")),
            )
        )
    return managers


def after_write(managers: list[Manager], writer: Manager, changes: Difference) -> list[Manager]:
    """Others lose what the writer changed or removed; the writer gains what it changed."""
    result: list[Manager] = []
    own: Tree | None = None
    for manager in managers:
        left = minus(manager.fields, changes.removed)
        if manager.identity == writer.identity:
            own = left
            continue
        left = minus(left, changes.changed)
        if left is manager.fields:
            result.append(manager)
        elif left is not None:
            result.append(replace(manager, fields=left))
    own = union(own, changes.changed)
    if own:
        result.append(replace(writer, fields=own))
    return result


def now() -> str:
    """This moment, as objects write it."""
    return timestamp()


def with_managers(obj: dict[str, Any], managers: list[Manager]) -> dict[str, Any]:
    """The object with this list of managers."""
    ordered = sorted(managers, key=lambda m: (m.operation, m.time, m.name, m.api_version, m.subresource))
    return with_entries(obj, [manager.entry() for manager in ordered])


def with_entries(obj: dict[str, Any], entries: object) -> dict[str, Any]:
    """The object with these entries, or with none."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def only_times_differ(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two states of an object are the same but for the times at which their managers wrote."""

    def timeless(obj: dict[str, Any]) -> dict[str, Any]:
        entries = obj.get("metadata", {}).get("managedFields") or []
        return with_entries(obj, [{key: value for key, value in entry.items() if key != "time"} for entry in entries])

    return timeless(one) == timeless(other)
