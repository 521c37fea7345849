"""The layout that Prow writes and TestGrid reads: a job's start, its end, its log and its JUnit files."""

from __future__ import annotations

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
    artifacts = folder / "artifacts"
    artifacts.mkdir(parents=True, exist_ok=True)
    start = _time(run.started)
    end = start + timedelta(seconds=run.duration_s)
    result = "SUCCESS" if run.verdict == "Pass" else "ABORTED" if run.interrupted else "FAILURE"
    version = run.cluster.version if run.cluster else ""
    metadata = {"run": run.run_id, "verdict": run.verdict_text, "tool": run.tool, "kubernetes": version}
    _json(folder / "started.json", {"timestamp": int(start.timestamp())})
    _json(
        folder / "finished.json",
        {"timestamp": int(end.timestamp()), "passed": run.verdict == "Pass", "result": result, "metadata": metadata},
    )
    lines = [*words.cluster_lines(run), "", *(words.result_line(item) for item in run.requirements), ""]
    lines += [line for _, line in words.summary_lines(run)]
    (folder / "build-log.txt").write_text(printable("\n".join(lines) + "\n"), encoding="utf-8")
    (artifacts / "junit_winready.xml").write_text(junit.render(run), encoding="utf-8")
    record.write(run, artifacts)
    (artifacts / page.NAME).write_text(page.render(run), encoding="utf-8")


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text or "1970-01-01T00:00:00+00:00")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _json(path: Path, document: dict[str, Any]) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
