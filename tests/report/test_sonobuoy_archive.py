"""Reading back a tarball of Sonobuoy: what is in it counts, and a hostile one is refused with a sentence."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from report import samples
from report.tarballs import PLACE, member, of_run, tarball
from winready.engine import journal
from winready.report import record, sonobuoy, sonobuoy_archive
from winready.report.sonobuoy_archive import choose, looks_like_one, read_archive
from winready.spec import archives
from winready.spec.archives import ArchiveError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return samples.write_run(tmp_path / "runs")


def refused(path: Path) -> str:
    with pytest.raises(ArchiveError) as error:
        choose(read_archive(path))
    return str(error.value)


def test_the_run_of_the_plugin_is_found_whatever_its_name(tmp_path: Path, folder: Path) -> None:
    path = of_run(tmp_path / "t.tar.gz", folder, "win-readiness")
    assert looks_like_one(path)
    files = choose(read_archive(path))
    assert files == {name: (folder / name).read_bytes() for name in (record.NAME, journal.NAME)}


def test_of_several_runs_one_must_be_chosen(tmp_path: Path, folder: Path) -> None:
    story = (folder / journal.NAME).read_bytes()
    places = [f"plugins/{name}/results/global/{journal.NAME}" for name in ("core", "full")]
    path = tarball(tmp_path / "t.tar.gz", *(member(place, story) for place in places))
    assert refused(path) == "holds runs of several plugins: core, full"
    assert choose(read_archive(path), "full") == {journal.NAME: story}
    with pytest.raises(ArchiveError, match="holds no run of a plugin 'other'; there are runs of core, full"):
        choose(read_archive(path), "other")


def test_without_a_run_the_words_of_sonobuoy_are_told(tmp_path: Path) -> None:
    error = b'{"error": "timeout", "other": 1}'
    path = tarball(tmp_path / "t.tar.gz", member("plugins/winready/errors/global/error.json", error))
    assert refused(path).endswith("; Sonobuoy says of winready: timeout")
    assert refused(tarball(tmp_path / "e.tar.gz")).startswith("holds no run of winready")
    broken = tarball(tmp_path / "b.tar.gz", member("plugins/winready/errors/global/error.json", b"[" * 100_000))
    assert "an error that cannot be read" in refused(broken)


def test_without_a_run_the_words_of_the_plugin_are_told(tmp_path: Path) -> None:
    tree = sonobuoy.render_trouble("unknown category 'x'", ["log"]).encode()
    assert refused(tarball(tmp_path / "t.tar.gz", member(f"{PLACE}/sonobuoy_results.yaml", tree))).endswith(
        f"holds no run of winready (plugins/*/results/*/{journal.NAME}); winready says: unknown category 'x'"
    )
    for junk in (b"[", b"a: &a [*a]", b"items: 7", b"items: [{items: []}]", b"\xff", b"items: [x]"):
        path = tarball(tmp_path / "j.tar.gz", member(f"{PLACE}/sonobuoy_results.yaml", junk))
        assert refused(path).endswith(f"{journal.NAME})")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (member("../../etc/passwd", b"x"), "holds '../../etc/passwd', which leads out of the archive"),
        (member("/etc/passwd", b"x"), "holds '/etc/passwd', which leads out of the archive"),
        (member("plugins\\..\\..\\x", b"x"), "which leads out of the archive"),
        (member(f"{PLACE}/run.json", kind=tarfile.SYMTYPE, link="/etc/passwd"), "as a link or a device instead of"),
        (member(f"{PLACE}/journal.jsonl", kind=tarfile.LNKTYPE, link="meta/config.json"), "as a link or a device"),
        (member(f"{PLACE}/run.json", kind=tarfile.FIFOTYPE), "as a link or a device instead of a file"),
    ],
)
def test_hostile_members_are_refused(tmp_path: Path, bad: tuple[tarfile.TarInfo, bytes], words: str) -> None:
    assert words in refused(tarball(tmp_path / "t.tar.gz", bad))


def test_a_file_twice_is_refused(tmp_path: Path) -> None:
    twice = [member(f"{PLACE}/run.json", b"{}")] * 2
    assert "holds 'plugins/winready/results/global/run.json' twice" in refused(tarball(tmp_path / "t.tar.gz", *twice))


def test_bombs_are_refused_before_they_cost_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_ARCHIVE", 8 << 20)
    monkeypatch.setitem(sonobuoy_archive.LARGEST, journal.NAME, 2 << 20)
    zeros = tarball(tmp_path / "z.tar.gz", member("podlogs/big.txt", b"\0" * (9 << 20)))
    assert zeros.stat().st_size < 100_000
    assert refused(zeros) == "holds more than 0 GiB"
    giant = tarball(tmp_path / "g.tar.gz", member(f"{PLACE}/journal.jsonl", b"\0" * (3 << 20)))
    assert refused(giant) == f"holds '{PLACE}/journal.jsonl', which is larger than 2 MiB"
    monkeypatch.setattr(archives, "MOST_MEMBERS", 10)
    many = tarball(tmp_path / "m.tar.gz", *(member(f"podlogs/{number}") for number in range(20)))
    assert refused(many) == "holds more than 10 files"


def test_a_giant_header_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info, _ = member("a")
        info.pax_headers = {"comment": "x" * (2 << 20)}
        tar.addfile(info)
    path = tmp_path / "t.tar.gz"
    path.write_bytes(gzip.compress(out.getvalue()))
    assert refused(path) == "holds a header of 2 MiB"


@pytest.mark.parametrize("content", [gzip.compress(b"no tar at all" * 100, mtime=0), b"\x1f\x8b\x08junk", b""])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.tar.gz"
    path.write_bytes(content)
    assert refused(path).startswith(("is no archive that can be read", "cannot be read"))


def test_a_tarball_that_was_cut_short_is_refused(tmp_path: Path, folder: Path) -> None:
    path = of_run(tmp_path / "t.tar.gz", folder)
    path.write_bytes(path.read_bytes()[:-200])
    assert refused(path).startswith("is no archive that can be read")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.tar.gz") == "cannot be read: No such file or directory"
