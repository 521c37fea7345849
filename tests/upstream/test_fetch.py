"""``winready upstream fetch`` against a release site on loopback: whole, broken off, wrong."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from winready.spec.versions import Version
from winready.upstream import fetch as module
from winready.upstream.binary import BinaryError
from winready.upstream.fetch import archive_name, cached, fetch

PROGRAM = b"#!/bin/sh\necho v1.36.3\n" + bytes(range(256)) * 4096


def archive(member: str = module.MEMBER) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for name, data in (("kubernetes/version", b"x"), ("../outside", b"bad"), (member, PROGRAM)):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


class Site:
    """A release site that can be told to misbehave."""

    def __init__(self) -> None:
        self.content = archive()
        self.checksum = hashlib.sha512(self.content).hexdigest()
        self.cut_first = 0
        self.requests: list[str] = []
        self.url = ""

    async def answer(self, asked: web.Request) -> web.StreamResponse:
        self.requests.append(f"{asked.path} {asked.headers.get('Range', '')}".strip())
        if asked.path == "/release/stable-1.36.txt":
            return web.Response(text="v1.36.3\n")
        if asked.path == f"/v1.36.3/{archive_name()}.sha512":
            return web.Response(text=f"{self.checksum}  {archive_name()}\n")
        if asked.path != f"/v1.36.3/{archive_name()}":
            return web.Response(status=404)
        wanted = asked.headers.get("Range", "")
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if start >= len(self.content):
            return web.Response(status=416)
        body = self.content[start:]
        headers = {"Content-Length": str(len(body))}
        response = web.StreamResponse(status=206 if wanted else 200, headers=headers)
        await response.prepare(asked)
        if self.cut_first:
            await response.write(body[: self.cut_first])
            self.cut_first = 0
            assert asked.transport is not None
            asked.transport.close()
            return response
        await response.write(body)
        return response


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = Site()
    runner = web.AppRunner(web.Application())
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]] = made.answer
    runner.app.router.add_route("*", "/{tail:.*}", handler)
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}"
    yield made
    await runner.cleanup()


def quiet(done: int, total: int | None) -> None:
    return None


async def test_the_newest_patch_is_fetched_verified_unpacked_and_kept(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = await fetch("1.36", site.url, lambda done, total: seen.append((done, total)))
    assert path == tmp_path / "winready/e2e/v1.36.3/e2e.test"
    assert path.read_bytes() == PROGRAM
    assert path.stat().st_mode & 0o111
    assert seen[-1] == (len(site.content), len(site.content))
    assert sorted(item.name for item in path.parent.iterdir()) == ["e2e.test"]
    assert cached(Version(1, 36)) == path
    assert cached() == path
    assert cached(Version(1, 35)) is None
    site.requests.clear()
    assert await fetch("v1.36.3", site.url, quiet) == path
    assert site.requests == []


async def test_a_download_that_broke_off_goes_on_where_it_was(site: Site) -> None:
    site.cut_first = 2000
    path = await fetch("1.36.3", site.url, quiet)
    assert path.read_bytes() == PROGRAM
    ranges = [item for item in site.requests if "bytes=" in item]
    assert ranges == [f"/v1.36.3/{archive_name()} bytes=2000-"]


async def test_a_wrong_checksum_leaves_nothing_behind(site: Site) -> None:
    site.checksum = "0" * 128
    with pytest.raises(BinaryError, match="it was thrown away"):
        await fetch("1.36.3", site.url, quiet)
    assert cached() is None
    site.checksum = hashlib.sha512(site.content).hexdigest()
    assert (await fetch("1.36.3", site.url, quiet)).exists()


async def test_what_cannot_be_had_is_said(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BinaryError, match="answered 404"):
        await fetch("1.99.0", site.url, quiet)
    monkeypatch.setattr(module, "TRIES", 1)
    with pytest.raises(BinaryError, match="cannot be fetched"):
        await fetch("1.36.3", "http://127.0.0.1:1", quiet)
    site.content = archive("kubernetes/test/bin/other")
    site.checksum = hashlib.sha512(site.content).hexdigest()
    with pytest.raises(BinaryError, match=r"holds no kubernetes/test/bin/e2e\.test"):
        await fetch("1.36.3", site.url, quiet)
