"""Finding the fields that rules look at, in one walk.

All paths of all rules for a kind become one tree, and an object is followed along it: the cost is that of the fields
which the object and the rules have in common, not of the number of rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from winready.lint.catalog import Test
from winready.spec.yamlfile import Path

CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")

_STEP = re.compile(r"\[\*\]|\[([^\]]+)\]|([^.\[\]]+)")


Row = TypeVar("Row")


class Fields(Generic[Row]):
    """The tree of one kind; ``hits`` walks an object along it, and tells the rows whose fields it has."""

    __slots__ = ("children", "each", "prefixes", "tests")

    def __init__(self) -> None:
        self.children: dict[str, Fields[Row]] = {}
        self.prefixes: list[tuple[str, Fields[Row]]] = []
        self.each: Fields[Row] | None = None
        self.tests: list[tuple[Row, Test]] = []

    def add(self, pattern: str, row: Row, test: Test) -> None:
        """Let ``row`` test the fields that match ``pattern``."""
        for steps in expand(pattern):
            node: Fields[Row] = self
            for step in steps:
                node = node._step(step)
            node.tests.append((row, test))

    def _step(self, step: str) -> Fields[Row]:
        if step == "[*]":
            self.each = self.each or Fields()
            return self.each
        if step.endswith("*"):
            for prefix, node in self.prefixes:
                if prefix == step[:-1]:
                    return node
            new: Fields[Row] = Fields()
            self.prefixes.append((step[:-1], new))
            return new
        return self.children.setdefault(step, Fields())

    def hits(self, value: Any) -> list[tuple[Row, Path]]:
        """Every row whose test a field passes, with the path of the field."""
        found: list[tuple[Row, Path]] = []
        self._collect(value, (), found)
        return found

    def _collect(self, value: Any, path: Path, found: list[tuple[Row, Path]]) -> None:
        for row, test in self.tests:
            if test(value):
                found.append((row, path))
        if isinstance(value, dict):
            children = self.children
            for key in value:
                if key in children:
                    children[key]._collect(value[key], (*path, key), found)
            for prefix, node in self.prefixes:
                for key in value:
                    if key.startswith(prefix):
                        node._collect(value[key], (*path, key), found)
        elif self.each is not None and isinstance(value, list):
            for index, item in enumerate(value):
                self.each._collect(item, (*path, index), found)


def expand(pattern: str) -> Iterable[tuple[str, ...]]:
    """``container.image`` -> the steps to that field in each of the three lists of containers."""
    steps = tuple(match[1] or match[2] or "[*]" for match in _STEP.finditer(pattern))
    if steps[0] != "container":
        return [steps]
    return [("spec", name, "[*]", *steps[1:]) for name in CONTAINER_LISTS]


def dotted(path: Path) -> str:
    """A path as people write it: ``spec.containers[0].image``."""
    text = ""
    for step in path:
        if isinstance(step, int) or "." in step or "/" in step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
