"""Sending a run while it goes on: the run never waits, and what a store does not take is brought later."""

from __future__ import annotations

from pathlib import Path

from report import samples
from store.test_remote import Stub
from store.test_remote import stub as stub
from winready.engine.journal import Journal
from winready.report.sharing.pushing import SENT, push
from winready.report.sharing.sending import Sender
from winready.store.addresses import parse
from winready.store.errors import NoSuchPlace
from winready.store.objects import open_place

RUN = "261101-100000-aaaa"


def sent(place: Path, folder: Path, said: list[str]) -> Sender:
    """A run of a few events, followed to its end."""
    folder.mkdir(parents=True)
    sender = Sender(open_place(parse(f"file://{place}")), folder, said.append, pause=0.0)
    journal = Journal(folder)
    for handler in (journal, sender):
        handler.start()
    for event in samples.run_events(RUN):
        journal.handle(event)
        sender.handle(event)
    journal.close()
    return sender


def story(place: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((place / RUN).glob("journal-*")))


def test_the_journal_arrives_in_parts_that_are_the_journal(tmp_path: Path) -> None:
    place, folder, said = tmp_path / "share", tmp_path / "runs" / RUN, list[str]()
    place.mkdir()
    assert sent(place, folder, said).finish()
    assert story(place) == (folder / "journal.jsonl").read_bytes()
    assert (folder / SENT).exists()
    assert said == []


def test_a_place_that_is_not_there_is_said_once_and_leaves_everything_for_later(tmp_path: Path) -> None:
    place, folder, said = tmp_path / "share", tmp_path / "runs" / RUN, list[str]()
    sender = sent(place, folder, said)
    assert not sender.finish()
    assert isinstance(sender.trouble, NoSuchPlace)
    assert len(said) == 1
    assert "the verdict does not depend on it" in said[0]
    assert not (folder / SENT).exists()
    place.mkdir()
    push(open_place(parse(f"file://{place}")), folder)
    assert story(place) == (folder / "journal.jsonl").read_bytes()


def test_two_who_send_the_same_run_do_no_harm(tmp_path: Path) -> None:
    place, folder, said = tmp_path / "share", tmp_path / "runs" / RUN, list[str]()
    place.mkdir()
    sender = sent(place, folder, said)
    push(open_place(parse(f"file://{place}")), folder)
    assert sender.finish()
    assert story(place) == (folder / "journal.jsonl").read_bytes()


def test_a_store_that_never_answers_does_not_hold_the_run(tmp_path: Path, stub: Stub) -> None:
    folder, said = tmp_path / "runs" / RUN, list[str]()
    folder.mkdir(parents=True)
    stub.silent.clear()
    sender = Sender(open_place(parse("s3://runs/fleet"), patience=30), folder, said.append, pause=0.0)
    journal = Journal(folder)
    for handler in (journal, sender):
        handler.start()
    for event in samples.run_events(RUN):
        journal.handle(event)
        sender.handle(event)
    journal.close()
    # The call may take half a minute; nobody waits for it.
    assert not sender.finish(0.2)
    assert "takes too long" in said[0]
