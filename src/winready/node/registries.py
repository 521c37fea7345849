"""Asking a registry about an image, as a container runtime would: anonymously, through the machine's proxies.

Only a manifest is read, never a layer. What a registry says is data: its texts are not shown, its tokens not kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import aiohttp

from winready.node.parameters import Proxy, RegistryMirror
from winready.spec.windows import build_number

PATIENCE = 10.0
"""Seconds for one registry to say all that it is asked."""
LARGEST = 4 * 1024 * 1024
INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME = r"[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*"
_HOST = rf"{_NAME}(?:\.{_NAME})+(?::\d{{1,5}})?|{_NAME}:\d{{1,5}}|localhost"
_REFERENCE = re.compile(
    rf"(?:(?P<host>{_HOST})/)?(?P<path>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_CHALLENGE = re.compile(r'(?<!\w)(\w+)="([^"]*)"')
State = Literal["found", "missing", "refused", "silent", "garbled"]


@dataclass(frozen=True)
class Reference:
    """The name of an image, taken apart."""

    host: str
    path: str
    tag: str
    digest: str

    @property
    def wanted(self) -> str:
        """What is asked for: the digest, where one is given."""
        return self.digest or self.tag


@dataclass(frozen=True)
class Entry:
    """What an image has for one platform."""

    os: str
    architecture: str
    build: int | None
    """None: for every build."""


@dataclass(frozen=True)
class Answer:
    """What is known of an image after a registry was asked."""

    state: State
    registry: str
    """Who was asked last: host, or host and port."""
    why: str = ""
    digest: str = ""
    entries: tuple[Entry, ...] = ()


class _Unusable(Exception):
    """A registry did not say anything of use."""

    def __init__(self, state: State, why: str) -> None:
        super().__init__(why)
        self.state = state
        self.why = why


def parse_reference(image: str) -> Reference | None:
    """The parts of an image's name, with what is left out filled in as runtimes do; None for what is no name."""
    match = _REFERENCE.fullmatch(image)
    if match is None:
        return None
    host, path = match["host"] or "docker.io", match["path"]
    if host == "docker.io" and "/" not in path:
        path = f"library/{path}"
    return Reference(host, path, match["tag"] or ("" if match["digest"] else "latest"), match["digest"] or "")


