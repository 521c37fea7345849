"""What the cluster's DNS server does with a query: answer from the zone, follow aliases, forward the rest."""

from __future__ import annotations

from dataclasses import replace

from winready_sandbox.network import messages
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.network.messages import Message
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.network.zone import ClusterZone
from winready_sandbox.streams import Connection

FORWARD_TIMEOUT = 4.0
DATAGRAM = 512
"""Bytes of an answer that need no stream."""
_MAX_ALIASES = 8


class DnsServer:
    """Answers queries that arrive at one endpoint; the upstream is whatever that endpoint itself resolves with."""

    def __init__(self, zone: ClusterZone, endpoint: NetworkEndpoint) -> None:
        self._zone = zone
        self._endpoint = endpoint

    async def answer(self, payload: bytes, _source: tuple[str, int] = ("", 0)) -> bytes | None:
        """The reply to a datagram: in full if it fits into one, otherwise only that there is more."""
        reply = await self.reply(payload)
        if reply is None:
            return None
        data = reply.encode()
        if len(data) <= DATAGRAM:
            return data
        return replace(reply, answers=(), authority=(), additional=(), truncated=True).encode()

    async def serve(self, connection: Connection) -> None:
        """The same over TCP, where each message follows its length and may be long."""
        while len(prefix := await connection.read(2)) == 2:
            reply = await self.reply(await connection.readexactly(int.from_bytes(prefix, "big")))
            if reply is None:
                break
            data = reply.encode()
            connection.write(len(data).to_bytes(2, "big") + data)

    async def reply(self, payload: bytes) -> Message | None:
        """What there is to say to a message; nonsense stays unanswered."""
        try:
            question = messages.decode(payload)
        except messages.BadMessage:
            return None
        found = self.own_answer(question) or await self._resolve(question, _MAX_ALIASES)
        return replace(found, id=question.id, recursion_available=True)

    def own_answer(self, question: Message) -> Message | None:
        """What goes before everything else."""
        return None

    async def _resolve(self, question: Message, aliases_left: int) -> Message:
        reply = self._zone.answer(question) or await self._forward(question)
        alias = next((record for record in reply.answers if record.type == "CNAME"), None)
        if alias is None or question.type not in ("A", "AAAA") or len(reply.answers) > 1 or not aliases_left:
            return reply
        target = await self._resolve(replace(question, name=alias.data.rstrip(".")), aliases_left - 1)
        return replace(reply, answers=(alias, *target.answers))

    async def _forward(self, question: Message) -> Message:
        """Ask the upstream servers in order."""
        for server in self._endpoint.dns.nameservers:
            try:
                return await self._endpoint.query(server, question.name, question.type, timeout=FORWARD_TIMEOUT)
            except (NetworkError, messages.BadMessage):
                continue
        return Message(question.id, question.name, question.type, response=True, rcode=messages.SERVFAIL)
