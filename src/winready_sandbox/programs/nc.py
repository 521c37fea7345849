"""nc: OpenBSD's on Linux, netcat 1.12 on Windows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError, Refused, TimedOut
from winready_sandbox.programs import record
from winready_sandbox.programs.net import addresses, endpoint_of
from winready_sandbox.programs.wincat import copy_both_ways

SERVICES = {22: "ssh", 53: "domain", 80: "http", 443: "https", 3389: "ms-wbt-server"}


OPTIONS = "tuvzw"


@dataclass
class Options:
    """What one call asks for."""

    zero: bool = False
    verbose: bool = False
    udp: bool = False
    wait: float = 0.0
    host: str = ""
    port: int = 0


def _parse(process: Process) -> Options:
    options = Options()
    words: list[str] = []
    queue = process.argv[1:]
    while queue:
        item = queue.pop(0)
        if not item.startswith("-") or item == "-":
            words.append(item)
            continue
        letters = item[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter not in OPTIONS:
                raise ValueError(letter)
            record.note(process, "program", "nc", letter)
            if letter == "w":
                options.wait = float(letters or queue.pop(0))
                break
            options.zero = options.zero or letter == "z"
            options.verbose = options.verbose or letter == "v"
            options.udp = options.udp or letter == "u"
    host, port = words
    options.host, options.port = host, int(port)
    return options


async def nc(process: Process) -> int:
    """Connect or probe."""
    try:
        options = _parse(process)
    except (ValueError, IndexError):
        usage = "usage: nc [-46DdFhklNnrStUuvZz] [-w timeout] [destination] [port]\n"
        process.err("invalid usage: try -h\n" if process.windows else usage)
        return 1
    try:
        address = (await addresses(process, options.host))[0]
    except NetworkError:
        if process.windows:
            process.err(f"{options.host}: forward host lookup failed: h_errno 11001: HOST_NOT_FOUND\n")
        else:
            process.err(f'nc: getaddrinfo for host "{options.host}" port {options.port}: Name does not resolve\n')
        return 1
    done = _udp(process, options, address) if options.udp else _tcp(process, options, address)
    return 0 if await done else 1


def _tell(process: Process, options: Options, address: str, error: NetworkError | None) -> None:
    """The one line about an attempt, in each program's words."""
    port, name = options.port, SERVICES.get(options.port)
    if process.windows:
        if not options.verbose:
            return
        where = f"{options.host if options.host != address else '(UNKNOWN)'} [{address}] {port} ({name or '?'})"
        words = "TIMEDOUT" if isinstance(error, TimedOut) else "connection refused"
        words = words if error is None or isinstance(error, TimedOut | Refused) else "no route to host"
        process.err(f"{where} open\n" if error is None else f"{where}: {words}\n")
    elif error is None:
        if options.verbose:
            protocol = "udp" if options.udp else "tcp"
            process.err(f"Connection to {options.host} {port} port [{protocol}/{name or '*'}] succeeded!\n")
    elif options.verbose or not options.zero:
        head = f"nc: connect to {options.host} port {port} (tcp)"
        if isinstance(error, TimedOut):
            process.err(
                f"{head} {'failed: Operation timed out' if error.gave_up else 'timed out: Operation in progress'}\n"
            )
        else:
            process.err(
                f"{head} failed: {'Connection refused' if isinstance(error, Refused) else 'Host is unreachable'}\n"
            )


async def _udp(process: Process, options: Options, address: str) -> bool:
    """Send the input as one datagram, and show what comes back in time; nobody knows whether it arrived."""
    _tell(process, options, address, None)
    payload = await process.stdin.read_all()
    if options.zero or not payload:
        return True
    try:
        answer = await endpoint_of(process).exchange(address, options.port, payload, timeout=options.wait or 60.0)
    except NetworkError as error:
        return isinstance(error, TimedOut)
    process.stdout.write(answer)
    if options.wait:
        await process.container.clock.sleep(options.wait)
    return True


async def _tcp(process: Process, options: Options, address: str) -> bool:
    try:
        connection = await endpoint_of(process).connect(address, options.port, timeout=options.wait)
    except NetworkError as error:
        _tell(process, options, address, error)
        return False
    try:
        _tell(process, options, address, None)
        if not options.zero:
            copying = copy_both_ways(process, connection, end_with_peer=True)
            limit = process.container.clock.patience(options.wait) if options.wait else None
            try:
                async with asyncio.timeout(limit):
                    await copying
            except TimeoutError:
                pass
    finally:
        connection.close()
    return True
