"""The layout that Prow writes and TestGrid reads: a job's start, its end, its log and its JUnit files."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from winready.report import junit, record, words
from winready.report.html import page
from winready.report.printable import printable
from winready.report.record import Record


def write(run: Record, folder: Path) -> None:
    """Write the run as one build of a job into ``folder``."""
    for name, content in files(run).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def files(run: Record) -> dict[str, bytes]:
    """The run as one build of a job, by path; ``finished.json`` is last, and whoever finds it finds all."""
    start = _time(run.started)
    end = start + timedelta(seconds=run.duration_s)
    result = "SUCCESS" if run.verdict == "Pass" else "ABORTED" if run.interrupted else "FAILURE"
    version = run.cluster.version if run.cluster else ""
    metadata = {"run": run.run_id, "verdict": run.verdict_text, "tool": run.tool, "kubernetes": version}
    lines = [*words.cluster_lines(run), "", *(words.result_line(item) for item in run.requirements), ""]
    lines += [line for _, line in words.summary_lines(run)]
    return {
        "started.json": _json({"timestamp": int(start.timestamp())}),
        "build-log.txt": printable("\n".join(lines) + "\n").encode(),
        "artifacts/junit_winready.xml": junit.render(run).encode(),
        f"artifacts/{record.NAME}": record.encode(run),
        f"artifacts/{page.NAME}": page.render(run).encode(),
        "finished.json": _json(
            {"timestamp": int(end.timestamp()), "passed": run.verdict == "Pass", "result": result, "metadata": metadata}
        ),
    }


def build(run_id: str) -> str:
    """The number of a build: Prow's own where it says one, else one that grows with time as the ids of runs do."""
    if (given := os.environ.get("BUILD_ID", "")).isdecimal() and given.isascii() and len(given) <= 40:
        return given
    day, time, rest = run_id.split("-")
    return f"{day}{time}{int(rest, 16):05d}"


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text or "1970-01-01T00:00:00+00:00")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _json(document: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
