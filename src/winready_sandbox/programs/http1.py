"""HTTP/1.1 as simulated servers and clients speak it over streams."""

from __future__ import annotations

import asyncio
import email.utils
import functools
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

from winready_sandbox.clock import wall_time
from winready_sandbox.programs.net import Stream

TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
_TAGS = re.compile(
    rb"\s*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[ >]", re.IGNORECASE
)


class BadAnswer(Exception):
    """Bytes that are no HTTP answer."""


@dataclass(frozen=True)
class Request:
    """A request as a handler sees it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    remote: tuple[str, int]
    local: tuple[str, int] = ("", 0)

    @property
    def path(self) -> str:
        """The path, unquoted, without the query."""
        return unquote(urlsplit(self.target).path) or "/"

    def value(self, name: str) -> str:
        """A form value: from the query, or from a form in the body."""
        pairs = parse_qsl(urlsplit(self.target).query, keep_blank_values=True)
        if self.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            pairs = parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True) + pairs
        return next((value for key, value in pairs if key == name), "")


@dataclass
class Response:
    """An answer; a body of text without a content type is a page or plain text, as Go's server guesses."""

    body: bytes | str = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False
    """Close without a word instead of answering."""

    def encode(self, *, head_only: bool = False, keep_alive: bool = True) -> bytes:
        """The answer as bytes."""
        body = self.body.encode() if isinstance(self.body, str) else self.body
        headers = dict(self.headers)
        headers.setdefault("Date", _date(int(wall_time())))
        headers.setdefault("Content-Length", str(len(body)))
        if body:
            headers.setdefault("Content-Type", HTML if _TAGS.match(body[:512]) else TEXT)
        if not keep_alive:
            headers.setdefault("Connection", "close")
        lines = [f"HTTP/1.1 {self.status} {reason(self.status)}", *(f"{k}: {v}" for k, v in headers.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if head_only else body)


Handler = Callable[[Request], Awaitable[Response]]


@functools.lru_cache(maxsize=16)
def _date(seconds: int) -> str:
    """A moment as headers write it."""
    return email.utils.formatdate(seconds, usegmt=True)


@functools.lru_cache(maxsize=1024)
def reason(status: int) -> str:
    """The words for a status code."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"status code {status}"


def error(message: str, status: int) -> Response:
    """An error as Go's http.Error writes it."""
    return Response(message + "\n", status, {"Content-Type": TEXT, "X-Content-Type-Options": "nosniff"})


async def serve(stream: Stream, handler: Handler, remote: tuple[str, int], local: tuple[str, int] = ("", 0)) -> None:
    """Answer requests on one connection until it ends."""
    while True:
        try:
            request = await read_request(stream, remote, local)
        except BadAnswer:
            stream.write(Response("400 Bad Request", 400).encode(keep_alive=False))
            break
        if request is None:
            break
        response = await handler(request)
        if response.hang_up:
            break
        keep = request.headers.get("connection", "").lower() != "close"
        keep = keep and response.headers.get("Connection", "") != "close"
        stream.write(response.encode(head_only=request.method == "HEAD", keep_alive=keep))
        if not keep:
            break
    stream.close()


async def read_request(stream: Stream, remote: tuple[str, int], local: tuple[str, int]) -> Request | None:
    """The next request, or None when the peer is done."""
    line = (await stream.readline()).decode("latin-1").strip()
    if not line:
        return None
    parts = line.split()
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadAnswer(line)
    headers = await _read_headers(stream)
    lowered = {name.lower(): value for name, value in headers}
    try:
        body = await _read_body(stream, lowered, until_close=False)
    except (asyncio.IncompleteReadError, ValueError):
        return None
    return Request(parts[0], parts[1], lowered, body, remote, local)


async def _read_headers(stream: Stream) -> list[tuple[str, str]]:
    headers = []
    if arrived := stream.take_head():
        for line in arrived.decode("latin-1").split("\r\n")[:-2]:
            name, _, value = line.partition(":")
            headers.append((name.strip(), value.strip()))
        return headers
    while line := (await stream.readline()).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers.append((name.strip(), value.strip()))
    return headers


async def _read_body(stream: Stream, headers: dict[str, str], *, until_close: bool) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int((await stream.readline()).split(b";")[0] or b"0", 16):
            body += await stream.readexactly(size)
            await stream.readline()
        await stream.readline()
        return body
    if "content-length" in headers:
        return await stream.readexactly(int(headers["content-length"]))
    if not until_close:
        return b""
    body = b""
    while data := await stream.read():
        body += data
    return body


@dataclass(frozen=True)
class Answer:
    """A response as a client sees it."""

    status: int
    phrase: str
    headers: list[tuple[str, str]]
    body: bytes
    version: str = "HTTP/1.1"

    def header(self, name: str) -> str:
        """The first header of that name."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")


@dataclass(frozen=True)
class Head:
    """Status line and headers, before the body is read."""

    version: str
    status: int
    phrase: str
    headers: list[tuple[str, str]]


async def read_head(stream: Stream) -> Head | None:
    """The beginning of an answer; None when the peer closed without a word."""
    line = (await stream.readline()).decode("latin-1").strip()
    if not line:
        return None
    version, _, rest = line.partition(" ")
    code, _, phrase = rest.partition(" ")
    if not version.startswith("HTTP/") or not code.isdigit():
        raise BadAnswer(line)
    return Head(version, int(code), phrase, await _read_headers(stream))


async def read_rest(stream: Stream, head: Head, method: str) -> bytes:
    """The body that follows a head."""
    if method == "HEAD" or head.status in (204, 304) or head.status < 200:
        return b""
    return await _read_body(stream, {key.lower(): value for key, value in head.headers}, until_close=True)


def keeps(head: Head) -> bool:
    """Whether the connection can be used again after that answer."""
    names = {name.lower(): value.lower() for name, value in head.headers}
    bounded = "content-length" in names or "transfer-encoding" in names or head.status in (204, 304)
    return bounded and head.version == "HTTP/1.1" and names.get("connection") != "close"


async def read_answer(stream: Stream, method: str = "GET") -> Answer | None:
    """A whole answer; None when the peer closed without a word."""
    head = await read_head(stream)
    if head is None:
        return None
    body = await read_rest(stream, head, method)
    return Answer(head.status, head.phrase, head.headers, body, head.version)


def request_bytes(method: str, target: str, headers: list[tuple[str, str]], body: bytes = b"") -> bytes:
    """A request as bytes."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body
