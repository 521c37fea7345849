"""Where a version is read from: the package, saved files, an e2e.test, or a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import aiohttp

from winready.cluster.client import Client
from winready.cluster.errors import ApiError, ConnectionFailed, NotFound
from winready.cluster.kubeconfig import Target
from winready.features.audit.snapshot import HEADER, Snapshot, SnapshotError, bundled, parse
from winready.lint import gates, openapi
from winready.spec.packed import PackedError, read_packed
from winready.spec.versions import Version
from winready.upstream.explained import folded
from winready.upstream.listing import Listing, ListingError, parse_listing

LARGEST = 64 << 20
"""Bytes of a file or an answer; the OpenAPI of 1.36 has 4 million, pretty-printed."""
ASK_SECONDS = 60.0
_DUMPED = (b'"ContainerHierarchyTexts"', b'"ComponentTexts"', b'"LeafNodeText"')


class SourceError(ValueError):
    """Something that cannot be audited; the message says what is wrong with it."""


def known(text: str) -> Snapshot | None:
    """The bundled snapshot of a version such as ``1.36``, ``v1.36`` or ``1.36.3``; None if it is no version."""
    try:
        version = Version.parse(text)
    except ValueError:
        return None
    found = bundled().get(str(version))
    if found is None:
        raise SourceError(
            f"nothing is bundled about Kubernetes {version}, only about {', '.join(bundled())}; give a file instead"
        )
    return found


def nearest(minor: int | None) -> Snapshot:
    """The bundled version to compare with: the same one, or else the newest that is older."""
    snapshots = list(bundled().values())
    older = [one for one in snapshots if minor is None or (one.minor or 0) <= minor]
    return (older or snapshots[:1])[-1]


def read_files(texts: Iterable[str]) -> Snapshot:
    """One version from a bundled snapshot's name or from files, whose kinds are told by what is in them."""
    found: list[Snapshot] = []
    for text in texts:
        path = Path(text)
        # A file called 1.36 is a file, or nobody could ever name it.
        snapshot = None if path.exists() else known(text)
        found.append(snapshot or _read_file(path))
    return _joined(found)


def with_listing(snapshot: Snapshot, listing: Listing) -> Snapshot:
    """A version with the specs of an e2e.test instead of its own."""
    specs = folded(listing.texts)
    return replace(snapshot, specs=specs.windows, linux_only=specs.linux_only)


async def ask(target: Target) -> tuple[Snapshot, list[str]]:
    """What the API server of a cluster says of itself, and what it would not say."""
    notes: list[str] = []
    async with Client.connect(target) as client:
        version = str((await client.version()).get("gitVersion", ""))
        try:
            data = await _get(client, "/openapi/v3/api/v1")
        except NotFound:
            data = await _get(client, "/openapi/v2")
        try:
            described = openapi.read(data)
        except openapi.OpenApiError as error:
            raise SourceError(f"the OpenAPI document of {target.server} {error}") from None
        try:
            switches = gates.read(await _get(client, "/metrics"))
        except ApiError as error:
            notes.append(f"feature gates were not audited: /metrics answers {error.message}")
            switches = None
        except gates.GatesError as error:
            notes.append(f"feature gates were not audited: /metrics {error}")
            switches = None
    try:
        Version.parse(version)
    except ValueError:
        version = described.version
    return Snapshot(target.server, version.removeprefix("v"), described.fields, switches), notes


async def _get(client: Client, path: str) -> bytes:
    """One answer, whole but bounded."""
    data = bytearray()
    try:
        async with (
            asyncio.timeout(ASK_SECONDS),
            client.transport.stream(path, {}, idle=ASK_SECONDS) as response,
        ):
            async for chunk in response.content.iter_chunked(1 << 16):
                data += chunk
                if len(data) > LARGEST:
                    raise SourceError(f"the answer to {path} is larger than {LARGEST >> 20} MiB")
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise ConnectionFailed(
            f"GET {path} did not end: {error or type(error).__name__}", "look at the health of the API server"
        ) from None
    return bytes(data)


def _read_file(path: Path) -> Snapshot:
    try:
        data = read_packed(path, LARGEST)
        return _recognised(data, str(path))
    except (PackedError, SnapshotError, openapi.OpenApiError, gates.GatesError) as error:
        raise SourceError(f"{path} {error}") from None
    except ListingError as error:
        raise SourceError(f"{error}, nor is it OpenAPI, metrics or a snapshot") from None


def _recognised(data: bytes, source: str) -> Snapshot:
    start = data[: 1 << 16].lstrip()
    if not start:
        raise SourceError(f"{source} is empty")
    if start.startswith(HEADER.encode()):
        return parse(data.decode("utf-8", errors="replace"), source)
    if start.startswith(b"{") and not any(word in start for word in _DUMPED):
        described = openapi.read(data)
        return Snapshot(source, described.version, described.fields)
    if gates.METRIC.encode() in data or start.startswith(b"# HELP"):
        return Snapshot(source, "", gates=gates.read(data))
    return with_listing(Snapshot(source, ""), parse_listing(data, source))


def _joined(parts: list[Snapshot]) -> Snapshot:
    """Several files about one version; of two that say the same, the later one counts."""
    versions = {one.minor: one.version for one in parts if one.minor is not None}
    if len(versions) > 1:
        names = " and ".join(sorted(versions.values()))
        raise SourceError(f"files of several versions are given as one: {names}")
    result = Snapshot(", ".join(one.source for one in parts), next(iter(versions.values()), ""))
    for one in parts:
        told = {
            name: value
            for name in ("fields", "gates", "specs", "linux_only")
            if (value := getattr(one, name)) is not None
        }
        result = replace(result, **told)
    return result
