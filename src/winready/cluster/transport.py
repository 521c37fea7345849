"""HTTP to the API server: one session, a deadline on every call, retries that wait as the server asks.

A cluster under load answers 429 and 5xx and drops connections; load balancers answer in its place, with pages or with
nothing. None of that is a finding about Windows, so it is retried here, in one place, until the caller's deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import random
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from winready import __version__
from winready.cluster.credentials import Credentials
from winready.cluster.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    ServerTrouble,
    Unauthorized,
    api_error,
)
from winready.cluster.kubeconfig import Target

CALL_SECONDS = 30.0
"""How long a server is asked that has never answered."""
OUTAGE_SECONDS = 180.0
"""How long a run asks a server that it knows: as long as one takes to be replaced, or to get through a storm."""
REFUSED_SECONDS = 30.0
"""How long credentials that were good before are tried again: whoever checks them may be away for a moment."""
ATTEMPT_SECONDS = 15.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
LONGEST_ASKED = 60.0
"""The longest pause that a server may ask for."""
CONTENDED = 8
"""How often a write is tried again that met another one."""
FIRST_HANDSHAKES = 5
"""How often TLS is tried with a server that never answered: it may be none that speaks it."""
FIRST_REFUSALS = 5
"""How often a port is tried that nobody listens on and nobody ever did: some two seconds. In a pod it may be its own
network that is not there yet; then a server is waited for as any other."""
RETRIED = frozenset({429, 500, 502, 503, 504})
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Pages of load balancers may be in any encoding."""
PRECONDITION = "Precondition failed"
"""How the API server says that an object is not the one that was meant."""
_ERRNO = re.compile(r"\[Errno (\d+)\]")
_OBJECT = re.compile(r" ?(?:\b\w{1,20}:)?<[^<>]* object at 0x[0-9a-f]+>")
Expected = Callable[[Any], bool]
"""Whether a document can be the answer to what was asked."""


@dataclass(frozen=True)
class Answer:
    """A finished call. ``unsure`` says that an earlier attempt may have taken effect without our seeing it."""

    body: Any
    unsure: bool


