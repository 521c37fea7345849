"""Wheels for other machines: which are chosen, and that none is taken that is not the locked one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import wheels
from wheels import Target, WheelError

LINUX = Target("linux-x86_64", "linux", "3.11", ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64"))
WINDOWS = Target("windows-amd64", "win32", "3.14", ("win_amd64",))
CONTENT = b"a wheel"
FILE = "click-1.0-py3-none-any.whl"


def test_conditions_of_the_lock_are_those_of_the_target() -> None:
    names = {line.partition("==")[0] for line in wheels.requirements(LINUX)}
    newer = {line.partition("==")[0] for line in wheels.requirements(WINDOWS)}
    assert names - newer == {"typing-extensions"}
    assert "hatchling" in {line.partition("==")[0] for line in wheels.requirements(LINUX, building=True)}


@pytest.mark.parametrize(
    ("offered", "target", "chosen"),
    [
        (["a-1-cp311-cp311-manylinux_2_17_x86_64.whl", "a-1-py3-none-any.whl"], LINUX, 0),
        (["a-1-cp39-abi3-manylinux_2_17_x86_64.whl", "a-1-cp311-abi3-manylinux_2_17_x86_64.whl"], LINUX, 1),
        (["a-1-cp311-cp311-musllinux_1_2_x86_64.whl", "a-1-cp312-cp312-manylinux_2_17_x86_64.whl"], LINUX, None),
        (["a-1-cp314-cp314t-win_amd64.whl", "a-1-cp311-abi3-win_amd64.whl"], WINDOWS, 1),
    ],
    ids=["of its own", "the newest stable ABI", "none", "no free threading"],
)
def test_the_best_wheel_is_chosen(offered: list[str], target: Target, chosen: int | None) -> None:
    assert wheels.choose(offered, target) == (None if chosen is None else offered[chosen])


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one package, and where its wheel is."""
    lock = tmp_path / "run.txt"
    lock.write_text(f"click==1.0 --hash=sha256:{hashlib.sha256(CONTENT).hexdigest()}\n")
    monkeypatch.setattr(wheels, "LOCK", lock)
    monkeypatch.setenv("WINREADY_CACHE", str(tmp_path / "cache"))
    place = tmp_path / FILE
    place.write_bytes(CONTENT)
    monkeypatch.setattr(wheels, "addresses", lambda: {"click": {FILE: place.as_uri()}})
    (tmp_path / "cache" / "wheels").mkdir(parents=True)
    return place


def test_what_was_fetched_is_kept_as_long_as_it_is_what_the_lock_says(index: Path) -> None:
    (first,) = wheels.kept(LINUX)
    first.write_bytes(b"another wheel")
    assert wheels.kept(LINUX) == [first]
    assert first.read_bytes() == CONTENT
    index.unlink()
    assert wheels.kept(LINUX) == [first]
    assert list(first.parent.iterdir()) == [first]


def test_a_wheel_that_the_lock_does_not_know_is_refused_and_not_kept(index: Path, tmp_path: Path) -> None:
    index.write_bytes(b"another wheel")
    with pytest.raises(WheelError, match=r"is not what locks/run\.txt has the digest of; it was changed"):
        wheels.kept(LINUX)
    assert list((tmp_path / "cache" / "wheels").iterdir()) == []


def test_a_wheel_that_cannot_be_had_is_named(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index.unlink()
    with pytest.raises(WheelError, match=r"click-1\.0-py3-none-any\.whl cannot be had: .*No such file"):
        wheels.kept(LINUX)
    monkeypatch.setattr(wheels, "addresses", lambda: {"click": {"click-1.0-cp311-cp311-win_arm64.whl": ""}})
    with pytest.raises(WheelError, match=r"click==1\.0 has no wheel for linux-x86_64 with Python 3\.11"):
        wheels.kept(LINUX)


def test_an_index_that_does_not_answer_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINREADY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", tmp_path.as_uri())
    with pytest.raises(WheelError, match="the package index cannot be asked for the locked packages"):
        wheels.addresses()
