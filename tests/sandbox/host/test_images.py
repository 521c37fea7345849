"""Images of the host node: layouts are verified, and nothing in a layer leaves the image's root."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from winready_sandbox.host import images, rooted
from winready_sandbox.state import StateError


def tar(*members: tuple[str, bytes, str]) -> bytes:
    """A layer: name, kind and content or link."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.uid, member.gid = kind, 0o755, os.getuid(), os.getgid()
            if kind == tarfile.REGTYPE:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content.encode()))
            else:
                member.linkname = content
                archive.addfile(member)
    return gzip.compress(raw.getvalue())


def layout(folder: Path, *layers: bytes, name: str = "1.0", architecture: str | None = None) -> Path:
    """An image layout of these layers."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def keep(data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    config = {"config": {"Entrypoint": ["/tool"], "Env": ["A=b=c"], "User": "7", "WorkingDir": "/w"}}
    manifest = {"config": keep(json.dumps(config).encode()), "layers": [keep(layer) for layer in layers]}
    platform = {"os": "linux", "architecture": architecture or images.architecture()}
    index = {"manifests": [{**keep(json.dumps(manifest).encode()), "platform": platform}]}
    top = {**keep(json.dumps(index).encode()), "annotations": {"org.opencontainers.image.ref.name": name}}
    (folder / "index.json").write_text(json.dumps({"manifests": [top]}))
    (folder / "oci-layout").write_text("{}")
    return folder


FILE, LINK, HARD, FOLDER = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE


def test_a_layout_is_unpacked_with_its_configuration(tmp_path: Path) -> None:
    first = tar(("tool", FILE, "run"), ("old", FILE, "x"), ("d", FOLDER, ""), ("d/one", FILE, "1"))
    second = tar((".wh.old", FILE, ""), ("d/.wh..wh..opq", FILE, ""), ("d/two", FILE, "2"))
    image = images.load(f"tool:1.0={layout(tmp_path / 'l', first, second)}", tmp_path / "u")
    assert (image.entrypoint, image.env, image.user, image.folder) == (("/tool",), {"A": "b=c"}, "7", "/w")
    found = sorted(str(path.relative_to(image.root)) for path in image.root.rglob("*"))
    assert found == ["d", "d/two", "tool"]


def test_paths_that_go_up_are_refused(tmp_path: Path) -> None:
    for name in ("../evil", "a/../../evil"):
        folder = layout(tmp_path / name.replace("/", "-"), tar((name, FILE, "x")))
        with pytest.raises(StateError, match=r"not a usable image layout: .* leaves the image"):
            images.load(f"tool:1.0={folder}", tmp_path / "u")
    assert list(tmp_path.rglob("evil")) == []


@pytest.mark.parametrize("target", ["..", "/", "../../../../.."])
def test_links_lead_nowhere_but_into_the_image(tmp_path: Path, target: str) -> None:
    folder = layout(tmp_path / "l", tar(("out", LINK, target), ("out/evil", FILE, "x")))
    image = images.load(f"tool:1.0={folder}", tmp_path / "u")
    assert list(tmp_path.rglob("evil")) == [image.root / "evil"]
    assert not Path("/evil").exists()


def test_a_hard_link_is_to_a_file_of_the_image(tmp_path: Path) -> None:
    folder = layout(tmp_path / "l", tar(("evil", HARD, "../../../../../../etc/passwd")))
    with pytest.raises(StateError, match="not a usable image layout"):
        images.load(f"tool:1.0={folder}", tmp_path / "u")
    assert list(tmp_path.rglob("evil")) == []


def test_a_blob_that_was_changed_is_refused(tmp_path: Path) -> None:
    folder = layout(tmp_path / "l", tar(("tool", FILE, "run")))
    for blob in (folder / "blobs" / "sha256").iterdir():
        blob.write_bytes(blob.read_bytes() + b" ")
    with pytest.raises(StateError, match="does not have its digest"):
        images.load(f"tool:1.0={folder}", tmp_path / "u")


@pytest.mark.parametrize("text", ["{", "[]", '{"manifests": []}', '{"manifests": [{"digest": "md5:x"}]}', "null"])
def test_nonsense_is_refused_without_a_traceback(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.json").write_text(text)
    (tmp_path / "oci-layout").write_text("{}")
    with pytest.raises(StateError, match="not a usable image layout"):
        images.load(f"tool={tmp_path}", tmp_path / "u")


def test_an_image_for_another_machine_is_refused(tmp_path: Path) -> None:
    folder = layout(tmp_path / "l", tar(("tool", FILE, "run")), architecture="s390x")
    with pytest.raises(StateError, match="it has no image for linux/"):
        images.load(f"tool:1.0={folder}", tmp_path / "u")


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("/var/run/x", "/run/x"),
        ("/absolute/x", "/etc/x"),
        ("/../../etc", "/etc"),
        ("/up/x", "/x"),
        ("/a/./b/../c", "/a/c"),
    ],
)
def test_links_are_followed_as_inside(tmp_path: Path, path: str, real: str) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "run").symlink_to("../run")
    (tmp_path / "absolute").symlink_to("/etc")
    (tmp_path / "up").symlink_to("../../..")
    assert rooted.resolve(tmp_path, path) == real


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(rooted.OutOfRoot, match="/a: too many links"):
        rooted.resolve(tmp_path, "/a")
