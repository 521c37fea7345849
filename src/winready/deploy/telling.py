"""A run in the few bytes that Kubernetes has for it: an annotation, an event, the last words of a container."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from winready.engine.outcomes import RequirementResult
from winready.report.exposition import cut as cut
from winready.report.exposition import line as line
from winready.report.record import Record
from winready.report.words import MARKS, count, leftovers_line

LAST_WORDS = 4096
"""Bytes that a kubelet reads of a termination message."""
EVENT = 1000
"""Bytes; an API server takes 1024."""
ANNOTATION = 1000
REASON = 400
"""Bytes of a reason in a summary of all requirements."""
SUMMARY = 128 * 1024
"""Bytes of a form of the summary; a ConfigMap holds eight times as much."""


def progress(record: Record) -> str:
    """How far it is."""
    counts = Counter(item.outcome for item in record.requirements)
    found = ", ".join(f"{number} {outcome}" for outcome, number in counts.most_common())
    return f"{len(record.requirements)} of {len(record.selected)} judged" + (f": {found}" if found else "")


def verdict(record: Record, *, finished: bool) -> str:
    """The verdict in a line, also of a run that has none."""
    if not finished:
        return "Unfinished"
    return line(record.verdict_text, ANNOTATION)


def last_words(record: Record, *, finished: bool) -> str:
    """What the container leaves: verdict, run, and as many reasons as there is room for."""
    lines = [verdict(record, finished=finished), f"run {record.run_id}, {progress(record)}"]
    if finished:
        lines += [line(leftovers_line(record), REASON)] if record.leftovers else ["the cluster was cleaned up"]
        lines += [line(reason, REASON) for reason in record.verdict_reasons]
    else:
        lines.append("the container ended before there was a verdict; 'winready cleanup' removes what it left behind")
    return _fitting(lines, LAST_WORDS)


def summary(record: Record, *, finished: bool) -> dict[str, str]:
    """The content of the ConfigMap: for people, and for machines."""
    text = [verdict(record, finished=finished), f"run {record.run_id}, {progress(record)}", ""]
    for item in record.requirements:
        row = f"{MARKS[item.outcome]} {item.id:<48} {item.outcome}"
        text.append(row if item.outcome == "passed" else f"{row}  {line(item.reason, REASON)}")
    text += [
        f"{MARKS[rule.outcome]} {rule.id:<48} {rule.outcome}  {line(rule.reason, REASON)}"
        for rule in record.rules
        if rule.gates == "run" and rule.outcome != "passed"
    ]
    text += [f"left behind: {line(left, REASON)}" for left in record.leftovers[:50]]
    return {
        "verdict": verdict(record, finished=finished),
        "run": record.run_id,
        "progress": progress(record),
        "summary.txt": _fitting(text, SUMMARY),
        "summary.json": _document(record, finished=finished),
    }


def _document(record: Record, *, finished: bool) -> str:
    document: dict[str, Any] = {
        "run": record.run_id,
        "tool": record.tool,
        "started": record.started,
        "duration_s": record.duration_s,
        "finished": finished,
        "verdict": record.verdict if finished else None,
        "verdict_text": verdict(record, finished=finished),
        "exit_code": record.exit_code if finished else None,
        "scope": record.scope,
        "simulated": record.simulated,
        "leftovers": len(record.leftovers),
        "requirements": [
            {
                "id": item.id,
                "level": item.level,
                "outcome": item.outcome,
                "duration_s": item.duration_s,
                "reason": line(item.reason, REASON) if item.outcome != "passed" else "",
            }
            for item in record.requirements
        ],
        "rules": [
            {"id": rule.id, "outcome": rule.outcome, "reason": line(rule.reason, REASON), "waived_by": rule.waived_by}
            for rule in record.rules
        ],
    }
    while len(data := msgspec.json.encode(document)) > SUMMARY:
        # Never half a document: what does not fit is left out and counted.
        left = document["requirements"]
        document["requirements_left_out"] = document.get("requirements_left_out", 0) + len(left) - len(left) // 2
        document["requirements"] = left[: len(left) // 2]
    return data.decode()


def result_event(result: RequirementResult) -> str:
    """A requirement that did not pass, in the words of an event."""
    words = f"{result.id} {result.outcome}: {result.reason}"
    if result.next_step:
        words = f"{words.rstrip('. ')}. Next step: {result.next_step}"
    return line(words, EVENT)


def verdict_event(record: Record) -> str:
    """The verdict in the words of an event."""
    words = f"{verdict(record, finished=True)}; run {record.run_id}, {progress(record)}"
    if record.verdict_reasons:
        words += f". First of {count(len(record.verdict_reasons), 'reason')}: {record.verdict_reasons[0]}"
    return line(words, EVENT)


def _fitting(lines: list[str], limit: int) -> str:
    """As many lines as there is room for; how many there were besides is the last one."""
    room = limit - len(b"and 100000 more lines\n")
    kept: list[str] = []
    for number, text in enumerate(lines):
        room -= len(text.encode()) + 1
        if room < 0:
            return "\n".join([*kept, f"and {count(len(lines) - number, 'more line')}"]) + "\n"
        kept.append(text)
    return "\n".join(kept) + "\n"
