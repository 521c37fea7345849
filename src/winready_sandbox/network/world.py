"""The world outside the cluster: a few well-known names, a resolver for them, and web servers that answer.

Nothing here leaves the machine. An air-gapped site is a world that is not online.
"""

from __future__ import annotations

import hashlib

from winready_sandbox.network import messages
from winready_sandbox.network.messages import Message, Record
from winready_sandbox.streams import Connection

RESOLVER = "192.0.2.53"
"""The site's own resolver, which nodes are configured with."""
NAMES = (
    "registry.k8s.io",
    "k8s.io",
    "kubernetes.io",
    "mcr.microsoft.com",
    "www.microsoft.com",
    "microsoft.com",
    "www.google.com",
    "google.com",
    "github.com",
    "example.com",
    "www.example.com",
    "docker.io",
    "registry-1.docker.io",
    "www.bing.com",
    "bing.com",
    "dns.google",
)
FIXED = {"dns.google": ("8.8.8.8", "2001:4860:4860::8888"), "example.com": ("192.0.2.80", "2001:db8::80")}
OPEN_PORTS = {80, 443}


def _addresses(name: str) -> tuple[str, str]:
    if name in FIXED:
        return FIXED[name]
    digest = hashlib.sha256(name.encode()).digest()
    return f"198.18.{digest[0]}.{digest[1] % 254 + 1}", f"2001:db8:18::{digest[0]:x}{digest[1]:02x}"


class OutsideWorld:
    """What a packet meets when it leaves the cluster."""

    def __init__(self) -> None:
        self.online = True
        self.dns_dead = False
        """The site's resolver does not answer."""
        self.names: dict[str, tuple[str, str]] = {name: _addresses(name) for name in NAMES}

    def hosts_address(self, ip: str) -> bool:
        """Whether some machine out there has this address."""
        return self.online and any(ip in pair for pair in self.names.values())

    def accepts(self, ip: str, port: int) -> bool:
        """Whether that machine takes TCP connections on a port: web servers all, and public resolvers DNS."""
        return port in OPEN_PORTS or (port == 53 and ip in FIXED["dns.google"])

    def answer_dns(self, payload: bytes) -> bytes | None:
        """What the site's resolver says."""
        if self.dns_dead:
            return None
        try:
            question = messages.decode(payload)
        except messages.BadMessage:
            return None
        name = question.name.lower().rstrip(".")
        if not self.online:
            reply = Message(question.id, question.name, question.type, True, rcode=messages.SERVFAIL)
            return reply.encode()
        pair = self.names.get(name)
        answers: tuple[Record, ...] = ()
        if pair is not None and question.type in ("A", "AAAA"):
            answers = (Record(question.name, question.type, 300, pair[0] if question.type == "A" else pair[1]),)
        rcode = messages.NOERROR if pair is not None else messages.NXDOMAIN
        reply = Message(
            question.id, question.name, question.type, True, False, rcode, answers, recursion_available=True
        )
        return reply.encode()

    async def serve(self, connection: Connection) -> None:
        """A web server like any other; TLS is not spoken out here, so port 443 only accepts."""
        request = await connection.read()
        if request[:4] in (b"GET ", b"HEAD", b"POST"):
            body = b"<!doctype html><html><head><title>Example Domain</title></head></html>\n"
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            connection.write(head % len(body) + (b"" if request.startswith(b"HEAD") else body))
        connection.close()
