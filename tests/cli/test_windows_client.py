"""Where Python lacks what only Linux and macOS have: what can be done is done, the rest is a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ABSENT = "import sys; sys.modules.update(dict.fromkeys(('fcntl', 'pwd', 'grp', 'termios', 'resource'))); "


def winready(*words: str) -> subprocess.CompletedProcess[str]:
    probe = ABSENT + f"sys.argv = {['winready', *words]!r}; from winready.__main__ import main; main()"
    return subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize("words", [["lint", "examples/aspnet-web"], ["spec", "list"], ["matrix"], ["man", "run"]])
def test_what_needs_no_lock_works(words: list[str]) -> None:
    result = winready(*words)
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_a_run_says_where_it_can_be_made(tmp_path: Path) -> None:
    result = winready("run", "--sandbox", "--report-dir", str(tmp_path))
    assert result.returncode == 2
    assert result.stderr == "error: this command needs Linux or macOS; on Windows run it in WSL or a container\n"
