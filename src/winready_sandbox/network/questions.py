"""One question to one nameserver, and whatever can go wrong with it on a node: lost, late, refused or answered wrongly.

Everything that looks a name up comes through here, the resolvers of both systems and dig alike.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count

from winready_sandbox.clock import Clock
from winready_sandbox.network import messages
from winready_sandbox.network.defects import DnsDefects
from winready_sandbox.network.endpoint import TimedOut
from winready_sandbox.network.messages import Message, Record
from winready_sandbox.network.view import ClusterView

Transport = Callable[[str, int, bytes, float], Awaitable[bytes]]
"""Sends a message to an address and port and returns the answer within a timeout in cluster seconds."""
NOBODY = ipaddress.IPv4Address("198.51.100.0")
"""A network whose addresses nobody has."""
SMALL = 8
"""Records of an answer that has room for one more."""
_ids = count(1)


class Questions:
    """The way from one endpoint to its nameservers."""

    def __init__(self, domain: str, view: ClusterView, defects: DnsDefects, clock: Clock) -> None:
        self._domain = domain
        self._view = view
        self._defects = defects
        self._clock = clock
        self._began = clock.now()
        self._sent: Counter[str] = Counter()
        self._answered = 0

    async def ask(
        self, send: Transport, server: str, name: str, kind: str, timeout: float, *, tcp: bool = False
    ) -> Message:
        """Ask once; raises `TimedOut` or whatever the way there ends with."""
        internal = f".{name}.".endswith((f".{self._domain}.", ".arpa."))
        if self._is_lost(server, internal, tcp):
            await self._clock.sleep(timeout)
            raise TimedOut(f"no answer from {server}")
        question = Message(next(_ids) & 0xFFFF, name, kind)
        if delay := self._defects.delay:
            await self._clock.sleep(min(delay, timeout))
            if delay >= timeout:
                raise TimedOut(f"no answer from {server}")
            timeout -= delay
        answer = messages.decode(await send(server, 53, question.encode(), timeout))
        return self._spoilt(answer, internal)

    def _is_lost(self, server: str, internal: bool, tcp: bool) -> bool:
        """Whether a question stays without an answer."""
        defects = self._defects
        if defects.dead or (defects.external_dead and not internal):
            return True
        if defects.dead_after and self._clock.now() - self._began > defects.dead_after:
            return True
        if tcp:
            return defects.tcp_dead
        self._sent[server] += 1
        return bool(every := defects.lost_every) and self._sent[server] % every == 0

    def _spoilt(self, answer: Message, internal: bool) -> Message:
        """The answer as it arrives."""
        defects = self._defects
        self._answered += 1
        if (every := defects.failed_every) and self._answered % every == 0:
            return replace(answer, rcode=messages.SERVFAIL, answers=())
        if not internal:
            return answer
        if answer.name.removesuffix(f".svc.{self._domain}").count(".") > 1:
            if defects.headless_missing:
                return replace(answer, rcode=messages.NXDOMAIN, answers=())
            if defects.headless_merged:
                return replace(answer, answers=tuple(self._merged(record) for record in answer.answers))
        if defects.invents_names and answer.rcode == messages.NXDOMAIN and answer.type == "A":
            made_up = Record(answer.name, "A", 30, str(NOBODY + 99))
            return replace(answer, rcode=messages.NOERROR, answers=(made_up,), authority=())
        records = answer.answers
        if (every := defects.wrong_every) and self._answered % every == 0:
            records = tuple(_displaced(record) for record in records)
        if defects.one_address_more and 1 <= len(records) <= SMALL:
            records = (*records, _displaced(records[-1]))
        if defects.wrong_answers:
            records = tuple(_displaced(record) for record in records)
        if defects.other_service:
            records = tuple(self._exchanged(record) for record in records)
        return replace(answer, answers=records)

    def _merged(self, record: Record) -> Record:
        """The same record with the address of the first pod behind that headless service."""
        _, service, namespace = record.name.removesuffix(f".svc.{self._domain}").rsplit(".", 2)
        slices = self._view.slices_of.get((namespace, service), {}).values()
        ends = [end for each in slices for end in each.get("endpoints") or [] if end.get("hostname")]
        first = min(ends, key=lambda end: str(end["hostname"]), default=None)
        return replace(record, data=first["addresses"][0]) if first and record.type == "A" else record

    def _exchanged(self, record: Record) -> Record:
        """The same record with the address of another service of that namespace that has the same port."""
        key = self._view.services_by_ip.get(record.data)
        if key is None:
            return record
        services = self._view.objects["services"]
        port = services[key]["spec"]["ports"][0]["port"]
        others = [
            other["spec"]["clusterIP"]
            for name, other in sorted(services.items())
            if name[0] == key[0] and name != key and other["spec"].get("clusterIP") in self._view.services_by_ip
            and other["spec"]["ports"][0]["port"] == port
        ]  # fmt: skip
        return replace(record, data=others[0]) if others else record


def _displaced(record: Record) -> Record:
    """The same record with an address that nobody has."""
    if record.type == "A":
        return replace(record, data=str(NOBODY + int(record.data.rsplit(".", 1)[1])))
    return record
