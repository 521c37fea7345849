"""Expressions of admission policies: what they mean, and that whatever is not known is an error."""

from __future__ import annotations

from typing import Any

import pytest

from winready_sandbox.api.policing.cel import CelError, evaluate

OBJECT = {"metadata": {"name": "a", "labels": {"app.kubernetes.io/x": "y"}}, "spec": {"list": [1, 2, 3], "on": True}}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3 == 7 && !(2 > 3)", True),
        ("-2 + 5", 3),
        ("7 / 2 + 7 % 2", 4),
        ("'a' + \"b\" == 'ab'", True),
        (r"'\\\'' + r'\n'", "\\'\\n"),
        ("object.spec.on ? 'yes' : 'no'", "yes"),
        ("has(object.spec) && has(object.spec.on) && !has(object.spec.off)", True),
        ("object.metadata.labels['app.kubernetes.io/x']", "y"),
        ("'app.kubernetes.io/x' in object.metadata.labels", True),
        ("2 in object.spec.list", True),
        ("object.spec.list.all(n, n > 0)", True),
        ("object.spec.list.exists(n, n == 3)", True),
        ("object.spec.list.exists_one(n, n > 1)", False),
        ("object.spec.list.filter(n, n != 2).map(n, n + 1)", [2, 4]),
        ("size(object.spec.list) == object.spec.list.size()", True),
        ("[1, 2] + [3] == object.spec.list", True),
        (
            "object.metadata.name.matches('^[a-z]$') && 'Ab'.lowerAscii() == 'ab' && 'a/b'.replace('/', '-') == 'a-b'",
            True,
        ),
        ("'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b')", True),
        ("true || object.nothing.there", True),
        ("object.nothing.there || true", True),
        ("false && object.nothing.there", False),
        ("[].exists(n, n.x) || [].all(n, n.x)", True),
        ("1 == true || '1' == 1", False),
        ("null == null", True),
        ("{'k': [1, 2], 'l': {}}['k'][1]", 2),
        (
            '[JSONPatch{op: "add", path: "/a~1b", value: {"c": object.metadata.name}}]',
            [{"op": "add", "path": "/a~1b", "value": {"c": "a"}}],
        ),
    ],
)
def test_an_expression_means(expression: str, value: Any) -> None:
    assert evaluate(expression, {"object": OBJECT}) == value


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("object.spec.off", "no such key: off"),
        ("has(object.nothing.there)", "no such key: nothing"),
        ("object.spec.list[7]", "index out of bounds: 7"),
        ("object.spec.list && true", "no such overload"),
        ("'a' + 1", "no such overload"),
        ("1 / 0", "no such overload"),
        ("other.spec", "undeclared reference to 'other'"),
        ("object.format('x')", "undeclared reference to 'format'"),
        ("dyn(object)", "undeclared reference to 'dyn'"),
        ("object.", "Syntax error"),
        ("(1 + 2", "Syntax error"),
        ("1 2", "Syntax error"),
        ("a # b", "Syntax error"),
        ("has(object)", "invalid argument to has()"),
        ("'a'.matches('(')", "error parsing regexp"),
        ("{'a' 1}", "Syntax error"),
        ("JSONPatch{'op': 1}", "Syntax error"),
        ("(" * 300 + "true" + ")" * 300, "recursion limit"),
    ],
)
def test_what_has_no_value_is_said(expression: str, words: str) -> None:
    with pytest.raises(CelError, match=words.replace("(", r"\(").replace(")", r"\)")):
        evaluate(expression, {"object": OBJECT})