class Registries:
    """One session; mirrors are asked first, as the machine would."""

    def __init__(self, proxy: Proxy, mirrors: list[RegistryMirror]) -> None:
        self._proxy = proxy
        self._mirrors = mirrors

    async def __aenter__(self) -> Self:
        # Proxies are chosen here: the session itself would also send what it finds in a .netrc.
        self._session = aiohttp.ClientSession(trust_env=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def ask(self, image: str) -> Answer:
        """What the mirrors and the registry of an image say about it; the first one that has it decides."""
        reference = parse_reference(image)
        if reference is None:
            return Answer("garbled", "", "its name cannot be read")
        answer = Answer("silent", reference.host)
        for base, query in self._places(reference.host):
            registry = urlsplit(base).netloc
            try:
                async with asyncio.timeout(PATIENCE):
                    digest, entries = await self._image(f"{base}/v2/{reference.path}", query, reference)
                return Answer("found", registry, digest=digest, entries=tuple(entries))
            except _Unusable as error:
                answer = Answer(error.state, registry, error.why)
            except TimeoutError:
                answer = Answer("silent", registry, f"no answer within {PATIENCE:g} s")
            except (aiohttp.ClientError, OSError, ValueError) as error:
                answer = Answer("silent", registry, _words(error))
        return answer

    def _places(self, host: str) -> Iterator[tuple[str, dict[str, str]]]:
        for mirror in self._mirrors:
            if mirror.host == host:
                yield mirror.endpoint, {"ns": host}
        name = host.rpartition(":")[0] or host
        plain = name == "localhost" or name.startswith("127.")
        yield f"{'http' if plain else 'https'}://{'registry-1.docker.io' if host == 'docker.io' else host}", {}

    async def _image(self, base: str, query: dict[str, str], asked: Reference) -> tuple[str, list[Entry]]:
        url = f"{base}/manifests/{asked.wanted}"
        body, headers, token = await self._get(url, query, ", ".join(INDEXES + MANIFESTS), asked.path)
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        for said in (asked.digest, headers.get("Docker-Content-Digest", "")):
            if said.startswith("sha256:") and said != digest:
                raise _Unusable("garbled", "it answers with another content than the digest that it names")
        document = _mapping(_json(body))
        if isinstance(document.get("manifests"), list):
            return digest, [_entry(_mapping(_mapping(item).get("platform"))) for item in document["manifests"]]
        config = str(_mapping(document.get("config")).get("digest") or "")
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", config):
            raise _Unusable("garbled", "it answers with something that is no manifest")
        body, _, _ = await self._get(f"{base}/blobs/{config}", query, "*/*", asked.path, token)
        if f"sha256:{hashlib.sha256(body).hexdigest()}" != config:
            raise _Unusable("garbled", "it answers with another content than the digest that it names")
        return digest, [_entry(_mapping(_json(body)))]

    async def _get(
        self, url: str, query: dict[str, str], accept: str, path: str, token: str = ""
    ) -> tuple[bytes, Any, str]:
        """A document, and the token that it took to get it."""
        for attempt in (1, 2):
            headers = {"Accept": accept} | ({"Authorization": f"Bearer {token}"} if token else {})
            async with self._session.get(url, params=query, headers=headers, proxy=self._proxy_for(url)) as response:
                if response.status == 401 and attempt == 1 and not token:
                    token = await self._token(url, response.headers.get("WWW-Authenticate", ""), path)
                    continue
                if response.status in (401, 403):
                    raise _Unusable("refused", f"it answers {response.status} to whoever has no account")
                if response.status == 404:
                    raise _Unusable("missing", "it answers 404")
                if response.status != 200:
                    raise _Unusable("silent", f"it answers {response.status}")
                return await _bounded(response), response.headers, token
        raise _Unusable("refused", "it answers 401 to a token of its own")

    async def _token(self, url: str, challenge: str, path: str) -> str:
        """The token that everybody gets; the challenge of a registry says from where."""
        scheme, _, rest = challenge.partition(" ")
        said = dict(_CHALLENGE.findall(rest))
        realm = urlsplit(said.get("realm", ""))
        if scheme.lower() != "bearer":
            raise _Unusable("refused", "it wants an account")
        if realm.scheme not in ("https", urlsplit(url).scheme) or not realm.hostname or realm.username:
            raise _Unusable("garbled", "it names no place that gives out tokens")
        query = {"service": said["service"]} if said.get("service") else {}
        query["scope"] = said.get("scope") or f"repository:{path}:pull"
        async with self._session.get(realm.geturl(), params=query, proxy=self._proxy_for(realm.geturl())) as response:
            if response.status != 200:
                raise _Unusable("refused", f"its tokens are not for everybody ({response.status})")
            document = _mapping(_json(await _bounded(response)))
        token = document.get("token") or document.get("access_token")
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
            raise _Unusable("garbled", "it gives out no token")
        return token

    def _proxy_for(self, url: str) -> str | None:
        """The machine's own proxy, or where it has none this computer's."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        if self._proxy.http or self._proxy.https:
            chosen = self._proxy.https if parts.scheme == "https" else self._proxy.http
            return None if not chosen or _spared(host, self._proxy.no_proxy) else chosen
        if urllib.request.proxy_bypass(host):
            return None
        return urllib.request.getproxies().get(parts.scheme)


def _spared(host: str, no_proxy: list[str]) -> bool:
    for item in no_proxy:
        if host == item or (item.startswith(".") and host.endswith(item)):
            return True
        try:
            if ipaddress.ip_address(host) in ipaddress.ip_network(item):
                return True
        except ValueError:
            continue
    return False


def _entry(platform: dict[str, Any]) -> Entry:
    return Entry(
        str(platform.get("os") or ""),
        str(platform.get("architecture") or ""),
        build_number(str(platform.get("os.version") or "")),
    )


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = await response.content.read(LARGEST + 1)
    while len(body) <= LARGEST and (more := await response.content.read(LARGEST + 1 - len(body))):
        body += more
    if len(body) > LARGEST:
        raise _Unusable("garbled", "it answers with more than any manifest has")
    return body


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise _Unusable("garbled", "it answers with something that is no manifest") from None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _words(error: Exception) -> str:
    """What is in the way, in our own words: those of libraries may name a proxy with its password."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name cannot be resolved"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return "its certificate is not trusted here"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "the proxy cannot be reached"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answers {error.status}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"it cannot be reached ({error.os_error.strerror or 'no connection'})"
    return "the connection ends without an answer"
