"""JSON patch: RFC 6902 and the real server's refusals."""

from __future__ import annotations

from typing import Any

import pytest

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.patches import json_patch


def obj() -> dict[str, Any]:
    return {"metadata": {"labels": {"a/b": "1", "m~n": "2"}}, "spec": {"items": ["x", "y"], "n": 1}}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        ({"op": "add", "path": "/spec/items/1", "value": "z"}, ("spec", "items"), ["x", "z", "y"]),
        ({"op": "add", "path": "/spec/items/-", "value": "z"}, ("spec", "items"), ["x", "y", "z"]),
        ({"op": "replace", "path": "/spec/items/0", "value": "z"}, ("spec", "items"), ["z", "y"]),
        ({"op": "remove", "path": "/spec/items/0"}, ("spec", "items"), ["y"]),
        ({"op": "remove", "path": "/metadata/labels/a~1b"}, ("metadata", "labels"), {"m~n": "2"}),
        ({"op": "add", "path": "/metadata/labels/m~0n", "value": "3"}, ("metadata", "labels", "m~n"), "3"),
        ({"op": "move", "from": "/spec/n", "path": "/spec/m"}, ("spec",), {"items": ["x", "y"], "m": 1}),
        ({"op": "copy", "from": "/spec/items", "path": "/spec/n"}, ("spec", "n"), ["x", "y"]),
        ({"op": "test", "path": "/spec/n", "value": 1}, ("spec", "n"), 1),
        ({"op": "test", "path": "/spec/absent", "value": None}, ("spec", "n"), 1),
    ],
)
def test_operations(operation: dict[str, Any], path: tuple[str, ...], expected: object) -> None:
    before = obj()
    value: Any = json_patch(before, [operation])
    for step in path:
        value = value[step]
    assert value == expected
    assert before == obj()


@pytest.mark.parametrize(
    ("operation", "cause"),
    [
        ({"op": "test", "path": "/spec/n", "value": 2}, "testing value /spec/n failed: test failed"),
        (
            {"op": "remove", "path": "/spec/absent"},
            "error in remove for path: '/spec/absent': Unable to remove nonexistent key: absent: missing value",
        ),
        (
            {"op": "replace", "path": "/no/where", "value": 1},
            "replace operation does not apply: doc is missing path: /no/where: missing value",
        ),
        (
            {"op": "add", "path": "/no/where", "value": 1},
            'add operation does not apply: doc is missing path: "/no/where": missing value',
        ),
        (
            {"op": "add", "path": "/spec/items/7", "value": 1},
            "Unable to access invalid index: 7: invalid index referenced",
        ),
        ({"op": "fly", "path": "/spec"}, "Unexpected kind: fly"),
        ({"op": "add", "value": 1}, "operation missing path field: missing value"),
        ({"op": "move", "path": "/spec/x"}, "operation, missing from field: missing value"),
    ],
)
def test_what_cannot_be_done_is_422(operation: dict[str, Any], cause: str) -> None:
    with pytest.raises(ApiError) as caught:
        json_patch(obj(), [{"op": "add", "path": "/spec/first", "value": 1}, operation])
    assert caught.value.code == 422
    assert caught.value.message == "the server rejected our request due to an error in our request"
    assert str(caught.value.__cause__) == cause


def test_replacing_what_is_not_there_adds_it_as_with_the_real_server() -> None:
    assert json_patch(obj(), [{"op": "replace", "path": "/spec/absent", "value": 1}])["spec"]["absent"] == 1


def test_a_patch_that_is_no_list_is_400() -> None:
    with pytest.raises(ApiError) as caught:
        json_patch(obj(), {"op": "add"})
    assert caught.value.code == 400


def test_too_many_operations_are_413() -> None:
    with pytest.raises(ApiError) as caught:
        json_patch(obj(), [{"op": "test", "path": "/spec/n", "value": 1}] * 10_001)
    assert caught.value.code == 413
