"""Breaking and healing a running sandbox: faults are applied to the defects of its parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from winready_sandbox.faults.model import Fault
from winready_sandbox.faults.table import find


class CannotBreak(ValueError):
    """The fault cannot be had there; the message says why."""


@dataclass(frozen=True)
class Broken:
    """A fault in force; ``node`` is empty for the control plane."""

    fault: str
    node: str


class Breaker:
    """Knows where the defects of each part are, and what is broken now."""

    def __init__(
        self,
        nodes: Mapping[str, str],
        parts: Callable[[str, str], Any],
        changed: Callable[[str], None],
    ) -> None:
        """``nodes``: OS by name; ``parts(node, part)``: the defects of a part; ``changed(node)``: look at them anew."""
        self._nodes = nodes
        self._parts = parts
        self._changed = changed
        self.broken: list[Broken] = []
        self._since_boot: set[Broken] = set()
        """Faults that waited for a reboot of their node, and had it."""

    def break_(self, name: str, node: str | None = None) -> list[Broken]:
        """Give the sandbox a fault; returns where it is in force now."""
        fault = find(name)
        added = [Broken(fault.name, each) for each in self._targets(fault, node)]
        for item in added:
            self._parts(item.node, fault.part)
        self.broken += [item for item in added if item not in self.broken]
        self._apply()
        return added

    def heal(self, name: str | None = None, node: str | None = None) -> list[Broken]:
        """Take a fault away again (all of them without a name); returns what was healed."""
        if name is not None:
            find(name)
        healed = [b for b in self.broken if name in (None, b.fault) and node in (None, b.node)]
        self.broken = [item for item in self.broken if item not in healed]
        self._since_boot.difference_update(healed)
        self._apply(also={(item.node, find(item.fault).part) for item in healed})
        return healed

    def booted(self, node: str) -> None:
        """A node starts again: what waited for that comes into force."""
        waiting = {item for item in self.broken if item.node == node and find(item.fault).after_reboot}
        if waiting - self._since_boot:
            self._since_boot |= waiting
            self._apply()

    def _targets(self, fault: Fault, node: str | None) -> list[str]:
        if fault.where == "cluster":
            if node:
                raise CannotBreak(f"{fault.name} is a fault of the control plane; leave the node out")
            return [""]
        fitting = sorted(name for name, os in self._nodes.items() if os == fault.where)
        if node is not None:
            if node not in fitting:
                known = ", ".join(fitting) or "none"
                raise CannotBreak(f"{fault.name} is for {fault.where} nodes; {node!r} is not one of {known}")
            return [node]
        if not fitting:
            raise CannotBreak(f"{fault.name} needs a {fault.where} node, and there is none")
        return fitting if fault.everywhere else fitting[:1]

    def _apply(self, also: Collection[tuple[str, str]] = ()) -> None:
        """Set the defects of every part that is or was broken to what is in force now."""
        wanted: dict[tuple[str, str], dict[str, Any]] = {place: {} for place in also}
        for item in self.broken:
            fault = find(item.fault)
            changes = wanted.setdefault((item.node, fault.part), {})
            if not fault.after_reboot or item in self._since_boot:
                changes.update(fault.changes)
        for (node, part), changes in wanted.items():
            defects = self._parts(node, part)
            healthy = type(defects)()
            for each in fields(defects):
                setattr(defects, each.name, changes.get(each.name, getattr(healthy, each.name)))
        for node in {node for node, _ in wanted}:
            self._changed(node)
