"""Whatever files lie where the user stands, no process of winready imports them.

The command is started by its console script: ``python -m`` itself would look into the folder first.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import SPEED, CommandLine

PROGRAM = Path(sys.executable).with_name("winready")
TRAPS = ("msgspec.py", "multiprocessing/__init__.py", "winready/__init__.py", "winready_sandbox/__init__.py")
Run = Callable[..., str]


@pytest.fixture
def sprung(tmp_path: Path) -> Callable[[], list[str]]:
    """Lays the traps; tells which of them were imported."""
    for name in TRAPS:
        trap = tmp_path / "here" / name
        trap.parent.mkdir(parents=True, exist_ok=True)
        trap.write_text(f"open({str(tmp_path / trap.parent.name)!r} + {trap.stem!r}, 'w')\n")
    return lambda: sorted(path.name for path in tmp_path.iterdir() if path.is_file())


@pytest.fixture
def here(command_line: CommandLine, tmp_path: Path, sprung: Callable[[], list[str]]) -> Run:
    """Runs a command among the traps; its output."""

    def run(*arguments: str) -> str:
        environment = command_line.environment()
        environment.pop("PYTHONSAFEPATH", None)
        result = subprocess.run(
            [PROGRAM, *arguments], cwd=tmp_path / "here", env=environment, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return run


def test_python_itself_would_walk_into_them(tmp_path: Path, sprung: Callable[[], list[str]]) -> None:
    subprocess.run([sys.executable, "-c", "import msgspec, winready"], cwd=tmp_path / "here", check=True)
    assert sprung() == ["heremsgspec", "winready__init__"]


def test_proving_imports_nothing_from_there(here: Run, sprung: Callable[[], list[str]]) -> None:
    assert "0 missed" in here("sandbox", "prove", "--category", "core.scheduling", "--fault", "api.slow")
    assert sprung() == []


def test_a_detached_sandbox_imports_nothing_from_there(here: Run, sprung: Callable[[], list[str]]) -> None:
    here("sandbox", "up", "--detach", "--name", "among-traps")
    assert here("sandbox", "down", "--name", "among-traps") == "Stopped: among-traps\n"
    assert sprung() == []


def test_a_run_with_a_sandbox_of_its_own_imports_nothing_from_there(
    here: Run, tmp_path: Path, sprung: Callable[[], list[str]]
) -> None:
    selected = ["--requirement", "core.network.distinct-pod-ips", "--speed", SPEED]
    assert "1 passed" in here("run", "--sandbox", *selected, "--report-dir", str(tmp_path / "runs"))
    assert sprung() == []
