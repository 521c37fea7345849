"""Manifests that are no manifests: whatever stands where, lint answers and does not break."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lint.cases import CASES
from winready.lint.run import Run, Settings

JUNK: tuple[Any, ...] = (None, 0, -1, 1.5, True, "", "x", "windows", [], [None], ["x"], [[]], {}, {"x": None}, [{}])


def documents() -> list[dict[str, Any]]:
    listed = [one for case in CASES.values() for one in (case.bad if isinstance(case.bad, list) else [case.bad])]
    return [one for one in listed if isinstance(one, dict)]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(one, (*path, key))


def replaced(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    parent = copy
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    return copy


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("junk") / "junk.yaml"


@pytest.mark.parametrize("value", JUNK, ids=repr)
def test_junk_in_every_place(value: Any, file: Path) -> None:
    seen: set[str] = set()
    for document in documents():
        for path in places(document):
            if path and path[0] not in ("apiVersion", "kind"):
                seen.add(json.dumps(replaced(document, path, value)))
    file.write_text("---\n" + "\n---\n".join(sorted(seen)[:: max(1, len(seen) // 150)]))
    for one in Run([str(file)], Settings()).results():
        assert one.line >= 1


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.data())
def test_random_text_in_manifests(file: Path, data: st.DataObject) -> None:
    document = data.draw(st.sampled_from(documents()))
    text = json.dumps(document, indent=1)
    at = data.draw(st.integers(0, len(text)))
    file.write_text(text[:at] + data.draw(st.text("{}[]:,\"'\n -#&*x\\", max_size=6)) + text[at:])
    for one in Run([str(file)], Settings()).results():
        assert one.line >= 1
