"""The part of the Common Expression Language that the embedded API server reads."""

from __future__ import annotations

from typing import Any

import pytest

from winready_sandbox.api.policing.cel import NotUnderstood, evaluate

POD: dict[str, Any] = {"spec": {"nodeSelector": {"a": "b"}, "replicas": 2, "empty": None, "list": ["x"]}}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("has(object.spec.nodeSelector)", True),
        ("has(object.spec.affinity)", False),
        ("has(object.spec.empty)", False),
        ("!has(object.spec.os) && 'a' in object.spec.nodeSelector", True),
        ("has(object.spec.os) || object.spec.nodeSelector['a'] == \"b\"", True),
        ("has(object.spec.os) && object.spec.os.name == 'windows'", False),
        ("object.spec.replicas >= 2 && object.spec.replicas < 3 && object.spec.replicas != 4", True),
        ("'x' in object.spec.list ? 'yes' : 'no'", "yes"),
        ("object.spec.list[0]", "x"),
        ("(true && (false || true))", True),
        ("{'k': [1, 2]}", {"k": [1, 2]}),
        (
            '[JSONPatch{op: "add", path: "/a~1b", value: {"c": "d"}}]',
            [{"op": "add", "path": "/a~1b", "value": {"c": "d"}}],
        ),
        (r"'it\'s' == \"it's\"".replace(r"\"", '"'), True),
        ("null == null", True),
    ],
)
def test_values(expression: str, value: Any) -> None:
    assert evaluate(expression, object=POD) == value


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "object.spec.missing.deeper",
        "object.spec.list[7]",
        "object.metadata.name.startsWith('x')",
        "size(object.spec)",
        "unknown",
        "object.spec.replicas && true",
        "!object.spec.replicas",
        "'a' < 1",
        "1 +",
        "(true",
        "[1 2]",
        "true true",
        "a ? b",
        "#",
        "object.1",
        "(" * 300 + "true" + ")" * 300,
    ],
)
def test_what_is_not_understood_is_said(expression: str) -> None:
    with pytest.raises(NotUnderstood):
        evaluate(expression, object=POD)
