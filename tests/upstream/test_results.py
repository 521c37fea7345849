"""How a spec ended is put together from report, output and the end of its process; deadlines are kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from winready.upstream.binary import Binary
from winready.upstream.flags import Invocation
from winready.upstream.junit import Case, Status
from winready.upstream.output import Follower
from winready.upstream.process import Ended, run_process
from winready.upstream.suite import Result, put_together

TEXT = "[sig-a] one works"
BEGAN = f"------------------------------\n{TEXT} [sig-a]\n/src/one.go:61\n"


def case(status: Status, message: str = "", state: str = "") -> Case:
    return Case(TEXT, status, state or status, 2.0, message, "", False)


def end(heard: str = "", reported: Case | None = None, code: int | None = 0, **more: Any) -> Result:
    follower = Follower([TEXT], lambda seen: None)
    follower.feed(heard.encode())
    ended = Ended(code, more.pop("why", ""), follower, cases={TEXT: reported} if reported else {}, **more)
    return put_together(Result("one", TEXT, "unfinished"), TEXT, ended)


@pytest.mark.parametrize(
    ("result", "status", "says"),
    [
        (end(BEGAN, case("passed")), "passed", ""),
        (end(BEGAN, case("failed", "no answer", "timedout"), 1), "failed", "no answer"),
        (end("", case("skipped", "no class")), "skipped", "no class"),
        (end("", case("skipped", "skipped")), "skipped", "did not run it"),
        (end("", case("skipped", "skipped"), 1), "unfinished", "exit code 1 before it began"),
        (end(f"{BEGAN}• [1.000 seconds]\n", None, None, why="its 9 s were over"), "passed", ""),
        (end(f"{BEGAN}• [FAILED] [1.000 seconds]\n", None, 137), "failed", "[FAILED]"),
        (end(BEGAN, None, None, why="its 9 s were over"), "unfinished", "was at it when its 9 s were over"),
        (end("", None, None, why="its 9 s were over"), "unfinished", "its 9 s were over, before it began"),
        (end(BEGAN, case("failed", "", "interrupted"), None, stopped=True), "unfinished", "stopped while it was at it"),
        (end("", None, 1, suite_problems=["[BeforeSuite]: no nodes"]), "crashed", "itself failed: [BeforeSuite]"),
        (end("", None, 2, last_words="panic: oh"), "crashed", "exit code 2: panic: oh"),
    ],
)
def test_each_end_has_its_status_and_words(result: Result, status: str, says: str) -> None:
    assert result.status == status
    assert says in result.message


async def test_a_process_that_keeps_no_time_is_ended_for_sure(tmp_path: Path) -> None:
    program = tmp_path / "e2e.test"
    program.write_text(f"#!/bin/sh\ntrap '' TERM\nprintf '{BEGAN}'\nwhile :; do sleep 0.1; done\n")
    program.chmod(0o755)
    call = Invocation(tmp_path / "kubeconfig", tmp_path, [TEXT], deadline=0.1)
    log = tmp_path / "output.log"
    ended = await run_process(
        Binary(program, "v1.36.0"), call, log, print, stopping=asyncio.Event(), started=print, grace=0.3
    )
    assert ended.exit_code is None
    assert ended.why == "its 0.1 s were over"
    assert not ended.stopped
