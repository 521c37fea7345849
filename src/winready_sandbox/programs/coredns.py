"""coredns: the cluster's DNS server, and any other one that a Corefile describes with the same few plugins."""

from __future__ import annotations

from dataclasses import dataclass, field

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network import messages
from winready_sandbox.network.dns_server import DnsServer
from winready_sandbox.network.endpoint import Listener, NetworkError
from winready_sandbox.network.messages import Message, Record
from winready_sandbox.network.resolver import DnsConfig, in_hosts
from winready_sandbox.network.zone import ClusterZone
from winready_sandbox.programs import http1
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import endpoint_of
from winready_sandbox.streams import Connection

DEFAULT = ".:53 {\n    kubernetes cluster.local in-addr.arpa ip6.arpa\n    forward . /etc/resolv.conf\n}\n"
HEALTH, READY = 8080, 8181


class BadCorefile(ValueError):
    """A Corefile that cannot be understood."""


@dataclass
class ServerBlock:
    """One server of a Corefile, as far as the model goes."""

    port: int = 53
    cluster_domain: str = ""
    hosts: str = ""
    upstreams: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    """Where it listens; everywhere, if it does not say."""


def read_corefile(text: str) -> list[ServerBlock]:
    """The servers of a Corefile; plugins that change no answer are skipped."""
    blocks: list[ServerBlock] = []
    depth, in_hosts_plugin = 0, False
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        if line == "}":
            depth -= 1
            in_hosts_plugin = False
            continue
        opens = line.endswith("{")
        words = line.removesuffix("{").split()
        if depth == 0:
            if not opens or not words:
                raise BadCorefile(f"Corefile:{number} - Error during parsing: Unexpected token '{line}'")
            port = words[0].rpartition(":")[2]
            blocks.append(ServerBlock(int(port) if port.isdigit() else 53))
        elif depth == 1:
            _plugin(blocks[-1], words)
            in_hosts_plugin = opens and words[0] == "hosts"
        elif in_hosts_plugin:
            blocks[-1].hosts += line + "\n"
        depth += opens
    return blocks


def _plugin(block: ServerBlock, words: list[str]) -> None:
    match words:
        case ["kubernetes", domain, *_]:
            block.cluster_domain = domain
        case ["forward" | "proxy", _, *targets]:
            block.upstreams += targets
        case ["bind", *addresses]:
            block.addresses += addresses


class CorednsServer(DnsServer):
    """A server that looks into its hosts block before anything else."""

    def __init__(self, block: ServerBlock, process: Process) -> None:
        endpoint = endpoint_of(process)
        if block.upstreams and not block.upstreams[0].startswith("/"):
            endpoint = type(endpoint)(endpoint.fabric, endpoint.stack, DnsConfig(tuple(block.upstreams)))
        super().__init__(ClusterZone(endpoint.fabric.view, block.cluster_domain or "nowhere.invalid"), endpoint)
        self._hosts = block.hosts

    def own_answer(self, question: Message) -> Message | None:
        """What the hosts block says."""
        if not (found := self._in_hosts(question)):
            return None
        records = tuple(Record(question.name, question.type, 3600, data) for data in found)
        return Message(question.id, question.name, question.type, True, True, answers=records)

    def _in_hosts(self, question: Message) -> list[str]:
        """What the hosts block says: addresses of a name, or names of an address."""
        if question.type == "PTR":
            ip = messages.address_of_reverse(question.name)
            entries = [line.split() for line in self._hosts.splitlines()]
            return [f"{name}." for address, *names in entries if address == ip for name in names]
        families = {"A": (4,), "AAAA": (6,)}.get(question.type, ())
        return in_hosts(self._hosts, question.name, families) if families else []


async def coredns(process: Process) -> int:
    """Answer queries until told to stop."""
    arguments = process.argv[1:]
    text = DEFAULT
    if "-conf" in arguments[:-1]:
        path = arguments[arguments.index("-conf") + 1]
        try:
            text = process.files.read(path, process.cwd, who=process.identity).decode()
        except FileError as error:
            process.err(f"plugin/forward: open {path}: {error.text(process.container.os).lower()}\n")
            return 1
    endpoint = endpoint_of(process)
    listeners: list[Listener] = []
    try:
        blocks = read_corefile(text)
        for block in blocks:
            server = CorednsServer(block, process)
            for address in block.addresses or [""]:
                listeners.append(endpoint.bind_udp(block.port, server.answer, address=address))
                listeners.append(endpoint.listen(block.port, server.serve, address=address))
            process.out(f".:{block.port}\n")
        first = next((address for block in blocks for address in block.addresses), "")
        listeners += [endpoint.listen(port, _say_ok, address=first) for port in (HEALTH, READY)]
    except (BadCorefile, NetworkError) as error:
        process.err(f"{error}\n")
        for listener in listeners:
            listener.close()
        return 1
    process.out("CoreDNS-1.12.1\nlinux/amd64, go1.24.1, 707c7c1\n")
    try:
        await process.stop_requested.wait()
        process.out("[INFO] SIGTERM: Shutting down servers then terminating\n")
    finally:
        for listener in listeners:
            listener.close()
    return 0


async def _say_ok(connection: Connection) -> None:
    async def page(request: Request) -> Response:
        return Response("OK") if request.path in ("/health", "/ready") else http1.error("404 page not found", 404)

    await http1.serve(connection, page, connection.remote, connection.local)
