"""nc: OpenBSD's on Linux, netcat 1.12 on Windows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import AddressInUse, NetworkError, Refused, TimedOut
from winready_sandbox.programs.net import addresses, endpoint_of
from winready_sandbox.programs.wincat import copy_both_ways
from winready_sandbox.streams import Connection

SERVICES = {22: "ssh", 53: "domain", 80: "http", 443: "https", 3389: "ms-wbt-server"}
UDP_PROBE_TIMEOUT = 3.0


@dataclass
class Options:
    """What one call asks for."""

    zero: bool = False
    verbose: int = 0
    wait: float = 0.0
    udp: bool = False
    listen: bool = False
    port: int = 0
    host: str = ""
    ports: tuple[int, ...] = ()
    families: tuple[int, ...] = ()


def _parse(arguments: list[str]) -> Options:
    options = Options()
    words: list[str] = []
    queue = list(arguments)
    while queue:
        item = queue.pop(0)
        if not item.startswith("-") or item == "-":
            words.append(item)
            continue
        letters = item[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in "wpsqi":
                value = letters or (queue.pop(0) if queue else "")
                if letter == "w":
                    options.wait = float(value)
                elif letter == "p":
                    options.port = int(value)
                break
            match letter:
                case "z":
                    options.zero = True
                case "v":
                    options.verbose += 1
                case "u":
                    options.udp = True
                case "l" | "L":
                    options.listen = True
                case "4" | "6":
                    options.families = (int(letter),)
                case "n" | "k" | "N" | "t" | "d":
                    pass
                case _:
                    raise ValueError(letter)
    if options.listen:
        options.port = int(words[-1]) if words and not options.port else options.port
        return options
    if len(words) < 2:
        raise ValueError("usage")
    first, _, last = words[1].partition("-")
    options.host, options.ports = words[0], tuple(range(int(first), int(last or first) + 1))
    return options


async def nc(process: Process) -> int:
    """Connect, probe, or listen once."""
    try:
        options = _parse(process.argv[1:])
    except (ValueError, IndexError):
        usage = "usage: nc [-46DdFhklNnrStUuvZz] [-w timeout] [destination] [port]\n"
        process.err("invalid usage: try -h\n" if process.windows else usage)
        return 1
    if options.listen:
        return await _listen(process, options)
    try:
        address = (await addresses(process, options.host, families=options.families))[0]
    except NetworkError:
        if process.windows:
            process.err(f"{options.host}: forward host lookup failed: h_errno 11001: HOST_NOT_FOUND\n")
        else:
            port = options.ports[0]
            process.err(f'nc: getaddrinfo for host "{options.host}" port {port}: Name does not resolve\n')
        return 1
    good = False
    for port in options.ports:
        attempt = _udp if options.udp else _tcp
        good = await attempt(process, options, address, port) or good
    return 0 if good else 1


def _tell(process: Process, options: Options, address: str, port: int, error: NetworkError | None) -> None:
    """The one line about an attempt, in each program's words."""
    protocol, name = ("udp" if options.udp else "tcp"), SERVICES.get(port)
    if process.windows:
        if not options.verbose:
            return
        where = f"{options.host if options.host != address else '(UNKNOWN)'} [{address}] {port} ({name or '?'})"
        words = "TIMEDOUT" if isinstance(error, TimedOut) else "connection refused"
        words = words if error is None or isinstance(error, TimedOut | Refused) else "no route to host"
        process.err(f"{where} open\n" if error is None else f"{where}: {words}\n")
    elif error is None:
        if options.verbose:
            process.err(f"Connection to {options.host} {port} port [{protocol}/{name or '*'}] succeeded!\n")
    elif options.verbose or not options.zero:
        head = f"nc: connect to {options.host} port {port} ({protocol})"
        if isinstance(error, TimedOut):
            process.err(
                f"{head} {'failed: Operation timed out' if error.gave_up else 'timed out: Operation in progress'}\n"
            )
        else:
            process.err(
                f"{head} failed: {'Connection refused' if isinstance(error, Refused) else 'Host is unreachable'}\n"
            )


async def _tcp(process: Process, options: Options, address: str, port: int) -> bool:
    try:
        connection = await endpoint_of(process).connect(address, port, timeout=options.wait)
    except NetworkError as error:
        _tell(process, options, address, port, error)
        return False
    try:
        _tell(process, options, address, port, None)
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


async def _udp(process: Process, options: Options, address: str, port: int) -> bool:
    """A datagram: with -z silence counts as success, only a refusal does not."""
    payload = b"X" if options.zero else await process.stdin.read()
    try:
        answer = await endpoint_of(process).exchange(address, port, payload, timeout=options.wait or UDP_PROBE_TIMEOUT)
    except TimedOut:
        answer = b""
    except NetworkError as error:
        _tell(process, options, address, port, error)
        return False
    _tell(process, options, address, port, None)
    if not options.zero:
        process.stdout.write(answer)
    return True


async def _listen(process: Process, options: Options) -> int:
    endpoint = endpoint_of(process)
    first: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def serve(connection: Connection) -> None:
        if first.done():
            return
        first.set_result(connection)
        await done.wait()

    async def answer(payload: bytes, _source: tuple[str, int]) -> bytes | None:
        process.stdout.write(payload)
        return await process.stdin.read() or None

    try:
        listener = endpoint.bind_udp(options.port, answer) if options.udp else endpoint.listen(options.port, serve)
    except AddressInUse:
        process.err("nc: Address in use\n" if not process.windows else f"Can't grab 0.0.0.0:{options.port} with bind\n")
        return 1
    if options.verbose:
        process.err(f"Listening on 0.0.0.0 {options.port}\n")
    try:
        connection = await first
        if options.verbose:
            process.err(f"Connection received on {connection.remote[0]} {connection.remote[1]}\n")
        await copy_both_ways(process, connection, end_with_peer=True)
        return 0
    finally:
        done.set()
        listener.close()
