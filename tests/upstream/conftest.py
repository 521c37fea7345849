"""A sandbox for upstream tests, and programs that behave like e2e.test."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import cluster, command_line, kubeconfig
from winready.spec.versions import Version
from winready.upstream.mapping import load_mapping

__all__ = ["cluster", "command_line", "kubeconfig"]

FAKE = Path(__file__).with_name("fake_e2e.py")
PASSES: dict[str, Any] = {"end": "pass", "os": "windows", "hold": 0.3}
MakeE2e = Callable[..., Path]


def text_of(test: str, version: str = "1.36") -> str:
    """The text of a mapped test."""
    text = load_mapping().tests[test].text(Version.parse(version))
    assert text is not None
    return text


@pytest.fixture
def make_e2e(tmp_path: Path) -> MakeE2e:
    """Makes a program that has every mapped spec, passing on Windows unless told otherwise by name of the test."""

    def make(behaviours: dict[str, dict[str, Any]], *, version: str = "v1.36.3", **more: Any) -> Path:
        folder = tmp_path / "e2e"
        folder.mkdir(exist_ok=True)
        specs: dict[str, Any] = {}
        for name, test in load_mapping().tests.items():
            if text := test.text(Version.parse(version)):
                specs[text] = behaviours.get(name, PASSES)
        specs |= {name: behaviour for name, behaviour in behaviours.items() if name.startswith("[sig-")}
        dropped = more.pop("without", ())
        script = {"version": version, "specs": {key: specs[key] for key in specs if key not in dropped}, **more}
        (folder / "script.json").write_text(json.dumps(script))
        program = folder / "e2e.test"
        program.write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
        program.chmod(0o755)
        return program

    return make
