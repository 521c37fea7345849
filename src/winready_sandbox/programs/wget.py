"""wget as busybox has it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError, Refused, TimedOut
from winready_sandbox.programs import http1, record
from winready_sandbox.programs.net import addresses, endpoint_of, join_host_port

DEFAULT_TIMEOUT = 900.0
OPTIONS = ("q", "O", "T", "post-data")
USAGE = "Usage: wget [-q] [-O FILE] [-T SEC] [--post-data STR] URL...\n"


class _Failed(Exception):
    """Ends the transfer with a message and code 1."""


@dataclass
class _Options:
    """What one call asks for."""

    url: str = ""
    output: str = ""
    timeout: float = DEFAULT_TIMEOUT
    quiet: bool = False
    body: str | None = None


def _parse(process: Process) -> _Options:
    options = _Options()
    queue = process.argv[1:]
    while queue:
        item = queue.pop(0)
        if not item.startswith("-") or item == "-":
            options.url = item
            continue
        if item.startswith("--"):
            name, equals, value = item[2:].partition("=")
            if name != "post-data":
                raise _Failed(f"unrecognized option: {name}\n{USAGE}")
            record.note(process, "program", "wget", [name])
            options.body = value if equals else _next(name, queue)
            continue
        letters = item[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            # busybox for Windows is built without the timeout option (fact 1.3).
            if letter not in OPTIONS or (letter == "T" and process.windows):
                raise _Failed(f"unrecognized option: {letter}\n{USAGE}")
            record.note(process, "program", "wget", letter)
            if letter == "q":
                options.quiet = True
                continue
            _store(options, letter, letters or _next(letter, queue))
            break
    if not options.url:
        raise _Failed(f"missing URL\n{USAGE}")
    return options


def _next(name: str, queue: list[str]) -> str:
    if not queue:
        raise _Failed(f"option requires an argument: {name}\n{USAGE}")
    return queue.pop(0)


def _store(options: _Options, name: str, value: str) -> None:
    match name:
        case "O":
            options.output = value
        case "T" if value.replace(".", "", 1).isdigit():
            options.timeout = float(value)
        case "T":
            raise _Failed(f"invalid number '{value}'")


async def wget(process: Process) -> int:
    """Fetch one URL."""
    try:
        await _fetch(process, _parse(process))
    except _Failed as error:
        process.err(f"wget: {str(error).rstrip()}\n")
        return 1
    return 0


async def _fetch(process: Process, options: _Options) -> None:
    url, output = options.url, options.output
    for _ in range(5):
        full = url if "://" in url else f"http://{url}"
        parts = urlsplit(full)
        if parts.scheme != "http" or not parts.hostname:
            raise _Failed(f"not an http or ftp url: {url}")
        answer = await _exchange(process, full, options)
        if answer.status in (301, 302, 303, 307, 308) and answer.header("Location"):
            url = urljoin(full, answer.header("Location"))
            continue
        if answer.status >= 300:
            raise _Failed(f"server returned error: {answer.version} {answer.status} {answer.phrase}")
        name = output or parts.path.rpartition("/")[2] or "index.html"
        if name == "-":
            process.stdout.write(answer.body)
            if not options.quiet:
                process.err("writing to stdout\n-                    100% |***| written to stdout\n")
            return
        try:
            process.files.write(name, answer.body, process.cwd, who=process.identity)
        except FileError as error:
            raise _Failed(f"can't open '{name}': {error.text(process.container.os)}") from None
        if not options.quiet:
            size = len(answer.body)
            process.err(f"saving to '{name}'\n{name:<20} 100% |***| {size:5} 0:00:00 ETA\n'{name}' saved\n")
        return
    raise _Failed("too many redirections")


async def _exchange(process: Process, url: str, options: _Options) -> http1.Answer:
    parts, timeout = urlsplit(url), options.timeout
    host, port = parts.hostname or "", parts.port or 80
    try:
        address = (await addresses(process, host))[0]
    except NetworkError:
        raise _Failed(f"bad address '{host}'") from None
    if not options.quiet:
        process.err(f"Connecting to {parts.netloc.rpartition('@')[2]} ({join_host_port(address, port)})\n")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    sent = [("Host", parts.netloc), ("User-Agent", "Wget"), ("Connection", "close")]
    method, body = ("GET", b"") if options.body is None else ("POST", options.body.encode())
    if options.body is not None:
        sent += [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", str(len(body)))]
    try:
        connection = await endpoint_of(process).connect(address, port, timeout=timeout)
        try:
            connection.write(http1.request_bytes(method, target, sent, body))
            async with asyncio.timeout(process.container.clock.patience(timeout)):
                answer = await http1.read_answer(connection, method)
        finally:
            connection.close()
    except TimeoutError:
        raise _Failed("download timed out") from None
    except Refused:
        raise _Failed(f"can't connect to remote host ({address}): Connection refused") from None
    except TimedOut as error:
        given_up = f"can't connect to remote host ({address}): Operation timed out"
        raise _Failed(given_up if error.gave_up else "download timed out") from None
    except NetworkError:
        raise _Failed(f"can't connect to remote host ({address}): Host is unreachable") from None
    except (http1.BadAnswer, asyncio.IncompleteReadError):
        raise _Failed("bad response from server") from None
    if answer is None:
        raise _Failed("error getting response")
    return answer
