"""wget as busybox has it."""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin, urlsplit

from winready.sandbox.machine.errors import FileError
from winready.sandbox.machine.process import Process
from winready.sandbox.network.endpoint import NetworkError, Refused, TimedOut
from winready.sandbox.programs import http1
from winready.sandbox.programs.net import addresses, endpoint_of, join_host_port

DEFAULT_TIMEOUT = 900.0
USAGE = (
    "Usage: wget [-cqS] [--spider] [-O FILE] [-o LOGFILE] [--header STR]\n\t[--post-data STR | --post-file FILE] "
    "[-Y on/off]\n\t[-P DIR] [-U AGENT] [-T SEC] URL...\n"
)


class _Failed(Exception):
    """Ends the transfer with a message and code 1."""


async def wget(process: Process) -> int:
    """Fetch one URL."""
    quiet = spider = False
    output, timeout, url, data = "", DEFAULT_TIMEOUT, "", ""
    headers: list[tuple[str, str]] = []
    queue = list(process.argv[1:])
    while queue:
        item = queue.pop(0)
        option, joined = (item, "") if item.startswith("--") else (item[:2], item[2:])
        if item.startswith("--") and "=" in item:
            option, _, joined = item.partition("=")
        # busybox for Windows is built without the timeout option (fact 1.3).
        takes_value = {"-O", "-P", "-U", "--header", "--post-data", "-o"} | (set() if process.windows else {"-T"})
        if item in ("--spider", "--no-check-certificate"):
            spider = spider or item == "--spider"
        elif option in takes_value:
            if not joined and not queue:
                process.err(f"wget: option requires an argument -- '{option.lstrip('-')}'\n{USAGE}")
                return 1
            value = joined or queue.pop(0)
            match option:
                case "-O":
                    output = value
                case "-T":
                    timeout = float(value) if value.replace(".", "", 1).isdigit() else DEFAULT_TIMEOUT
                case "--header":
                    name, _, text = value.partition(":")
                    headers.append((name.strip(), text.strip()))
                case "--post-data":
                    data = value
        elif item.startswith("-") and len(item) > 1:
            for letter in item[1:]:
                if letter not in "qcSn":
                    process.err(f"wget: unrecognized option: {letter}\n{USAGE}")
                    return 1
                quiet = quiet or letter == "q"
                if letter in "O":
                    break
        else:
            url = item
    if not url:
        process.err(USAGE)
        return 1
    try:
        await _fetch(process, url, headers, data, output, timeout, quiet=quiet, spider=spider)
    except _Failed as error:
        process.err(f"wget: {error}\n")
        return 1
    return 0


async def _fetch(
    process: Process,
    url: str,
    headers: list[tuple[str, str]],
    data: str,
    output: str,
    timeout: float,
    *,
    quiet: bool,
    spider: bool,
) -> None:
    for _ in range(5):
        full = url if "://" in url else f"http://{url}"
        parts = urlsplit(full)
        if parts.scheme != "http" or not parts.hostname:
            raise _Failed(f"not an http or ftp url: {url}")
        answer = await _exchange(process, full, headers, data, timeout, quiet=quiet, spider=spider)
        if answer.status in (301, 302, 303, 307, 308) and answer.header("Location"):
            url = urljoin(full, answer.header("Location"))
            continue
        if answer.status >= 300:
            raise _Failed(f"server returned error: {answer.version} {answer.status} {answer.phrase}")
        if spider:
            return
        name = output or parts.path.rpartition("/")[2] or "index.html"
        if name == "-":
            process.stdout.write(answer.body)
            if not quiet:
                process.err("writing to stdout\n-                    100% |***| written to stdout\n")
            return
        try:
            process.files.write(name, answer.body, process.cwd, who=process.identity)
        except FileError as error:
            raise _Failed(f"can't open '{name}': {error.text(process.container.os)}") from None
        if not quiet:
            process.err(f"saving to '{name}'\n{name:<20} 100% |***| {len(answer.body):5} 0:00:00 ETA\n'{name}' saved\n")
        return
    raise _Failed("too many redirections")


async def _exchange(
    process: Process, url: str, headers: list[tuple[str, str]], data: str, timeout: float, *, quiet: bool, spider: bool
) -> http1.Answer:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    try:
        address = (await addresses(process, host))[0]
    except NetworkError:
        raise _Failed(f"bad address '{host}'") from None
    if not quiet:
        process.err(f"Connecting to {parts.netloc.rpartition('@')[2]} ({join_host_port(address, port)})\n")
    method = "HEAD" if spider else "POST" if data else "GET"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    sent = [("Host", parts.netloc), ("User-Agent", "Wget"), ("Connection", "close"), *headers]
    if data:
        sent += [("Content-Length", str(len(data))), ("Content-Type", "application/x-www-form-urlencoded")]
    try:
        async with asyncio.timeout(process.container.clock.wall(timeout)):
            connection = await endpoint_of(process).connect(address, port, timeout=timeout * 2)
            try:
                connection.write(http1.request_bytes(method, target, sent, data.encode()))
                answer = await http1.read_answer(connection, method)
            finally:
                connection.close()
    except TimeoutError:
        raise _Failed("download timed out") from None
    except Refused:
        raise _Failed(f"can't connect to remote host ({address}): Connection refused") from None
    except TimedOut:
        raise _Failed(f"can't connect to remote host ({address}): Operation timed out") from None
    except NetworkError:
        raise _Failed(f"can't connect to remote host ({address}): Host is unreachable") from None
    except (http1.BadAnswer, asyncio.IncompleteReadError):
        raise _Failed("bad response from server") from None
    if answer is None:
        raise _Failed("error getting response")
    return answer
