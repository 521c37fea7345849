"""How a name becomes addresses inside a pod: hosts file, search suffixes, nameservers, per operating system.

Linux follows resolv.conf (search list and ndots). Windows takes any name with a dot as complete and appends the
suffixes only to bare names (fact 1.6), ignores resolver options, and caches answers, missing names included.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from winready_sandbox.clock import Clock
from winready_sandbox.network import messages
from winready_sandbox.network.defects import DnsDefects
from winready_sandbox.network.endpoint import DnsFailure, NetworkError, NoSuchName, TimedOut
from winready_sandbox.network.messages import Message, Record

NEGATIVE_CACHE = 5.0
"""Seconds for which Windows remembers that a name is missing: the zone's negative TTL, which is short."""
POSITIVE_CACHE_MAX = 30.0
_ids = count(1)


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


Transport = Callable[[str, int, bytes, float], Awaitable[bytes]]
"""Sends a datagram to an address and port and returns the answer within a timeout in cluster seconds."""


class Resolver:
    """The DNS client of one endpoint."""

    def __init__(
        self, os: str, config: DnsConfig, cni_config: DnsConfig, domain: str, defects: DnsDefects, clock: Clock
    ) -> None:
        self._windows = os == "windows"
        self._config = config
        self._cni_config = cni_config
        self._domain = domain
        self._defects = defects
        self._clock = clock
        self._cache: dict[tuple[str, str], tuple[list[str], float]] = {}

    @property
    def config(self) -> DnsConfig:
        """The settings in force; a CNI configuration without the dns capability wins over the pod's (fact 1.6)."""
        config = self._cni_config if self._defects.ignore_dns_config else self._config
        return replace(config, searches=()) if self._defects.no_suffix else config

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

    async def query(self, send: Transport, server: str, name: str, kind: str, timeout: float) -> Message:
        """Ask one nameserver one question; everything that looks a name up comes through here."""
        question = Message(next(_ids) & 0xFFFF, name, kind)
        internal = f".{name}.".endswith((f".{self._domain}.", ".arpa."))
        if self._defects.dead or (self._defects.external_dead and not internal):
            await self._clock.sleep(timeout)
            raise TimedOut(f"no answer from {server}")
        answer = messages.decode(await send(server, 53, question.encode(), timeout))
        if self._defects.wrong_answers and internal:
            answer = replace(answer, answers=tuple(_displaced(record) for record in answer.answers))
        return answer

    async def resolve(
        self, send: Transport, name: str, *, hosts: str, families: tuple[int, ...], timeout: float
    ) -> list[str]:
        """Addresses of a name, IPv4 first."""
        if not self._defects.ignore_host_aliases and (found := in_hosts(hosts, name, families)):
            return found
        if name.lower().rstrip(".") == "localhost":
            return ["127.0.0.1"] if 4 in families else ["::1"]
        failure: NetworkError = NoSuchName(name)
        for candidate in self.candidates(name):
            try:
                if found := await self._lookup(send, candidate, families, timeout):
                    return found
            except NoSuchName:
                continue
            except DnsFailure as error:
                if not self._windows:
                    raise
                failure = error
        raise failure

    async def _lookup(self, send: Transport, name: str, families: tuple[int, ...], timeout: float) -> list[str]:
        """All addresses of one complete name; empty when it exists without any."""
        addresses: list[str] = []
        missing = 0
        for family in families:
            try:
                addresses += await self._cached(send, name, "AAAA" if family == 6 else "A", timeout)
            except NoSuchName:
                missing += 1
        if missing == len(families):
            raise NoSuchName(name)
        return addresses

    async def _cached(self, send: Transport, name: str, kind: str, timeout: float) -> list[str]:
        key = (name.lower(), kind)
        if self._windows and (known := self._cache.get(key)) is not None and known[1] > self._clock.now():
            if not known[0]:
                raise NoSuchName(name)
            return known[0]
        answer = await self._ask(send, name, kind, timeout)
        records = [record for record in answer.answers if record.type == kind]
        missing = answer.rcode == messages.NXDOMAIN
        if self._windows and (records or missing):
            ttl = min([POSITIVE_CACHE_MAX, *(float(r.ttl) for r in records)]) if records else NEGATIVE_CACHE
            self._cache[key] = ([record.data for record in records], self._clock.now() + ttl)
        if missing:
            raise NoSuchName(name)
        return [record.data for record in records]

    async def _ask(self, send: Transport, name: str, kind: str, timeout: float) -> Message:
        """Ask the nameservers in order, twice around, until one answers."""
        servers = self.config.nameservers
        if not servers:
            raise DnsFailure("no nameservers")
        attempt_timeout = 2.0 if self._windows else 5.0
        left = timeout
        for server in servers * 2:
            if left <= 0:
                break
            try:
                answer = await self.query(send, server, name, kind, min(attempt_timeout, left))
            except (NetworkError, messages.BadMessage):
                left -= attempt_timeout
                continue
            if answer.rcode in (messages.NOERROR, messages.NXDOMAIN):
                return answer
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


def _displaced(record: Record) -> Record:
    """The same record with an address from a network that nobody has."""
    if record.type == "A":
        return replace(record, data=str(ipaddress.IPv4Address("198.51.100.0") + int(record.data.rsplit(".", 1)[1])))
    return record
