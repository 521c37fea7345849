"""pip and pipx, with the locked wheels and no index: commands, manual pages and a verdict."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from installing.conftest import Call

PYTHON = Path(sys.executable).resolve()


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_pipx_installs_it(kind: str, dist: Path, wheel: Path, version: str, call: Call, trial: Path, home: Path,
                          offline: dict[str, str]) -> None:  # fmt: skip
    source = wheel if kind == "wheel" else dist / f"winready-{version}.tar.gz"
    # pipx wants a newer pip than Python brings; virtualenv, which pre-commit uses, has one in it.
    (carried,) = trial.parent.glob("lib/python*/site-packages/virtualenv/seed/wheels/embed")
    places = f"{offline['PIP_FIND_LINKS']} {carried}"
    environment = {**offline, "PIP_FIND_LINKS": places, "PIPX_HOME": str(home / "pipx")}
    call(trial / "pipx", "install", "--python", PYTHON, source, env=environment)
    programs = home / ".local" / "bin"
    assert {"winready", "kubectl-winready"} <= {path.name for path in programs.iterdir()}
    assert call(programs / "winready", "--version").stdout == f"winready {version}\n"
    manual = home / ".local" / "share" / "man" / "man1"
    assert (manual / "winready-run.1").is_file()
    if kind == "sdist":
        return
    result = call(programs / "winready", "run", "--sandbox", "--requirement", "N1", "--report-dir", home / "runs")
    assert "\nPass (partial: 1 of 24" in result.stdout
    if shutil.which("man") and shutil.which("groff"):
        shown = call("man", "winready-run", env={**offline, "MANPATH": str(manual.parent), "MANWIDTH": "80"}).stdout
        assert "winready-run - Verify a cluster" in shown
    call(trial / "pipx", "uninstall", "winready", env=environment)
    assert not list(programs.iterdir())
    assert not list(manual.iterdir())


def test_nothing_but_the_environment_is_left_behind(
    wheel: Path, call: Call, offline: dict[str, str], tmp_path: Path, home: Path
) -> None:
    call(PYTHON, "-m", "venv", tmp_path / "venv")
    call(tmp_path / "venv" / "bin" / "pip", "install", "--no-cache-dir", wheel, env=offline)
    assert os.listdir(home) == []
    call(tmp_path / "venv" / "bin" / "winready", "lint", "-", code=None)
    assert os.listdir(home) == []
