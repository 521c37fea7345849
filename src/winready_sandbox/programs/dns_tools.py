"""dig and nslookup of BIND, and Windows' own nslookup: they ask nameservers directly, past any cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from winready_sandbox.clock import utc_now
from winready_sandbox.machine.process import Process
from winready_sandbox.network import messages
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.network.messages import RCODES, TYPES, Message, Record
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.programs.net import addresses, endpoint_of
from winready_sandbox.programs.record import note

DIG_OPTIONS = ("short", "search", "tcp", "notcp", "noall", "answer", "comments")
DIG_VALUES = ("tries", "time", "@")
DIG_VERSION = {"windows": "9.14.10", "linux": "9.18.36"}


def _with_suffixes(process: Process, name: str) -> Iterator[str]:
    """Names to try: BIND counts dots by ndots on both OSes, and so finds more on Windows than Windows does."""
    if name.endswith("."):
        yield name.rstrip(".")
        return
    config = endpoint_of(process).dns
    searches = [f"{name}.{suffix}" for suffix in config.searches]
    early = name.count(".") >= (1 if process.windows else config.ndots())
    yield from [name, *searches] if early else [*searches, name]


async def _ask(
    endpoint: NetworkEndpoint,
    servers: list[str],
    name: str,
    kind: str,
    timeout: float,
    tries: int,
    *,
    tcp: bool = False,
) -> tuple[str, Message] | None:
    """The first answer of the servers in order."""
    for _ in range(tries):
        for server in servers:
            try:
                return server, await endpoint.query(server, name, kind, timeout=timeout, tcp=tcp)
            except (NetworkError, messages.BadMessage):
                continue
    return None


def _line(record: Record) -> str:
    return f"{record.name}.\t\t{record.ttl}\tIN\t{record.type}\t{record.data}"


@dataclass
class _Dig:
    """What a command line asks for."""

    names: list[str] = field(default_factory=list)
    kind: str = "A"
    flags: set[str] = field(default_factory=set)
    servers: list[str] = field(default_factory=list)
    tries: int = 3
    seconds: float = 5.0


async def dig(process: Process) -> int:
    """BIND's dig: plain names are complete unless +search is given; several are asked for one after another."""
    asked = _Dig()
    for item in process.argv[1:]:
        option, _, value = item[1:].partition("=")
        if item.startswith("+") and option in DIG_OPTIONS:
            asked.flags.add(option)
        elif item.startswith("+") and option in DIG_VALUES and value.isdigit():
            asked.tries, asked.seconds = (int(value), asked.seconds) if option == "tries" else (asked.tries, int(value))
        elif item.startswith("@"):
            asked.servers, option = [item[1:]], "@"
        elif item.upper() in TYPES and asked.names:
            asked.kind, option = item.upper(), ""
        elif item.startswith(("-", "+")):
            process.err(f"Invalid option: {item}\nUsage:  dig [@global-server] [domain] [q-type] {{global-d-opt}}\n")
            return 1
        else:
            asked.names.append(item)
            option = ""
        if option:
            note(process, "program", "dig", [option])
    codes = [await _dig_one(process, asked, name, first=number == 0) for number, name in enumerate(asked.names)]
    return max(codes, default=10)


async def _dig_one(process: Process, asked: _Dig, name: str, *, first: bool) -> int:
    flags = asked.flags
    short, everything = "short" in flags, "noall" not in flags
    banner = f"\n; <<>> DiG {DIG_VERSION[process.container.os]} <<>> {' '.join(process.argv[1:])}\n" if first else ""
    banner += ";; global options: +cmd\n" if first else ""
    endpoint = endpoint_of(process)
    servers = asked.servers or list(endpoint.dns.nameservers)
    clock = process.container.clock
    began = clock.now()
    found: tuple[str, Message] | None = None
    for candidate in _with_suffixes(process, name) if "search" in flags else [name.rstrip(".")]:
        found = await _ask(endpoint, servers, candidate, asked.kind, asked.seconds, asked.tries, tcp="tcp" in flags)
        if found is None:
            process.out(
                ("" if short or not everything else banner) + ";; connection timed out; no servers could be reached\n"
            )
            return 9
        if found[1].rcode != messages.NXDOMAIN:
            break
    if found is None:
        return 10
    where, answer = found
    if short:
        process.out("".join(f"{record.data}\n" for record in answer.answers))
    elif not everything:
        if "comments" in flags:
            process.out(_dig_header(answer))
        process.out("".join(f"{_line(record)}\n" for record in answer.answers if "answer" in flags))
    else:
        process.out(banner + _dig_text(where, answer, clock.now() - began))
    return 0


def _dig_header(answer: Message) -> str:
    bits = [
        name
        for name, on in (
            ("qr", answer.response),
            ("aa", answer.authoritative),
            ("rd", answer.recursion_desired),
            ("ra", answer.recursion_available),
        )
        if on
    ]
    counts = f"QUERY: 1, ANSWER: {len(answer.answers)}, AUTHORITY: {len(answer.authority)}, ADDITIONAL: 0"
    return (
        f";; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: {RCODES[answer.rcode]}, id: {answer.id}\n"
        f";; flags: {' '.join(bits)}; {counts}\n\n"
    )


