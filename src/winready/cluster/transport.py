"""HTTP to the API server: one session, a deadline on every call, retries that wait as the server asks.

A cluster under load answers 429 and 5xx and drops connections; none of that is a finding about
Windows, so it is retried here, in one place, until the caller's deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import random
import ssl
from collections.abc import AsyncIterator, Mapping
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
from winready.cluster.errors import ApiError, ConnectionFailed, DeadlineExceeded, ServerTrouble, api_error
from winready.cluster.kubeconfig import Target

CALL_SECONDS = 30.0
ATTEMPT_SECONDS = 15.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 10.0
RETRIED = frozenset({429, 500, 502, 503, 504})


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
        deadline: float = CALL_SECONDS,
        raw: bool = False,
    ) -> Answer:
        """One API call, repeated while the server asks for patience, until ``deadline`` wall seconds have passed."""
        loop = asyncio.get_running_loop()
        end = loop.time() + deadline
        data = None if body is None else msgspec.json.encode(body)
        last: Exception | None = None
        unsure = False
        renewed = False
        attempt = 0
        while (left := end - loop.time()) > 0:
            attempt += 1
            pause: float | None = None
            try:
                timeout = aiohttp.ClientTimeout(total=min(left, max(ATTEMPT_SECONDS, deadline / 2)))
                async with self._request(method, path, query, data, content_type, timeout) as response:
                    content = await response.read()
                    if response.status < 400:
                        return Answer(content if raw else _decoded(content, path), unsure)
                    error = api_error(response.status, _status(content))
                    if response.status == 401 and not renewed and await self.credentials.refused():
                        renewed = True
                        continue
                    if response.status not in RETRIED:
                        error.unsure = unsure
                        raise error
                    last = error
                    unsure = unsure or response.status >= 500
                    pause = _asked_pause(response)
            except (aiohttp.ClientError, TimeoutError, ssl.SSLError, OSError) as error:
                if not _worth_retrying(error):
                    raise self._unreachable(error) from None
                # What the server said before our time ran out tells more than that it ran out.
                last = last if isinstance(error, TimeoutError) and isinstance(last, ServerTrouble) else error
                unsure = True
            if pause is None:
                pause = min(0.1 * 2 ** min(attempt, 6), LONGEST_PAUSE) * random.uniform(0.5, 1.0)
            await asyncio.sleep(min(pause, max(end - loop.time(), 0)))
        raise self._given_up(method, path, deadline, attempt, last)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, idle: float | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response that is read as it comes (watch, followed logs); ``idle`` bounds the silence in wall seconds."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=ATTEMPT_SECONDS, sock_read=idle)
        async with self._request("GET", path, query, None, "", timeout) as response:
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
            detail = f"the certificate of {self.target.server} is not trusted: {error.certificate_error}"
            return ConnectionFailed(detail, "check certificate-authority in the kubeconfig, or the server's address")
        return ConnectionFailed(
            f"the API server at {self.target.server} cannot be reached: {_words(error)}",
            "check that the cluster is up and the server's address in the kubeconfig is right",
        )

    def _given_up(
        self, method: str, path: str, deadline: float, attempts: int, last: Exception | None
    ) -> ConnectionFailed | DeadlineExceeded | ApiError:
        if isinstance(last, ServerTrouble):
            return last
        if isinstance(last, (aiohttp.ClientConnectionError, OSError)) and not isinstance(last, TimeoutError):
            return self._unreachable(last)
        detail = f"{method} {path} did not end within {deadline:g} s ({attempts} attempts)"
        return DeadlineExceeded(detail, "the API server is slow or the network loses packets; look at its health")


def _worth_retrying(error: Exception) -> bool:
    """A wrong name, address or certificate stays wrong; a reset or a time-out may pass."""
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError)):
        return False
    if isinstance(error, aiohttp.InvalidURL):
        return False
    return not isinstance(error, aiohttp.ClientConnectorDNSError)


def _words(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error:
        return error.os_error.strerror or str(error.os_error)
    return str(error) or type(error).__name__


def _asked_pause(response: aiohttp.ClientResponse) -> float | None:
    try:
        return min(max(float(response.headers["Retry-After"]), SHORTEST_PAUSE), LONGEST_PAUSE)
    except (KeyError, ValueError):
        return None


def _decoded(content: bytes, path: str) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        raise ConnectionFailed(
            f"the answer to {path} is not JSON", "something between here and the API server answers in its place"
        ) from None


def _status(content: bytes) -> dict[str, Any]:
    try:
        status = msgspec.json.decode(content)
    except msgspec.DecodeError:
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
