"""The journal: whole lines or none, whatever cuts it short, and one writer at a time."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import winready
from report.samples import run_events, written_journal
from winready.engine import journal
from winready.engine.journal import Journal, Unreadable

TOLD = run_events()
LINES = [msgspec.json.encode(event) + b"\n" for event in TOLD]


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    with written_journal(tmp_path) as written:
        for event in TOLD:
            written.handle(event)
    assert (tmp_path / journal.NAME).read_bytes() == b"".join(LINES)
    assert journal.read(tmp_path) == TOLD


def test_a_write_that_the_disk_cuts_short_is_an_error_and_loses_no_earlier_line(tmp_path: Path) -> None:
    room = len(LINES[0]) + len(LINES[1]) // 2
    with written_journal(tmp_path) as written:
        written.handle(TOLD[0])
        with no_file_larger_than(room), pytest.raises(OSError, match="File too large"):
            written.handle(TOLD[1])
    assert (tmp_path / journal.NAME).read_bytes() == b"".join(LINES)[:room]
    assert journal.read(tmp_path) == TOLD[:1]


def test_wherever_a_kill_cuts_the_last_line_the_others_are_read() -> None:
    head = b"".join(LINES[:2])
    for cut in range(len(LINES[2])):
        whole = cut == len(LINES[2]) - 1
        assert journal.parse(head + LINES[2][:cut], "a journal") == TOLD[: 3 if whole else 2]


@pytest.mark.parametrize("junk", [b"", b"{}", b"\xff", b'{"event": "from the future"}', b"[" * 100_000])
def test_a_line_that_is_no_event_is_named(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / journal.NAME
    path.write_bytes(LINES[0] + junk + b"\n" + LINES[1])
    with pytest.raises(Unreadable, match=r"journal\.jsonl, line 2 is no event of this version"):
        journal.read(tmp_path)


def test_a_journal_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"journal\.jsonl cannot be read: No such file"):
        journal.read(tmp_path)


def test_a_run_is_in_progress_as_long_as_somebody_writes_its_journal(tmp_path: Path) -> None:
    assert not journal.in_progress(tmp_path)
    with written_journal(tmp_path) as written:
        assert journal.in_progress(tmp_path)
        written.handle(TOLD[0])
        assert journal.in_progress(tmp_path)
    assert not journal.in_progress(tmp_path)


def test_nothing_is_written_before_the_start(tmp_path: Path) -> None:
    written = Journal(tmp_path)
    with pytest.raises(RuntimeError, match="not started"):
        written.handle(TOLD[0])
    written.close()
    assert list(tmp_path.iterdir()) == []


def test_journals_are_read_in_one_place() -> None:
    package = Path(winready.__file__).parent
    readers = [path for path in package.rglob("*.py") if re.search(r"decode\(.*AnyEvent", path.read_text())]
    assert [str(path.relative_to(package)) for path in readers] == ["engine/journal.py"]