def _dig_text(server: str, answer: Message, seconds: float) -> str:
    text = f"{_dig_header(answer)};; QUESTION SECTION:\n;{answer.name}.\t\tIN\t{answer.type}\n"
    for title, records in (("ANSWER", answer.answers), ("AUTHORITY", answer.authority)):
        if records:
            text += f"\n;; {title} SECTION:\n" + "".join(f"{_line(record)}\n" for record in records)
    now = utc_now()
    return text + (
        f"\n;; Query time: {round(seconds * 1000)} msec\n;; SERVER: {server}#53({server})\n"
        f";; WHEN: {now:%a %b %d %H:%M:%S} UTC {now:%Y}\n"
        f";; MSG SIZE  rcvd: {len(answer.encode())}\n\n"
    )


async def nslookup(process: Process) -> int:
    """nslookup of BIND (Linux images, and agnhost's Windows image)."""
    name, servers = process.argv[-1], list(endpoint_of(process).dns.nameservers)
    records: list[Record] = []
    last: Message | None = None
    server = ""
    for candidate in _with_suffixes(process, name):
        for each in ("A", "AAAA"):
            found = await _ask(endpoint_of(process), servers, candidate, each, 5.0, 3)
            if found is None:
                process.out(";; connection timed out; no servers could be reached\n\n")
                return 1
            server, last = found
            records += last.answers
        if records:
            break
    if last is None:
        process.out(";; connection timed out; no servers could be reached\n\n")
        return 1
    process.out(f"Server:\t\t{server}\nAddress:\t{server}#53\n\n")
    if not records:
        if last.rcode:
            process.out(f"** server can't find {name}: {RCODES[last.rcode]}\n\n")
            return 1
        process.out(f"*** Can't find {name}: No answer\n\n")
        return 0
    if not last.authoritative:
        process.out("Non-authoritative answer:\n")
    for record in dict.fromkeys(records):
        process.out(_nslookup_record(record))
    process.out("\n")
    return 0


def _nslookup_record(record: Record) -> str:
    match record.type:
        case "A" | "AAAA":
            return f"Name:\t{record.name}\nAddress: {record.data}\n"
        case "CNAME":
            return f"{record.name}\tcanonical name = {record.data}\n"
        case "PTR":
            return f"{record.name}\tname = {record.data}\n"
        case "SRV":
            return f"{record.name}\tservice = {record.data}\n"
    return f"{record.name}\ttext = {record.data}\n"


async def windows_nslookup(process: Process) -> int:
    """nslookup.exe that comes with Windows; fact 1.3: it ends with 0 even when a name does not exist."""
    name, endpoint = process.argv[-1], endpoint_of(process)
    servers = list(endpoint.dns.nameservers[:1])
    if not servers:
        process.err("*** No DNS server\r\n")
        return 1
    server_name = await _ask(endpoint, servers, messages.reverse_name(servers[0]), "PTR", 2.0, 1)
    answers = server_name[1].answers if server_name else ()
    shown = answers[0].data.rstrip(".") if answers else "UnKnown"
    if server_name is None:
        process.out("DNS request timed out.\r\n    timeout was 2 seconds.\r\n")
    process.out(f"Server:  {shown}\r\nAddress:  {servers[0]}\r\n\r\n")
    records: list[Record] = []
    last: Message | None = None
    for candidate in _with_suffixes(process, name):
        for each in ("A", "AAAA"):
            found = await _ask(endpoint, servers, candidate, each, 2.0, 2)
            if found is None:
                process.out("DNS request timed out.\r\n    timeout was 2 seconds.\r\n")
                process.err(f"*** Request to {shown} timed-out\r\n")
                return 0
            last = found[1]
            records += last.answers
        if records:
            break
    if not records or last is None:
        why = "Non-existent domain" if last is not None and last.rcode == messages.NXDOMAIN else "Server failed"
        process.err(f"*** {shown} can't find {name}: {why}\r\n")
        return 0
    if not last.authoritative:
        process.err("Non-authoritative answer:\r\n")
    ips = [record.data for record in dict.fromkeys(records) if record.type in ("A", "AAAA")]
    if ips:
        label = "Address: " if len(ips) == 1 else "Addresses: "
        owner = next(record.name for record in records if record.type in ("A", "AAAA"))
        process.out(f"Name:    {owner}\r\n{label} " + "\r\n\t  ".join(ips) + "\r\n\r\n")
    else:
        process.out("".join(_nslookup_record(record).replace("\n", "\r\n") for record in records) + "\r\n")
    return 0


async def getent(process: Process) -> int:
    """`getent hosts NAME`: what the resolver of programs knows, the hosts file included."""
    if process.argv[1:2] != ["hosts"] or len(process.argv) < 3:
        process.err("usage: getent hosts name\n")
        return 1
    missing = False
    for name in process.argv[2:]:
        try:
            for address in await addresses(process, name):
                process.out(f"{address:<15} {name}\n")
        except NetworkError:
            missing = True
    return 2 if missing else 0
