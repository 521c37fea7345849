"""Getting the e2e.test of a release: download, resumed where it broke off, verified, unpacked once, kept in a cache."""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import tarfile
from collections.abc import Callable
from pathlib import Path

import aiohttp

from winready.spec.versions import Version, is_release, release_order
from winready.upstream.binary import BinaryError

RELEASES = "https://dl.k8s.io"
MEMBER = "kubernetes/test/bin/e2e.test"
CHUNK = 256 * 1024
TRIES = 4
SILENCE_SECONDS = 60.0
MAX_SMALL = 4096
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "s390x": "s390x"}
Progress = Callable[[int, int | None], None]
"""Bytes so far, and of how many where the server says."""


def cache_folder() -> Path:
    """Where fetched programs are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "winready" / "e2e"


def cached(version: Version | None = None) -> Path | None:
    """The newest e2e.test in the cache, of one minor version or of any."""
    found: list[tuple[tuple[int, ...], Path]] = []
    for path in cache_folder().glob("v*/e2e.test"):
        numbers = release_order(path.parent.name)
        if version is None or numbers[:2] == (version.major, version.minor):
            found.append((numbers, path))
    return max(found)[1] if found else None


def archive_name() -> str:
    """The archive for this machine."""
    machine = platform.machine().lower()
    if platform.system() != "Linux" or machine not in _ARCHITECTURES:
        system = platform.system() or "this system"
        raise BinaryError(
            f"releases have no e2e.test for {system} on {machine}",
            "run winready on Linux, or give the path of an e2e.test with --e2e-binary",
        )
    return f"kubernetes-test-linux-{_ARCHITECTURES[machine]}.tar.gz"


async def fetch(version: str, mirror: str, progress: Progress, *, again: bool = False) -> Path:
    """The e2e.test of a release: ``1.36.3``, or ``1.36`` for the newest patch. Returns where it is."""
    base = mirror.rstrip("/")
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=SILENCE_SECONDS, sock_read=SILENCE_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        exact = await _exact(session, base, version)
        target = cache_folder() / exact / "e2e.test"
        if target.is_file() and not again:
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        url = f"{base}/{exact}/{archive_name()}"
        archive = target.parent / archive_name()
        await _download(session, url, archive.with_suffix(".part"), progress)
        await _verify(session, url, archive.with_suffix(".part"))
        os.replace(archive.with_suffix(".part"), archive)
    await asyncio.to_thread(_unpack, archive, target)
    archive.unlink()
    return target


async def _exact(session: aiohttp.ClientSession, base: str, version: str) -> str:
    if is_release(version):
        return version if version.startswith("v") else f"v{version}"
    minor = Version.parse(version)
    url = f"{base}/release/stable-{minor}.txt"
    text = (await _small(session, url)).strip()
    if not is_release(text):
        raise BinaryError(f"{url} does not name a version but says {text[:80]!r}", "give the patch level, as in 1.36.3")
    return text


async def _small(session: aiohttp.ClientSession, url: str) -> str:
    try:
        async with session.get(url) as response:
            if response.status != 200:
                raise BinaryError(f"{url} answered {response.status} {response.reason}", "is the version right?")
            return (await response.content.read(MAX_SMALL)).decode("utf-8", errors="replace")
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _unreachable(url, error) from None


async def _download(session: aiohttp.ClientSession, url: str, part: Path, progress: Progress) -> None:
    """Into a file that says by its name that it is not whole; what is there already is not asked for again."""
    for attempt in range(1, TRIES + 1):
        try:
            await _download_once(session, url, part, progress)
            return
        except (aiohttp.ClientError, TimeoutError) as error:
            if attempt == TRIES:
                kept = _size(part)
                trouble = _unreachable(url, error)
                remedy = f"{trouble.remedy}; the next try goes on after {kept} bytes" if kept else trouble.remedy
                raise BinaryError(trouble.message, remedy) from None
            await asyncio.sleep(0.05 * 4**attempt)


async def _download_once(session: aiohttp.ClientSession, url: str, part: Path, progress: Progress) -> None:
    have = _size(part)
    headers = {"Range": f"bytes={have}-"} if have else {}
    async with session.get(url, headers=headers) as response:
        if response.status == 416:
            # Nothing is left to ask for; the checksum tells whether what we have is right.
            return
        if response.status not in (200, 206):
            raise BinaryError(f"{url} answered {response.status} {response.reason}", "is the version right?")
        resumed = response.status == 206
        done = have if resumed else 0
        length = response.content_length
        total = done + length if length is not None else None
        with part.open("ab" if resumed else "wb") as file:
            async for chunk in response.content.iter_chunked(CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(done, total)
    if total is not None and done < total:
        raise aiohttp.ClientPayloadError(f"the connection ended after {done} of {total} bytes")


async def _verify(session: aiohttp.ClientSession, url: str, part: Path) -> None:
    wanted = (await _small(session, f"{url}.sha512")).split()
    found = await asyncio.to_thread(_sha512, part)
    if not wanted or wanted[0].lower() != found:
        os.unlink(part)
        said = wanted[0][:16] if wanted else "nothing"
        raise BinaryError(
            f"{url} has the checksum {found[:16]}..., {url}.sha512 says {said}...; it was thrown away",
            "try again; if it stays so, the mirror is not to be trusted",
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha512(path: Path) -> str:
    digest = hashlib.sha512()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _unpack(archive: Path, target: Path) -> None:
    """Only the one program, whatever else and whatever paths the archive has."""
    part = target.with_suffix(".new")
    try:
        with tarfile.open(archive, "r|gz") as packed:
            for member in packed:
                if member.name.removeprefix("./") != MEMBER or not member.isreg():
                    continue
                source = packed.extractfile(member)
                with part.open("wb") as file:
                    while source is not None and (chunk := source.read(CHUNK)):
                        file.write(chunk)
                part.chmod(0o755)
                os.replace(part, target)
                return
    except (tarfile.TarError, EOFError, OSError) as error:
        raise BinaryError(f"{archive} cannot be unpacked: {error}") from None
    raise BinaryError(f"{archive} holds no {MEMBER}")


def _unreachable(url: str, error: Exception) -> BinaryError:
    why = str(error) or type(error).__name__
    return BinaryError(f"{url} cannot be fetched: {why}", "check the way there, or name a mirror with --mirror URL")
