"""The verbs of a place, the same for a folder, a share and an object store."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import obstore.exceptions
import obstore.store
import pytest

from winready.store.addresses import parse
from winready.store.errors import AlreadyThere, Away, Changed, NoSuchObject, NoSuchPlace, Refused, TooLarge
from winready.store.objects import Conflict, Objects, WrongKey, open_place, put_once
from winready.store.remote import RemoteObjects


@pytest.fixture(params=["path", "file", "memory"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "memory":
        return RemoteObjects(parse("s3://runs/fleet"), obstore, obstore.store.MemoryStore())
    return open_place(parse(str(tmp_path) if request.param == "path" else f"file://{tmp_path}"))


def test_an_object_is_created_once(objects: Objects) -> None:
    objects.create("one/run.json", b"first")
    with pytest.raises(AlreadyThere):
        objects.create("one/run.json", b"second")
    assert objects.read("one/run.json", 100).data == b"first"


def test_putting_the_same_again_is_no_work_and_something_else_a_conflict(objects: Objects) -> None:
    assert put_once(objects, "one/run.json", b"first")
    assert not put_once(objects, "one/run.json", b"first")
    for other in (b"second", b"longer than the first", b""):
        with pytest.raises(Conflict, match="other contents"):
            put_once(objects, "one/run.json", other)
    assert objects.read("one/run.json", 100).data == b"first"


def test_replacing_wants_the_token_of_what_was_read(objects: Objects) -> None:
    objects.create("state/a", b"1")
    found = objects.read("state/a", 100)
    token = objects.replace("state/a", b"2", found.token)
    with pytest.raises(Changed):
        objects.replace("state/a", b"3", found.token)
    objects.replace("state/a", b"4", token)
    assert objects.read("state/a", 100).data == b"4"


def test_of_many_who_count_at_once_nobody_is_lost(objects: Objects) -> None:
    objects.create("state/count", b"0")
    begin = threading.Barrier(8)

    def count(_: int) -> None:
        begin.wait()
        done = 0
        while done < 5:
            found = objects.read("state/count", 100)
            try:
                objects.replace("state/count", str(int(found.data) + 1).encode(), found.token)
            except Changed:
                continue
            done += 1

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, range(8)))
    assert objects.read("state/count", 100).data == b"40"


def test_of_many_who_create_at_once_one_does(objects: Objects) -> None:
    begin = threading.Barrier(8)

    def create(number: int) -> bool:
        begin.wait()
        try:
            objects.create("lock", str(number).encode())
        except AlreadyThere:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(create, range(8)))
    assert won.count(True) == 1
    assert objects.read("lock", 10).data == str(won.index(True)).encode()


def test_lists_have_key_size_and_a_token_that_changes(objects: Objects) -> None:
    for key in ("a/one", "a/two", "b/one"):
        objects.create(key, key.encode())
    before = {key: (size, token) for key, size, token in objects.list()}
    assert {key: size for key, (size, _) in before.items()} == {"a/one": 5, "a/two": 5, "b/one": 5}
    assert sorted(entry.key for entry in objects.list("a")) == ["a/one", "a/two"]
    assert list(objects.list("nothing")) == []
    objects.replace("a/one", b"A/ONE", before["a/one"][1])
    after = {entry.key: entry.token for entry in objects.list()}
    assert [key for key in after if after[key] != before[key][1]] == ["a/one"]


def test_deleting_twice_is_deleting_once(objects: Objects) -> None:
    objects.create("a/one", b"1")
    objects.delete("a/one")
    objects.delete("a/one")
    assert list(objects.list()) == []
    with pytest.raises(NoSuchObject):
        objects.read("a/one", 10)


def test_reading_has_a_limit(objects: Objects) -> None:
    objects.create("large", b"x" * 101)
    with pytest.raises(TooLarge, match="larger than the 100 bytes"):
        objects.read("large", 100)
    assert len(objects.read("large", 101).data) == 101


@pytest.mark.parametrize("key", ["", "/a", "../a", "a//b", "a/./b", "a\0b", ".hidden", "a/.b", "x" * 300, "ü", "a b"])
def test_keys_that_could_mean_something_else_are_not_written(objects: Objects, key: str) -> None:
    attempts: list[Callable[[], object]] = [lambda: objects.create(key, b""), lambda: objects.read(key, 1)]
    for attempt in attempts:
        with pytest.raises(WrongKey):
            attempt()


def test_a_share_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    share = open_place(parse(f"file://{tmp_path}/share"))
    for attempt in (lambda: share.create("a", b""), lambda: list(share.list()), lambda: share.replace("a", b"", "")):
        with pytest.raises(NoSuchPlace, match="there is no folder"):
            attempt()
    assert not (tmp_path / "share").exists()


def test_links_in_a_folder_are_neither_listed_nor_followed(tmp_path: Path) -> None:
    secret = tmp_path / "outside" / "secret"
    secret.parent.mkdir()
    secret.write_text("secret")
    base = tmp_path / "base"
    base.mkdir()
    (base / "file").symlink_to(secret)
    (base / "folder").symlink_to(secret.parent)
    os.mkfifo(base / "pipe")
    objects = open_place(parse(str(base)))
    assert list(objects.list()) == []
    for key in ("file", "folder/secret", "pipe"):
        with pytest.raises(Refused):
            objects.read(key, 100)
    with pytest.raises(Refused):
        objects.create("folder/more", b"")
    assert os.listdir(secret.parent) == ["secret"]


def test_a_server_that_is_not_there_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "hunter2hunter2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    with pytest.raises(Away) as caught:
        open_place(parse("s3://runs/x"), patience=0.5).create("a", b"")
    assert "nobody listens there" in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.remedy
