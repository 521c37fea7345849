"""dig and nslookup of BIND, Windows' own nslookup, and busybox's: they ask nameservers directly, past any cache."""

from __future__ import annotations

from collections.abc import Iterator

from winready_sandbox.clock import utc_now
from winready_sandbox.machine.process import Process
from winready_sandbox.network import messages
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.network.messages import RCODES, TYPES, Message, Record
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.programs.net import addresses, endpoint_of, is_address

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


async def _servers(process: Process, given: str) -> list[str]:
    if not given:
        return list(endpoint_of(process).dns.nameservers)
    return [given] if is_address(given) else (await addresses(process, given))[:1]


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


async def dig(process: Process) -> int:
    """BIND's dig: plain names are complete unless +search is given."""
    server, name, kind = "", "", "A"
    flags: dict[str, str] = {}
    queue = process.argv[1:]
    while queue:
        item = queue.pop(0)
        if item.startswith("+"):
            key, _, value = item[1:].partition("=")
            flags[key] = value
        elif item.startswith("@"):
            server = item[1:]
        elif item == "-x" and queue:
            name, kind = messages.reverse_name(queue.pop(0)), "PTR"
        elif item in ("-t", "-q", "-p") and queue:
            value = queue.pop(0)
            kind = value.upper() if item == "-t" else kind
            name = value if item == "-q" else name
        elif item.upper() in TYPES and name:
            kind = item.upper()
        elif item in ("-4", "-6") or item.upper() == "IN":
            continue
        elif item.startswith("-"):
            process.err(f"Invalid option: {item}\nUsage:  dig [@global-server] [domain] [q-type] {{global-d-opt}}\n")
            return 1
        else:
            name = item
    short, everything = "short" in flags, "noall" not in flags
    banner = f"\n; <<>> DiG {DIG_VERSION[process.container.os]} <<>> {' '.join(process.argv[1:])}\n"
    banner += ";; global options: +cmd\n"
    timeout, tries = float(flags.get("time") or flags.get("timeout") or 5), int(flags.get("tries") or 3)
    endpoint = endpoint_of(process)
    names = list(_with_suffixes(process, name)) if "search" in flags else [name.rstrip(".")]
    try:
        servers = await _servers(process, server)
    except NetworkError:
        process.err(f"dig: couldn't get address for '{server}': not found\n")
        return 10
    found: tuple[str, Message] | None = None
    for candidate in names:
        found = await _ask(endpoint, servers, candidate, kind, timeout, tries, tcp="tcp" in flags or "vc" in flags)
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
        process.out("".join(f"{_line(record)}\n" for record in answer.answers if "answer" in flags))
    else:
        process.out(banner + _dig_text(where, answer))
    return 0


def _dig_text(server: str, answer: Message) -> str:
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
    text = (
        f";; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: {RCODES[answer.rcode]}, id: {answer.id}\n"
        f";; flags: {' '.join(bits)}; {counts}\n\n;; QUESTION SECTION:\n;{answer.name}.\t\tIN\t{answer.type}\n"
    )
    for title, records in (("ANSWER", answer.answers), ("AUTHORITY", answer.authority)):
        if records:
            text += f"\n;; {title} SECTION:\n" + "".join(f"{_line(record)}\n" for record in records)
    now = utc_now()
    return text + (
        f"\n;; Query time: 1 msec\n;; SERVER: {server}#53({server})\n;; WHEN: {now:%a %b %d %H:%M:%S} UTC {now:%Y}\n"
        f";; MSG SIZE  rcvd: {len(answer.encode())}\n\n"
    )


def _nslookup_arguments(process: Process) -> tuple[str, str, str, float]:
    """Name, server, type and timeout of an nslookup call."""
    words: list[str] = []
    kind, timeout = "", 5.0
    for item in process.argv[1:]:
        lowered = item.lower()
        if lowered.startswith(("-type=", "-querytype=", "-q=", "-query=")):
            kind = item.partition("=")[2].upper()
        elif lowered.startswith("-timeout="):
            timeout = float(item.partition("=")[2])
        elif not item.startswith("-"):
            words.append(item)
    name = words[0] if words else ""
    if is_address(name):
        return messages.reverse_name(name), words[1] if len(words) > 1 else "", "PTR", timeout
    return name, words[1] if len(words) > 1 else "", kind, timeout


async def nslookup(process: Process) -> int:
    """nslookup of BIND (Linux images, and agnhost's Windows image)."""
    name, given, kind, timeout = _nslookup_arguments(process)
    try:
        servers = await _servers(process, given)
    except NetworkError:
        process.out(f"nslookup: couldn't get address for '{given}': not found\n")
        return 1
    kinds = [kind] if kind else ["A", "AAAA"]
    records: list[Record] = []
    last: Message | None = None
    server = ""
    for candidate in _with_suffixes(process, name):
        for each in kinds:
            found = await _ask(endpoint_of(process), servers, candidate, each, timeout, 3)
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
    name, given, kind, _ = _nslookup_arguments(process)
    endpoint = endpoint_of(process)
    try:
        servers = (await _servers(process, given))[:1]
    except NetworkError:
        process.err(f"*** Can't find server address for '{given}':\r\n")
        return 1
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
        for each in [kind] if kind else ["A", "AAAA"]:
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


async def busybox_nslookup(process: Process) -> int:
    """nslookup as busybox has it."""
    name, given, kind, timeout = _nslookup_arguments(process)
    try:
        servers = await _servers(process, given)
    except NetworkError:
        process.err(f"nslookup: bad address '{given}'\n")
        return 1
    records: list[Record] = []
    rcode = messages.NOERROR
    for number, candidate in enumerate(_with_suffixes(process, name)):
        for each in [kind] if kind else ["A", "AAAA"]:
            found = await _ask(endpoint_of(process), servers, candidate, each, timeout, 2)
            if found is None:
                process.out(";; connection timed out; no servers could be reached\n\n")
                return 1
            if not number and each in (kind, "A"):
                process.out(f"Server:\t\t{found[0]}\nAddress:\t{found[0]}:53\n\n")
            rcode = found[1].rcode
            records += found[1].answers
        if records:
            break
    if not records:
        process.out(f"** server can't find {name}: {RCODES[rcode]}\n\n")
        return 1
    process.out("".join(_nslookup_record(record) for record in dict.fromkeys(records)) + "\n")
    return 0


async def getent(process: Process) -> int:
    """getent of musl: names through the container's own resolver, hosts file included."""
    database, names = (process.argv[1], process.argv[2:]) if len(process.argv) > 2 else ("", [])
    if database not in ("hosts", "ahosts", "ahostsv4", "ahostsv6"):
        process.err(f"Unknown database: {database}\n" if names else "usage: getent database [key ...]\n")
        return 1
    families = {"ahostsv4": (4,), "ahostsv6": (6,)}.get(database, ())
    for name in names:
        try:
            found = await addresses(process, name, families=families)
        except NetworkError:
            return 2
        kinds = ("STREAM", "DGRAM", "RAW") if database != "hosts" else ("",)
        lines = [f"{ip:<15} {kind} {name}" if kind else f"{ip:<16}  {name}  {name}" for ip in found for kind in kinds]
        process.out("".join(f"{line}\n" for line in lines))
    return 0
