"""The image's tool: what it refuses, what it names, and that the same content gives the same bytes."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import lzma
import re
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import debian
import image
import oci
import wheels
from debian import DebianError, Package

ROOT = Path(__file__).resolve().parents[2]
EPOCH = 1_700_000_000


def deb(**files: bytes) -> bytes:
    """A small Debian package."""

    def archive(**contents: bytes) -> bytes:
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w") as tar:
            for name, content in contents.items():
                member = tarfile.TarInfo(f"./{name.replace('__', '/')}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return lzma.compress(raw.getvalue())

    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": archive(control=b"Package: small\n"),
        "data.tar.xz": archive(**files),
    }
    data = b"!<arch>\n"
    for name, content in parts.items():
        data += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content
        data += b"\n" * (len(content) % 2)
    return data


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A mirror of Debian on loopback; its folder."""
    folder = tmp_path / "mirror"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("WINREADY_DEBIAN", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("WINREADY_CACHE", str(tmp_path / "cache"))
        yield folder
        server.shutdown()


def package(data: bytes) -> Package:
    return Package("amd64", "small", "1.0-1", hashlib.sha256(data).hexdigest(), len(data), "pool/small.deb")


def test_a_package_is_fetched_once_and_read_without_dpkg(mirror: Path) -> None:
    data = deb(usr__lib__x=b"content")
    (mirror / "pool").mkdir()
    (mirror / "pool" / "small.deb").write_bytes(data)
    file = debian.fetch(package(data))
    (mirror / "pool" / "small.deb").unlink()
    assert debian.fetch(package(data)) == file
    assert [(member.name, content) for member, content in debian.contents(file)] == [("./usr/lib/x", b"content")]
    assert debian.control(file) == b"Package: small\n"


def test_a_package_that_has_vanished_is_named(mirror: Path) -> None:
    with pytest.raises(
        DebianError, match=r"^small 1\.0-1 \(amd64\) is not in Debian any more, .*; make lock-image takes"
    ):
        debian.fetch(package(b"gone"))


def test_a_package_that_was_changed_is_refused_and_not_kept(mirror: Path, tmp_path: Path) -> None:
    (mirror / "pool").mkdir()
    (mirror / "pool" / "small.deb").write_bytes(b"something else")
    with pytest.raises(DebianError, match=r"small 1\.0-1 .* does not have the digest of locks/image\.txt"):
        debian.fetch(package(b"what was locked"))
    assert list((tmp_path / "cache").rglob("*.deb")) == []


def test_what_is_no_package_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.deb").write_bytes(b"<html>")
    with pytest.raises(DebianError, match=r"x\.deb is no Debian package"):
        list(debian.contents(tmp_path / "x.deb"))


@pytest.mark.parametrize("line", ["amd64 small 1.0", "amd64 small 1.0 nothex 12 pool/x", "<html></html>"])
def test_a_lock_that_is_none_names_its_line(line: str) -> None:
    with pytest.raises(DebianError, match="line 2 is not a package; run make lock-image"):
        debian.read_lock(f"# comment\n{line}\n")


def test_the_lock_has_the_same_packages_for_both_architectures_and_names_no_host() -> None:
    text = (ROOT / "locks" / "image.txt").read_text()
    locked = debian.read_lock(text)
    for architecture in image.TRIPLETS:
        assert {each.name for each in locked if each.architecture == architecture} == set(image.PACKAGES)
    assert not re.search(r"://|\.(org|com|io)\b", text)


def tree(order: list[str]) -> oci.Tree:
    made = oci.Tree(folders={"tmp": 0o1777}, links={"bin": "usr/bin"})
    for path in order:
        made.files[path] = (path.encode(), 0o644)
    return made


def test_a_layer_depends_on_its_content_alone() -> None:
    first = oci.layer(tree(["usr/b", "usr/a"]), EPOCH)
    assert first == oci.layer(tree(["usr/a", "usr/b"]), EPOCH)
    assert first != oci.layer(tree(["usr/a"]), EPOCH)
    with tarfile.open(fileobj=io.BytesIO(first[0])) as archive:
        members = {member.name: member for member in archive}
    assert list(members) == ["bin", "tmp", "usr", "usr/a", "usr/b"]
    assert members["tmp"].mode == 0o1777
    assert {(member.uid, member.gid, member.uname, member.mtime) for member in members.values()} == {(0, 0, "", EPOCH)}


def test_a_layout_is_whole(tmp_path: Path) -> None:
    layout = oci.Layout(tmp_path / "layout")
    made = layout.image([oci.layer(tree(["a"]), EPOCH)], "amd64", {"User": "1:1"}, "2026-01-31T00:00:00Z")
    digest = layout.finish([made], "winready:1.0")
    index = json.loads((tmp_path / "layout" / "index.json").read_text())
    assert index["manifests"][0]["digest"] == digest
    assert index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"] == "1.0"
    for blob in (tmp_path / "layout" / "blobs" / "sha256").iterdir():
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name


def _locked(name: str) -> str:
    found = re.search(rf"^{name}==(\S+)", (ROOT / "locks" / "store.txt").read_text(), re.M)
    assert found is not None
    return found[1]


def test_the_bill_names_the_image_and_what_it_has_of_debian() -> None:
    bill = image.bill(debian.read_lock((ROOT / "locks" / "image.txt").read_text()), {"winready:1.0": "sha256:ab"})
    assert (bill[0]["type"], bill[0]["version"]) == ("container", "sha256:ab")
    purls = [each["purl"] for each in bill]
    assert any(re.fullmatch(r"pkg:deb/debian/libssl3@\S+\?arch=arm64", purl) for purl in purls)
    assert [purl for purl in purls if purl.startswith("pkg:pypi/")] == [f"pkg:pypi/obstore@{_locked('obstore')}"]
    assert len(set(purls)) == len(purls) == 2 + 2 * len(image.PACKAGES)


def test_a_layout_packed_twice_is_the_same_file(tmp_path: Path) -> None:
    layout = oci.Layout(tmp_path / "layout")
    layout.finish([], "winready:1.0")
    for name in ("a.tar", "b.tar"):
        oci.pack(layout.folder, tmp_path / name, EPOCH)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_the_image_has_what_runs_need_and_nothing_that_only_building_needs() -> None:
    names = {line.partition("==")[0] for line in wheels.requirements(image.interpreter("amd64"))}
    assert {"aiohttp", "click", "cryptography", "cffi", "typing-extensions"} <= names
    assert not {"hatchling", "editables", "pluggy"} & names


def test_the_containerfile_takes_the_locks() -> None:
    text = (ROOT / "Containerfile").read_text()
    assert "--require-hashes" in text
    assert f"USER {image.USER}:{image.USER}" in text
    assert 'ENTRYPOINT ["/usr/local/bin/winready"]' in text
