"""The record of what containers execute: by namespace, each thing once, and nothing unless it is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from winready_sandbox.programs import record

ROOT = Path(__file__).parents[3]
PROBE = """
import asyncio
from sandbox.helpers.containers import cmd, container, powershell, run, sh

async def main():
    where = container()
    where.pod = "shop/web-1"
    await sh(where, "ls -d /tmp; ls -d /tmp; exit 3")
    await cmd(where, "dir /b C:\\\\")
    await powershell(where, "ls C:\\\\bin; [guid]::NewGuid().ToString()")
    await run(where, "curl.exe", "-sS", "--max-time", "1", "gopher://x")
    await run(where, "/agnhost", "connect", "--timeout=1s", "nowhere")

asyncio.run(main())
"""


def _run(folder: Path, environment: dict[str, str]) -> None:
    values = {**os.environ, **environment, "PYTHONPATH": str(ROOT / "tests")}
    subprocess.run([sys.executable, "-c", PROBE], check=True, timeout=100, env=values, cwd=folder)


def test_programs_applets_built_ins_cmdlets_and_options_are_noted_once_per_namespace(tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    _run(tmp_path, {record.VARIABLE: str(file)})
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["namespace"] for line in lines} == {"shop"}
    texts = [" ".join([line["kind"], line["name"], *line["options"]]) for line in lines]
    assert len(texts) == len(set(texts))
    assert {
        "program busybox",
        "applet sh",
        "applet ls d",
        "sh exit",
        "cmd dir /b",
        "cmdlet Get-ChildItem path",
        "alias ls",
        "static guid::newguid",
        "method tostring",
        "program curl max-time show-error silent",
        "agnhost connect --timeout",
    } <= set(texts)


def test_nothing_is_noted_unless_asked_for(tmp_path: Path) -> None:
    assert record.VARIABLE not in os.environ
    _run(tmp_path, {})
    assert list(tmp_path.iterdir()) == []
