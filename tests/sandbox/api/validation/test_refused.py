"""Every object of ``data/refused.yaml`` is refused in the words of the real API server."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from winready_sandbox.api.defaults import apply_defaults
from winready_sandbox.api.validation import validate

CASES = yaml.safe_load((Path(__file__).parent.parent / "data" / "refused.yaml").read_text())


def complete(case: dict[str, Any], which: str) -> dict[str, Any]:
    obj: dict[str, Any] = copy.deepcopy(case[which])
    obj["kind"] = case["kind"]
    metadata = obj.setdefault("metadata", {})
    metadata.setdefault("name", "x")
    metadata.setdefault("uid", "u")
    apply_defaults(case["kind"], case.get("group", ""), obj)
    return obj


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case['kind']}" for i, case in enumerate(CASES)])
def test_refused_in_the_words_of_the_real_server(case: dict[str, Any]) -> None:
    old = complete(case, "old") if "old" in case else None
    found = validate(case["kind"], case.get("group", ""), complete(case, "object"), old)
    assert sorted(f"{error.field}: {error.message}" for error in found) == sorted(case["errors"])