class Transport:
    """The connection to one API server."""

    def __init__(self, target: Target, connector: aiohttp.BaseConnector | None = None) -> None:
        """``connector``: another way to the server than TCP."""
        self.target = target
        self._connector = connector
        self.credentials = Credentials(target)
        self._proxy = _proxy_options(target.proxy_url or ("" if connector else _environment_proxy(target.server)))
        self._session: aiohttp.ClientSession | None = None
        self.patience = CALL_SECONDS
        """Wall seconds after which a call is given up, unless it says otherwise."""
        self._heard = False
        """Whether anybody has ever answered."""
        self._accepted = False
        """Whether a call was ever answered as it should be."""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=self._connector or aiohttp.TCPConnector(limit=64, keepalive_timeout=30),
            headers={"User-Agent": f"winready/{__version__}", "Accept": "application/json"},
            auto_decompress=True,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        """The open session."""
        if self._session is None:
            raise RuntimeError("the transport is used outside of its 'async with'")
        return self._session

    async def options(self) -> dict[str, Any]:
        """What every request and WebSocket to this server needs."""
        options: dict[str, Any] = {
            "ssl": await self.credentials.tls(),
            "headers": await self.credentials.headers(),
        }
        options |= self._proxy
        if self.target.tls_server_name:
            options["server_hostname"] = self.target.tls_server_name
        return options

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        deadline: float | None = None,
        media: str = "",
        expected: Expected | None = None,
    ) -> Answer:
        """One API call, repeated while the server asks for patience, until ``deadline`` wall seconds have passed.

        What is not ``expected`` was not said by the API server, and is asked again; so is a write that met another.
        An answer that is no document is taken as bytes, if it is of the type ``media``.
        """
        loop = asyncio.get_running_loop()
        start = loop.time()
        data = None if body is None else msgspec.json.encode(body)
        trouble = _Trouble()
        while (left := start + self._limit(deadline) - loop.time()) > 0:
            trouble.attempts += 1
            pause: float | None = None
            try:
                timeout = aiohttp.ClientTimeout(total=min(left, ATTEMPT_SECONDS * (2 if trouble.timeouts else 1)))
                async with self._request(method, path, query, data, content_type, timeout) as response:
                    content = await response.read()
                    self._heard = True
                    if response.status < 400 and (found := _understood(response, content, media, expected)):
                        self._accepted = True
                        return Answer(found.body, trouble.unsure)
                    if response.status < 400 or _from_somebody_else(response):
                        trouble.note(_stranger(path), unsure=True)
                    else:
                        error = api_error(response.status, _status(content))
                        if not await self._passing(error, trouble):
                            error.unsure = trouble.unsure
                            raise error
                        trouble.note(error, unsure=response.status >= 500)
                        pause = _asked_pause(response)
            except (aiohttp.ClientError, TimeoutError, ssl.SSLError, OSError) as error:
                if not self._worth_retrying(error, trouble.attempts):
                    raise self._unreachable(error) from None
                trouble.note(error, unsure=not isinstance(error, aiohttp.ClientConnectorError))
            if pause is None:
                pause = min(0.1 * 2 ** min(trouble.attempts, 6), LONGEST_PAUSE) * random.uniform(0.5, 1.0)
            await asyncio.sleep(min(pause, max(start + self._limit(deadline) - loop.time(), 0)))
        raise self._given_up(method, path, self._limit(deadline), trouble)

    def _limit(self, deadline: float | None) -> float:
        """Wall seconds for a call; who has never answered is not waited for as long as who has."""
        if deadline is not None:
            return deadline
        if self._accepted:
            return self.patience
        return min(self.patience, 2 * CALL_SECONDS if self._heard else CALL_SECONDS)

    async def _passing(self, error: ApiError, trouble: _Trouble) -> bool:
        """Whether a refusal may pass, so that the same call is worth another try."""
        if error.code == 401:
            now = asyncio.get_running_loop().time()
            if trouble.refused_since is None:
                trouble.refused_since = now
                if await self.credentials.refused():
                    return True
            return self._accepted and now < trouble.refused_since + REFUSED_SECONDS
        if isinstance(error, Conflict) and not isinstance(error, AlreadyExists):
            # Without causes it is about nobody's fields, but about when: somebody else was writing.
            trouble.conflicts += 1
            passing = not error.causes and PRECONDITION not in error.message
            return passing and trouble.conflicts <= CONTENDED
        return error.code in RETRIED

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, idle: float | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response that is read as it comes (watch, followed logs); ``idle`` bounds the silence in wall seconds."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=ATTEMPT_SECONDS, sock_read=idle)
        async with self._request("GET", path, query, None, "", timeout) as response:
            self._heard = True
            if _from_somebody_else(response):
                raise _stranger(path)
            if response.status >= 400:
                if response.status == 401:
                    await self.credentials.refused()
                raise api_error(response.status, _status(await response.read()))
            yield response

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        options = await self.options()
        if data is not None:
            options["headers"] = [*options["headers"], ("Content-Type", content_type)]
        url = self.target.server + path
        async with self.session.request(
            method, url, params=query, data=data, timeout=timeout, allow_redirects=False, **options
        ) as response:
            yield response

    def _unreachable(self, error: Exception) -> ConnectionFailed:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            why = getattr(error.certificate_error, "verify_message", "") or error.certificate_error
            detail = f"the certificate of {self.target.server} is not trusted: {why}"
            return ConnectionFailed(detail, "check certificate-authority in the kubeconfig, or the server's address")
        return ConnectionFailed(
            f"the API server at {self.target.server} cannot be reached: {_words(error)}",
            "check that the cluster is up and the server's address in the kubeconfig is right",
        )

    def _given_up(
        self, method: str, path: str, deadline: float, trouble: _Trouble
    ) -> ConnectionFailed | DeadlineExceeded | ApiError:
        last = trouble.last
        if isinstance(last, (ApiError, ConnectionFailed)):
            return last
        if isinstance(last, (aiohttp.ClientConnectionError, OSError)) and not isinstance(last, TimeoutError):
            return self._unreachable(last)
        tries = f"{trouble.attempts} attempt{'s' if trouble.attempts > 1 else ''}"
        if not self._heard:
            detail = (
                f"the API server at {self.target.server} does not answer ({method} {path}, {tries}, {deadline:g} s)"
            )
            step = "check its address in the kubeconfig, and whether a firewall or proxy swallows what is sent there"
            return DeadlineExceeded(detail, step)
        detail = f"{method} {path} did not end within {deadline:g} s ({tries})"
        return DeadlineExceeded(detail, "the API server is slow or the network loses packets; look at its health")

    def _worth_retrying(self, error: Exception, attempts: int) -> bool:
        """A wrong name, address or certificate stays wrong; a reset or a time-out may pass."""
        if isinstance(error, (aiohttp.ClientConnectorCertificateError, aiohttp.InvalidURL)):
            return False
        if isinstance(error, aiohttp.ClientConnectorSSLError):
            return self._heard or attempts < FIRST_HANDSHAKES
        if _refused(error) and not self.target.own:
            return self._heard or attempts < FIRST_REFUSALS
        return self._heard or not isinstance(error, aiohttp.ClientConnectorDNSError)


