"""Whatever JSON arrives, defaults and validation answer and do not break."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from winready_sandbox.api.defaults import apply_defaults
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.pod_defaults import tolerate_node_trouble
from winready_sandbox.api.shapes import conform
from winready_sandbox.api.validation import validate

CASES = yaml.safe_load((Path(__file__).parent.parent / "data" / "refused.yaml").read_text())
ODD: list[Any] = [None, True, 0, -1, 1.5, "", "x/y/z", "50%", [], {}, [None], [[]], [3], {"name": 3}, [{"name": None}]]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything in an object."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [found for key, item in items for found in [(*path, key), *places(item, (*path, key))]]


def damaged(obj: dict[str, Any], choice: int, value: Any) -> dict[str, Any]:
    result = copy.deepcopy(obj)
    paths = places(result)
    if paths:
        *way, last = paths[choice % len(paths)]
        holder: Any = result
        for step in way:
            holder = holder[step]
        holder[last] = copy.deepcopy(value)
    return result


@given(st.sampled_from(CASES), st.integers(0, 1000), st.sampled_from(ODD), st.sampled_from([23, 31, 36]))
@settings(max_examples=150, deadline=None)
def test_damaged_objects_get_an_answer(case: dict[str, Any], choice: int, value: Any, minor: int) -> None:
    kind, group = case["kind"], case.get("group", "")
    old = case.get("old", case["object"])
    broken = damaged(case["object"], choice, value)
    code = 200
    try:
        conform(f"{group}/v1" if group else "v1", kind, broken)
    except ApiError as error:
        code = error.code
    assert code in (200, 400)
    apply_defaults(kind, group, broken)
    if kind == "Pod" and isinstance(broken.get("spec"), dict):
        tolerate_node_trouble(broken)
    validate(kind, group, broken, None, minor)
    validate(kind, group, broken, old, minor)
    validate(kind, group, old, broken, minor)
