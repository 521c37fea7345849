"""The product's own patterns against texts made to hurt them: none goes back so often that a long text stops it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fuzz import attacking

ROOT = Path(__file__).resolve().parents[2]
SIZE = 20_000
"""Characters: what goes over them once takes a thousandth of the time below, what begins anew at each far more."""
SECONDS = 0.5
"""Of the processor for one pattern and text; the system ends whoever takes more."""
MADE = {
    "winready/cluster/directory.py: form",  # one of FORMS, which is tried
    "winready/engine/workloads.py: f'(?<![\\\\w.-]){re.escape(node)}(?![\\\\w-])'",  # repeats nothing
    "winready/lint/catalog.py: wanted",  # of the rules, which are tried
    "winready/lint/matrix.py: f'(?<![a-z0-9]){re.escape(word)}'",  # repeats nothing
    "winready/upstream/explained.py: '|'.join(self.match)",  # of specs.yaml, which is tried
    "winready/upstream/patterns.py: text",  # of a stranger, and has at most one repetition
}
"""Patterns that are put together while the program runs, and why each is harmless."""


def tried(*arguments: str) -> subprocess.CompletedProcess[str]:
    """All patterns, in a process that the system may end."""
    command = [sys.executable, "-m", "fuzz.attacking", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_no_pattern_of_ours_stumbles_over_a_long_text() -> None:
    ended = tried(str(SECONDS), str(SIZE))
    assert ended.returncode == 0, f"{ended.stdout.splitlines()[-1]} {ended.stderr}"
    assert ended.stdout.endswith("done\n")


def test_every_pattern_that_is_made_at_run_time_is_known() -> None:
    found, made = attacking.uses()
    assert len(found) > 100
    assert set(made) == MADE


def test_a_pattern_that_goes_back_too_often_would_be_noticed() -> None:
    use = attacking.Use("here", r"(?:a+)+b", 0, frozenset({"search"}))
    code = "import signal\nfrom fuzz import attacking\nsignal.setitimer(signal.ITIMER_PROF, 1)\n"
    code += f"attacking.apply({use!r}, 'a' * 60)"
    code = code.replace("Use(", "attacking.Use(")
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == -27, ended.stderr  # SIGPROF
    assert any("aaa" in text for text in attacking.attacks(use, 60))