@dataclass
class _Trouble:
    """What has come of a call so far."""

    attempts: int = 0
    timeouts: int = 0
    conflicts: int = 0
    refused_since: float | None = None
    unsure: bool = False
    last: Exception | None = None

    def note(self, error: Exception, *, unsure: bool) -> None:
        """One more attempt came to this; ``unsure`` whether it was carried out."""
        self.unsure = self.unsure or unsure
        if not isinstance(error, Unauthorized):
            # Credentials are given up when nothing else was heard for so long, not when others stood in the way.
            self.refused_since = None
        if isinstance(error, TimeoutError):
            self.timeouts += 1
            # What the server said before our time ran out tells more than that it ran out.
            if isinstance(self.last, ServerTrouble):
                return
        self.last = error


@dataclass(frozen=True)
class _Understood:
    body: Any


def _understood(
    response: aiohttp.ClientResponse, content: bytes, media: str, expected: Expected | None
) -> _Understood | None:
    """What an answer says, if it is one of an API server."""
    if media:
        return _Understood(content) if response.content_type == media else None
    try:
        body = msgspec.json.decode(content)
    except NOT_JSON:
        return None
    return _Understood(body) if expected is None or expected(body) else None


def _from_somebody_else(response: aiohttp.ClientResponse) -> bool:
    """A page for people: an API server never answers with one."""
    return response.content_type == "text/html" and response.status not in RETRIED


def _stranger(path: str) -> ConnectionFailed:
    return ConnectionFailed(
        f"the answer to {path} is none of an API server",
        "something between here and the API server answers in its place",
    )


def _refused(error: Exception) -> bool:
    return isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError)


def _words(error: Exception) -> str:
    """What happened, in the words of the operating system: asyncio's and aiohttp's name objects of this process."""
    system = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(system, (ssl.SSLError, socket.gaierror)):
        return system.strerror or str(system)
    if isinstance(system, OSError) and system.errno:
        return os.strerror(system.errno)
    if isinstance(system, OSError) and (found := _ERRNO.search(str(system))):
        # Several addresses were tried: asyncio tells of all of them in one text.
        return os.strerror(int(found[1]))
    return _OBJECT.sub("", str(system)).strip() or type(system).__name__


def _asked_pause(response: aiohttp.ClientResponse) -> float | None:
    try:
        return min(max(float(response.headers["Retry-After"]), SHORTEST_PAUSE), LONGEST_ASKED)
    except (KeyError, ValueError):
        return None


def _status(content: bytes) -> dict[str, Any]:
    try:
        status = msgspec.json.decode(content)
    except NOT_JSON:
        return {"message": content[:300].decode(errors="replace").strip()}
    return status if isinstance(status, dict) else {}


def _environment_proxy(server: str) -> str:
    """The proxy that the environment names for a server, by kubectl's rules: never for this machine itself.

    aiohttp would look too, but on every request, and then also for passwords in ~/.netrc.
    """
    url = URL(server)
    host = url.host or ""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return ""
    if host == "localhost" or proxy_bypass(f"{host}:{url.port}"):
        return ""
    return getproxies_environment().get(url.scheme, "")


def _proxy_options(proxy: str) -> dict[str, Any]:
    if not proxy:
        return {}
    url = URL(proxy)
    options: dict[str, Any] = {"proxy": url.with_user(None)}
    if url.user is not None:
        # aiohttp makes Proxy-Authorization of it, with and without TLS beyond the proxy.
        options["proxy_headers"] = {"Authorization": aiohttp.encode_basic_auth(url.user, url.password or "")}
    return options
