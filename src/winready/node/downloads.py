"""Digests from the releases' own lists, and files that are kept only when they have the digest."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from winready.node.parameters import File, ParametersError
from winready.node.sources import Source, newest_patch_url
from winready.spec.versions import Version, is_release

CHUNK = 256 * 1024
MAX_LIST = 1024 * 1024
TRIES = 3
SILENCE_SECONDS = 60.0
_DIGEST = re.compile(r"[0-9a-f]{64}")
Progress = Callable[[str], None]


class Unreachable(ParametersError):
    """A source does not answer: nothing is wrong with what was asked for."""


class Downloads:
    """One session over HTTP, through the proxies that the environment names."""

    def __init__(
        self, mirror: str = "", pinned: dict[str, str] | None = None, progress: Progress | None = None
    ) -> None:
        self.mirror = mirror
        self.pinned = pinned or {}
        self.progress = progress or (lambda _: None)

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=SILENCE_SECONDS, sock_read=SILENCE_SECONDS)
        self._session = aiohttp.ClientSession(timeout=timeout, trust_env=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def newest_patch(self, minor: str) -> str:
        """The newest release of a minor version: ``1.36.3`` of ``1.36``."""
        url = newest_patch_url(str(Version.parse(minor)), self.mirror)
        text = (await self._small(url, f"there is no Kubernetes {minor}")).strip()
        if not is_release(text):
            raise ParametersError(
                f"{url} names no release but says {text[:80]!r}", "give the patch level, as in 1.36.3"
            )
        return text.removeprefix("v")

    async def resolve(self, sources: list[Source]) -> list[File]:
        """Every file with the digest that its release publishes, or that the operator pinned."""
        found = await asyncio.gather(*(self._resolved(source) for source in sources), return_exceptions=True)
        files = []
        for one in found:
            # The first in the list, not the first in time: the same mistake gets the same sentence.
            if isinstance(one, BaseException):
                raise one
            files.append(one)
        return files

    async def _resolved(self, source: Source) -> File:
        digest = self.pinned.get(source.name) or await self._published(source)
        return msgspec.structs.replace(source.file, sha256=digest)

    async def _published(self, source: Source) -> str:
        file = PurePosixPath(source.file.url).name
        text = await self._small(source.digest_url, f"there is no {source.release} for Windows")
        found = (
            read_release(text, file) if source.digest_url.rpartition(".")[2][:6] != "sha256" else read_list(text, file)
        )
        if not found:
            raise ParametersError(
                f"{source.digest_url} holds no SHA-256 of {file}",
                f"give the digest that you trust with --digest {source.name}=SHA256",
            )
        return found

    async def _small(self, url: str, missing: str) -> str:
        for attempt in range(1, TRIES + 1):
            try:
                async with self._session.get(url) as response:
                    if response.status in (404, 410):
                        raise ParametersError(f"{missing}: {url} answered {response.status}", "is the version right?")
                    if response.status == 200:
                        return (await response.content.read(MAX_LIST)).decode("utf-8", errors="replace")
                    trouble = f"{url} answered {response.status} {response.reason}"
            except (aiohttp.ClientError, TimeoutError) as error:
                trouble = f"{url} cannot be fetched: {str(error) or type(error).__name__}"
            await asyncio.sleep(0.1 * attempt)
        raise Unreachable(trouble, "check the way there, or name a mirror with --mirror URL")

    async def fetch(self, files: list[File], folder: Path) -> None:
        """Fetch the files into a folder, one after the other; what is there with its digest is not asked for again."""
        for file in files:
            target = folder / file.file_name
            if target.is_file() and await asyncio.to_thread(sha256_of, target) == file.sha256:
                continue
            self.progress(f"fetching {file.url}")
            part = target.with_name(target.name + ".part")
            try:
                await self._download(file, part)
                os.replace(part, target)
            finally:
                part.unlink(missing_ok=True)

    async def _download(self, file: File, part: Path) -> None:
        for attempt in range(1, TRIES + 1):
            digest = hashlib.sha256()
            try:
                async with self._session.get(file.url) as response:
                    if response.status != 200:
                        raise ParametersError(f"{file.url} answered {response.status} {response.reason}")
                    with part.open("wb") as output:
                        async for chunk in response.content.iter_chunked(CHUNK):
                            output.write(chunk)
                            digest.update(chunk)
            except (aiohttp.ClientError, TimeoutError) as error:
                trouble = f"{file.url} cannot be fetched: {str(error) or type(error).__name__}"
                await asyncio.sleep(0.1 * attempt)
                continue
            if digest.hexdigest() != file.sha256:
                raise ParametersError(
                    f"{file.url} has the SHA-256 {digest.hexdigest()[:16]}..., its release says {file.sha256[:16]}...; "
                    f"it was thrown away",
                    "try again; if it stays so, the source is not to be trusted",
                )
            return
        raise Unreachable(trouble, "check the way there, or name a mirror with --mirror URL")


def read_list(text: str, file: str) -> str:
    """The digest of a file in a published list: one digest alone, or lines of digests and names."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    for words in lines:
        if _DIGEST.fullmatch(words[0].lower()) and len(words) > 1 and PurePosixPath(words[1].lstrip("*")).name == file:
            return words[0].lower()
    if len(lines) == 1 and len(lines[0]) == 1 and _DIGEST.fullmatch(lines[0][0].lower()):
        return lines[0][0].lower()
    return ""


def read_release(text: str, file: str) -> str:
    """The digest of an asset in what GitHub's API says about a release; empty when it does not say."""
    try:
        document: Any = json.loads(text)
        assets = {asset["name"]: asset.get("digest") or "" for asset in document["assets"]}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ""
    algorithm, _, digest = str(assets.get(file) or "").partition(":")
    return digest if algorithm == "sha256" and _DIGEST.fullmatch(digest) else ""


def sha256_of(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
