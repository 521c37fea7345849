"""What the cluster's DNS server does with a query: answer from the zone, follow aliases, forward the rest."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from winready_sandbox.network import messages
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.network.messages import Message
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.network.zone import ClusterZone

FORWARD_TIMEOUT = 4.0
_MAX_ALIASES = 8
_ids = count(1)


class DnsServer:
    """Answers queries that arrive at one endpoint; the upstream is whatever that endpoint itself resolves with."""

    def __init__(self, zone: ClusterZone, endpoint: NetworkEndpoint) -> None:
        self._zone = zone
        self._endpoint = endpoint

    async def answer(self, payload: bytes, _source: tuple[str, int] = ("", 0)) -> bytes | None:
        """The reply to a datagram; nonsense stays unanswered."""
        try:
            question = messages.decode(payload)
        except messages.BadMessage:
            return None
        reply = await self._resolve(question, _MAX_ALIASES)
        return replace(reply, id=question.id, recursion_available=True).encode()

    async def _resolve(self, question: Message, aliases_left: int) -> Message:
        reply = self._zone.answer(question) or await self._forward(question)
        alias = next((record for record in reply.answers if record.type == "CNAME"), None)
        if alias is None or question.type not in ("A", "AAAA") or len(reply.answers) > 1 or not aliases_left:
            return reply
        target = await self._resolve(replace(question, name=alias.data.rstrip(".")), aliases_left - 1)
        return replace(reply, answers=(alias, *target.answers))

    async def _forward(self, question: Message) -> Message:
        """Ask the upstream servers in order."""
        asked = replace(question, id=next(_ids) & 0xFFFF).encode()
        for server in self._endpoint.dns.nameservers:
            try:
                return messages.decode(await self._endpoint.exchange(server, 53, asked, timeout=FORWARD_TIMEOUT))
            except (NetworkError, messages.BadMessage):
                continue
        return Message(question.id, question.name, question.type, response=True, rcode=messages.SERVFAIL)
