"""The builder of the ground for Windows programs: nothing half-made, nothing unsigned, one sentence otherwise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import windows_ground
from windows_ground import GroundError, ensure, verdict, verify

MICROSOFT = "/C=US/ST=Washington/L=Redmond/O=Microsoft Corporation/CN=Microsoft Corporation"
OTHER = "/C=US/O=Somebody Else/CN=Somebody Else"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WINREADY_CACHE", str(tmp_path))
    monkeypatch.delenv("WINREADY_PWSH", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return tmp_path / "windows"


def a_part(notes: list[str], name: str) -> Callable[[Path, Path], None]:
    def make(target: Path, scratch: Path) -> None:
        notes.append(name)
        target.mkdir()
        (target / "file").write_text(name)
        assert scratch.is_dir()

    return make


def test_each_part_is_made_once_on_top_of_those_below(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    monkeypatch.setattr(windows_ground, "PARTS", {name: a_part(notes, name) for name in ("pwsh", "prefix", "debian")})
    assert ensure() == ensure() == cache
    assert notes == ["debian", "prefix", "pwsh"]
    assert sorted(path.name for path in cache.iterdir()) == [".lock", "debian", "prefix", "pwsh"]


def test_a_build_that_fails_leaves_nothing_and_the_next_one_begins_anew(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(target: Path, scratch: Path) -> None:
        target.mkdir()
        (scratch / "file").write_text("half")
        raise GroundError("the mirror went away")

    monkeypatch.setattr(windows_ground, "PARTS", {"debian": half})
    with pytest.raises(GroundError, match="went away"):
        ensure(["debian"])
    assert [path.name for path in cache.iterdir()] == [".lock"]
    (cache / "debian.part").mkdir()
    (cache / "debian.part-killed").mkdir()
    monkeypatch.setattr(windows_ground, "PARTS", {"debian": a_part([], "debian")})
    ensure(["debian"])
    assert sorted(path.name for path in cache.iterdir()) == [".lock", "debian"]


def test_a_given_powershell_has_a_place_of_its_own(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = windows_ground.layers()
    monkeypatch.setenv("WINREADY_PWSH", "/somewhere")
    assert known[1:] == windows_ground.layers()[1:]
    assert known[0] != windows_ground.layers()[0]
    with pytest.raises(GroundError, match=r"there is no pwsh\.exe in WINREADY_PWSH=/somewhere"):
        windows_ground.make_powershell(cache / "target", cache)


def test_a_package_with_another_digest_is_not_unpacked(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(parents=True)
    (cache / "package.tgz").write_bytes(b"another one")
    monkeypatch.setattr(windows_ground, "run", lambda *args, **kwargs: "")
    with pytest.raises(GroundError, match="not the one that is known; not used"):
        windows_ground.unpack_powershell(cache / "pwsh", cache)
    assert not (cache / "pwsh").exists()


def signature(subject: str, ending: str, calculated: str = "AB") -> str:
    """One signature in the form of osslsigncode's words."""
    return f"""Signature Index: 0  (Primary Signature)

Current message digest    : AB
Calculated message digest : {calculated}

Signer's certificate:
\t------------------
\tSigner #0:
\t\tSubject: {subject}
\t\tIssuer : /C=US/O=Microsoft Corporation/CN=Microsoft Code Signing PCA 2024

Timestamp Server Signature verification: ok
Signing certificate chain verified using:
\t------------------
\tSigner #0:
\t\tSubject: {MICROSOFT}

Signature verification: {ending}

"""


@pytest.mark.parametrize(
    ("words", "subject"),
    [
        (signature(MICROSOFT, "ok"), MICROSOFT),
        (signature(OTHER, "ok"), OTHER),
        (signature(MICROSOFT, "failed"), ""),
        (signature(MICROSOFT, "ok", calculated="CD"), ""),
        # The first does not hold; whose name counts is that of the second.
        (signature(MICROSOFT, "failed") + signature(OTHER, "ok"), OTHER),
        (signature(OTHER, "failed") + signature(MICROSOFT, "ok"), MICROSOFT),
        ("No signature found\n", ""),
        ("", ""),
    ],
)
def test_a_signature_counts_only_if_it_holds_itself(words: str, subject: str) -> None:
    assert verdict(words + "Number of verified signatures: 1\nSucceeded\n") == subject


def test_scripts_that_microsoft_did_not_sign_are_deleted(tmp_path: Path) -> None:
    for name in ("pwsh.exe", "good.psm1", "bad.PS1", "run.cmd", "data.json"):
        (tmp_path / name).write_text("x")
    report = verify(tmp_path, lambda path: MICROSOFT if path.name in ("pwsh.exe", "good.psm1") else OTHER)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.json", "good.psm1", "pwsh.exe"]
    assert report == {
        "pwsh.exe": MICROSOFT,
        "good.psm1": MICROSOFT,
        "bad.PS1": "deleted: not signed by Microsoft",
        "run.cmd": "deleted: not signed by Microsoft",
    }


@pytest.mark.parametrize(("name", "subject"), [("x.dll", OTHER), ("x.EXE", ""), ("hidden.txt", OTHER)])
def test_a_program_that_microsoft_did_not_sign_is_the_end(tmp_path: Path, name: str, subject: str) -> None:
    (tmp_path / name).write_bytes(b"MZ\x90\x00")
    with pytest.raises(GroundError, match="not by Microsoft; not used"):
        verify(tmp_path, lambda path: subject)


def test_what_cannot_be_had_is_one_sentence(tmp_path: Path) -> None:
    tool = Path(windows_ground.__file__)
    # No program of Debian is there.
    env = {"PATH": str(tmp_path), "WINREADY_CACHE": str(tmp_path / "cache")}
    result = subprocess.run([sys.executable, str(tool)], env=env, text=True, capture_output=True, check=False)
    assert result.returncode == 1
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("making ")]
    assert line.startswith("error: ")
    assert not list((tmp_path / "cache").rglob("*.part*"))
