"""Where each cluster stands now: its newest run, how long it has been like that, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from winready.report import words
from winready.report.comparing import unjudged
from winready.report.folding import short
from winready.report.history import Entry, Outcome
from winready.report.meaning import INTERRUPTED

TREND = 24
"""So many of its runs are shown as one sign each."""
ORDER = ("failed", "error", "blocked", "not judged", "passed", "not-applicable")
LEFT = "what it had not judged by then says nothing about the cluster"


def tone(entry: Entry) -> str:
    """The outcome whose colour and sign a verdict has; an interruption is none."""
    if entry.interrupted or entry.verdict is None:
        return "blocked"
    return "passed" if entry.verdict == "Pass" else "failed"


def verdict(entry: Entry) -> str:
    """The verdict as people read it."""
    return INTERRUPTED if tone(entry) == "blocked" else entry.verdict_text


def why(entry: Entry, limit: int = 240) -> str:
    """The first cause that decided, and how many more there are; an interruption decides nothing."""
    if entry.interrupted:
        return LEFT
    if not entry.because:
        return ""
    more = f" (and {words.count(entry.causes - 1, 'more reason')})" if entry.causes > 1 else ""
    return f"{short(entry.because, limit)}{more}"


def make_states(entries: Sequence[Entry], results: Mapping[str, Mapping[str, Outcome]]) -> list[dict[str, Any]]:
    """The clusters of these runs, which come newest first; what does not pass comes before what does."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.label, []).append(entry)
    states = [_state(label, runs, results) for label, runs in groups.items()]
    return sorted(states, key=lambda state: ("failed", "blocked", "passed").index(state["tone"]))


def _state(label: str, runs: list[Entry], results: Mapping[str, Mapping[str, Outcome]]) -> dict[str, Any]:
    newest = runs[0]
    trend = [{"run": run.folder, "tone": tone(run), "title": f"{_when(run)}: {verdict(run)}"} for run in runs[:TREND]]
    counts = Counter(
        "not judged" if unjudged(item.outcome, interrupted=newest.interrupted) else item.outcome
        for item in results[newest.folder].values()
    )
    return {
        "cluster": label,
        "run": newest.folder,
        "before": runs[1].folder if len(runs) > 1 else "",
        "started": _when(newest),
        "tone": tone(newest),
        "verdict": verdict(newest),
        "why": why(newest),
        "since": _since(runs),
        "complete": _complete(runs),
        "counts": [(name, counts[name]) for name in ORDER if counts[name]],
        "version": newest.version,
        "builds": newest.builds,
        "trend": trend,
    }


def _since(runs: Sequence[Entry]) -> str:
    """How long it has been so."""
    alike = 0
    while alike < len(runs) and tone(runs[alike]) == tone(runs[0]):
        alike += 1
    if alike < 2:
        changed = f"; the run before it: {verdict(runs[1])}" if len(runs) > 1 else ""
        return f"in {'its only run' if len(runs) == 1 else 'the newest run alone'}{changed}"
    return f"in the last {alike} runs, since {_when(runs[alike - 1])}"


def _complete(runs: Sequence[Entry]) -> dict[str, str]:
    """Of a cluster whose newest run tells only a part: the newest that tells all."""
    if runs[0].scope == "complete" and not runs[0].interrupted:
        return {}
    whole = next((run for run in runs if run.scope == "complete" and not run.interrupted), None)
    if whole is None:
        return {}
    return {"run": whole.folder, "started": _when(whole), "verdict": verdict(whole), "tone": tone(whole)}


def _when(entry: Entry) -> str:
    return entry.started[:16].replace("T", " ")
