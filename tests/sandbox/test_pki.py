"""Certificates hold up in a real TLS handshake."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest

from winready_sandbox.pki import Authority, client_context, server_context

HOSTS = ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"]


async def handshake(
    server: ssl.SSLContext, client: ssl.SSLContext, hostname: str = "127.0.0.1"
) -> dict[str, Any] | None:
    """Connect over TLS and return the certificate that the server saw."""
    seen: asyncio.Future[dict[str, Any] | None] = asyncio.get_running_loop().create_future()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.set_result(writer.get_extra_info("peercert"))
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server)
    port = listener.sockets[0].getsockname()[1]
    async with listener:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=hostname)
        try:
            return await seen
        finally:
            writer.close()


@pytest.mark.parametrize("hostname", ["127.0.0.1", "localhost", "kubernetes.default.svc"])
async def test_server_is_trusted_under_each_of_its_names(hostname: str) -> None:
    authority = Authority()
    server = server_context(authority.server("kube-apiserver", HOSTS), authority.certificate)
    assert not await handshake(server, client_context(authority.certificate), hostname)


async def test_client_certificate_carries_user_and_groups() -> None:
    authority = Authority()
    server = server_context(authority.server("kube-apiserver", HOSTS), authority.certificate)
    client = client_context(authority.certificate, authority.client("jane", ["dev", "ops"]))
    seen = await handshake(server, client)
    assert seen is not None
    subject = [pair for relative_name in seen["subject"] for pair in relative_name]
    assert subject == [("organizationName", "dev"), ("organizationName", "ops"), ("commonName", "jane")]


async def test_another_sandbox_is_not_trusted() -> None:
    server = server_context(Authority().server("kube-apiserver", HOSTS))
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(server, client_context(Authority().certificate))


async def test_client_certificate_of_another_authority_is_refused() -> None:
    authority = Authority()
    server = server_context(authority.server("kube-apiserver", HOSTS), authority.certificate)
    client = client_context(authority.certificate, Authority().client("jane"))
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await handshake(server, client)
