"""How a name becomes addresses inside a pod: hosts file, search suffixes, nameservers, per operating system.

Linux follows resolv.conf (search list and ndots). Windows takes any name with a dot as complete and appends the
suffixes only to bare names (fact 1.6), ignores resolver options, and caches answers, missing names included. It waits
1, 1, 2, 4 and 2 s for an answer, with the servers taking turns, and takes a server failure for the last word of that
server (Microsoft KB 2834226).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from winready_sandbox.clock import Clock
from winready_sandbox.network import messages
from winready_sandbox.network.defects import DnsDefects
from winready_sandbox.network.endpoint import DnsFailure, NetworkError, NoSuchName
from winready_sandbox.network.messages import Message
from winready_sandbox.network.questions import Questions, Transport

NEGATIVE_CACHE = 5.0
"""Seconds for which Windows remembers that a name is missing: the zone's negative TTL, which is short."""
POSITIVE_CACHE_MAX = 30.0
WINDOWS_PATIENCE = (1.0, 1.0, 2.0, 4.0, 2.0)
LINUX_PATIENCE = 5.0
LINUX_ROUNDS = 2


@dataclass(frozen=True)
class DnsConfig:
    """What resolv.conf says on Linux, and the interface's DNS settings on Windows."""

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    def ndots(self) -> int:
        """The ndots option, 1 when unset."""
        return next((int(value) for name, value in self.options if name == "ndots" and value.isdigit()), 1)

    def resolv_conf(self) -> str:
        """The text of /etc/resolv.conf."""
        lines = [f"search {' '.join(self.searches)}"] if self.searches else []
        lines += [f"nameserver {server}" for server in self.nameservers]
        if self.options:
            lines.append("options " + " ".join(f"{n}:{v}" if v else n for n, v in self.options))
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Known:
    """What the cache holds of a name."""

    addresses: list[str]
    """None: the name does not exist."""
    at: float
    ttl: float


@dataclass(frozen=True)
class Wires:
    """How questions leave an endpoint."""

    datagram: Transport
    stream: Transport


