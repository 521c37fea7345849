"""Finding the fields that rules look at, in one walk.

All paths of all rules for a kind become one tree, and an object is followed along it: the cost is that of the fields
which the object and the rules have in common, not of the number of rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from winready.lint.catalog import Rule, Test
from winready.spec.yamlfile import Path

CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")

_STEP = re.compile(r"\[\*\]|\[([^\]]+)\]|([^.\[\]]+)")


class Fields:
    """The tree of one kind; ``hits`` walks an object along it."""

    __slots__ = ("children", "each", "prefixes", "tests")

    def __init__(self) -> None:
        self.children: dict[str, Fields] = {}
        self.prefixes: list[tuple[str, Fields]] = []
        self.each: Fields | None = None
        self.tests: list[tuple[Rule, Test]] = []

    def add(self, pattern: str, rule: Rule, test: Test) -> None:
        """Let ``rule`` test the fields that match ``pattern``."""
        for steps in expand(pattern):
            node = self
            for step in steps:
                node = node._step(step)
            node.tests.append((rule, test))

    def _step(self, step: str) -> Fields:
        if step == "[*]":
            self.each = self.each or Fields()
            return self.each
        if step.endswith("*"):
            for prefix, node in self.prefixes:
                if prefix == step[:-1]:
                    return node
            node = Fields()
            self.prefixes.append((step[:-1], node))
            return node
        return self.children.setdefault(step, Fields())

    def hits(self, value: Any, path: Path = ()) -> Iterator[tuple[Rule, Path]]:
        """Every rule whose test a field passes, with the path of the field."""
        for rule, test in self.tests:
            if test(value):
                yield rule, path
        if isinstance(value, dict):
            for key, node in self.children.items():
                if key in value:
                    yield from node.hits(value[key], (*path, key))
            for prefix, node in self.prefixes:
                for key in value:
                    if key.startswith(prefix):
                        yield from node.hits(value[key], (*path, key))
        elif self.each is not None and isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.each.hits(item, (*path, index))


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