class Resolver:
    """The DNS client of one endpoint."""

    def __init__(
        self,
        os: str,
        config: DnsConfig,
        cni_config: DnsConfig,
        node_config: DnsConfig,
        questions: Questions,
        defects: DnsDefects,
        clock: Clock,
    ) -> None:
        self._windows = os == "windows"
        self._config = config
        self._cni_config = cni_config
        self._node_config = node_config
        self._questions = questions
        self._defects = defects
        self._clock = clock
        self._cache: dict[tuple[str, str], Known] = {}

    @property
    def config(self) -> DnsConfig:
        """The settings in force; a CNI configuration without the dns capability wins over the pod's (fact 1.6)."""
        defects = self._defects
        config = self._cni_config if defects.ignore_dns_config else self._config
        servers, searches = config.nameservers, config.searches
        if defects.node_servers_too:
            servers = (*servers, *self._node_config.nameservers)
        if defects.suffix_of_default:
            searches = tuple(f"default{item[item.find('.svc.') :]}" if ".svc." in item else item for item in searches)
        if defects.first_suffix_only:
            searches = searches[:1]
        if defects.no_suffix:
            searches = ()
        return replace(config, nameservers=servers, searches=searches)

    def candidates(self, name: str) -> Iterator[str]:
        """The complete names to ask for, in order."""
        if name.endswith("."):
            yield name.rstrip(".")
            return
        searches = self.config.searches
        if self._windows:
            if "." in name:
                yield name
            else:
                yield from (f"{name}.{suffix}" for suffix in searches)
            return
        early = name.count(".") >= self.config.ndots()
        if early:
            yield name
        yield from (f"{name}.{suffix}" for suffix in searches)
        if not early:
            yield name

    async def query(
        self, wires: Wires, server: str, name: str, kind: str, timeout: float, *, tcp: bool = False
    ) -> Message:
        """Ask one nameserver one question; an answer too large for a datagram is asked for again in a stream."""
        ask = self._questions.ask
        if not tcp:
            answer = await ask(wires.datagram, server, name, kind, timeout)
            if not answer.truncated:
                return answer
        return await ask(wires.stream, server, name, kind, timeout, tcp=True)

    async def resolve(
        self, wires: Wires, name: str, *, hosts: str, families: tuple[int, ...], timeout: float
    ) -> list[str]:
        """Addresses of a name, IPv4 first."""
        if not self._defects.ignore_host_aliases and (found := in_hosts(hosts, name, families)):
            return found
        if name.lower().rstrip(".") == "localhost":
            return ["127.0.0.1"] if 4 in families else ["::1"]
        failure: NetworkError = NoSuchName(name)
        for candidate in self.candidates(name):
            try:
                if found := await self._lookup(wires, candidate, families, timeout):
                    return found
            except NoSuchName:
                continue
            except DnsFailure as error:
                if not self._windows:
                    raise
                failure = error
        raise failure

    async def _lookup(self, wires: Wires, name: str, families: tuple[int, ...], timeout: float) -> list[str]:
        """All addresses of one complete name; empty when it exists without any."""
        addresses: list[str] = []
        missing = 0
        for family in families:
            try:
                addresses += await self._cached(wires, name, "AAAA" if family == 6 else "A", timeout)
            except NoSuchName:
                missing += 1
        if missing == len(families):
            raise NoSuchName(name)
        return addresses

    async def _cached(self, wires: Wires, name: str, kind: str, timeout: float) -> list[str]:
        key = (name.lower(), kind)
        if self._windows and (known := self._cache.get(key)) is not None and self._is_fresh(known):
            if not known.addresses:
                raise NoSuchName(name)
            return known.addresses
        if self._defects.ipv6_unanswered and self._windows and kind == "A":
            # Both kinds are asked for at once, and the answer waits for the slower one.
            await self._clock.sleep(min(timeout, sum(WINDOWS_PATIENCE)))
            if timeout < sum(WINDOWS_PATIENCE):
                raise DnsFailure(f"no answer for {name}")
        answer = await self._ask(wires, name, kind, timeout)
        records = [record for record in answer.answers if record.type == kind]
        missing = answer.rcode == messages.NXDOMAIN
        if self._windows and (records or missing):
            ttl = min([POSITIVE_CACHE_MAX, *(float(r.ttl) for r in records)]) if records else NEGATIVE_CACHE
            self._cache[key] = Known([record.data for record in records], self._clock.now(), ttl)
        if missing:
            raise NoSuchName(name)
        return [record.data for record in records]

    def _is_fresh(self, known: Known) -> bool:
        kept = self._defects.keeps_answers if known.addresses else self._defects.keeps_misses
        return self._clock.now() < known.at + max(known.ttl, kept)

    async def _ask(self, wires: Wires, name: str, kind: str, timeout: float) -> Message:
        """Ask the nameservers in turn until one answers."""
        servers = list(self.config.nameservers[:1] if self._defects.first_server_only else self.config.nameservers)
        if not servers:
            raise DnsFailure("no nameservers")
        waits = WINDOWS_PATIENCE if self._windows else (LINUX_PATIENCE,) * (LINUX_ROUNDS * len(servers))
        left = timeout
        for turn, wait in enumerate(waits):
            if left <= 0 or not servers:
                break
            server = servers[turn % len(servers)]
            try:
                answer = await self.query(wires, server, name, kind, min(wait, left))
            except (NetworkError, messages.BadMessage):
                left -= wait
                continue
            if answer.rcode in (messages.NOERROR, messages.NXDOMAIN):
                return answer
            if self._windows:
                servers.remove(server)
        raise DnsFailure(f"no answer for {name}")


def in_hosts(text: str, name: str, families: tuple[int, ...] = (4, 6)) -> list[str]:
    """Addresses that a hosts file gives a name."""
    wanted = name.lower().rstrip(".")
    found = []
    for line in text.splitlines():
        address, *names = line.split("#", 1)[0].split() or [""]
        if wanted in (item.lower() for item in names) and (6 if ":" in address else 4) in families:
            found.append(address)
    return found
