"""curl's messages and exit codes."""

from __future__ import annotations

import re
import ssl

import pytest

from sandbox.helpers.containers import cmd, run
from sandbox.programs.networked import address, network_of, on_node, start
from winready_sandbox.machine.container import Container
from winready_sandbox.network.fabric import Fabric, bridge
from winready_sandbox.pki import Authority, server_context
from winready_sandbox.streams import Connection


@pytest.fixture
async def server(fabric: Fabric) -> Container:
    """A netexec server on Windows."""
    where = on_node(fabric, "w1", "server")
    await start(where, "/agnhost", "netexec", port=8080)
    return where


@pytest.fixture
def client(fabric: Fabric) -> Container:
    """A Windows client on the other node."""
    return on_node(fabric, "w2", "client")


async def test_failures_have_curls_codes_and_words(fabric: Fabric, server: Container, client: Container) -> None:
    ip = address(server)
    refused = await run(client, "curl.exe", "-s", "-S", f"http://{ip}:1/")
    assert refused.code == 7
    words = rf"curl: \(7\) Failed to connect to {ip} port 1 after \d+ ms: Could not connect to server\n"
    assert re.fullmatch(words, refused.err)
    lost = await run(client, "curl.exe", "-sS", "--connect-timeout", "3", "http://10.96.1.1/")
    assert lost.code == 28
    assert lost.err.startswith("curl: (28) Connection timed out after 3")
    unknown = await run(client, "curl.exe", "-sS", "--connect-timeout", "3", "http://nobody.ns.svc.cluster.local/")
    assert unknown.code == 28
    assert unknown.err == "curl: (28) Resolving timed out after 3000 milliseconds\n"
    missing = await run(client, "curl.exe", "-sS", "-f", f"http://{ip}:8080/echo?msg=x&code=404")
    assert (missing.code, missing.out) == (22, "")
    assert missing.err == "curl: (22) The requested URL returned error: 404\n"
    assert (await run(client, "curl.exe", "-s", f"http://{ip}:1/")).err == ""


async def test_wrong_usage(client: Container) -> None:
    hint = "curl: try 'curl --help' or 'curl --manual' for more information\n"
    assert (await run(client, "curl.exe", "--bogus")).err == f"curl: option --bogus: is unknown\n{hint}"
    nothing = await run(client, "curl.exe", "-s")
    assert (nothing.code, nothing.err) == (2, f"curl: (2) no URL specified\n{hint}")
    assert (await run(client, "curl.exe", "-sS", "gopher://x/")).err == 'curl: (1) Protocol "gopher" not supported\n'
    assert (await run(client, "curl.exe", "-sS", "http://")).code == 3


async def test_max_time_counts_after_the_connection_too(fabric: Fabric, client: Container) -> None:
    """A server that accepts and never answers, as an MTU black hole looks from outside (fact N2)."""
    silent = on_node(fabric, "l1", "silent")

    async def swallow(connection: Connection) -> None:
        while await connection.read():
            pass

    network_of(silent).listen(80, swallow)
    result = await run(client, "curl.exe", "-sS", "--max-time", "2", f"http://{address(silent)}/")
    assert result.code == 28
    assert result.err.startswith("curl: (28) Operation timed out after 2")
    assert result.err.endswith("milliseconds with 0 bytes received\n")


async def test_output_options(server: Container, client: Container) -> None:
    url = f"http://{address(server)}:8080/echo?msg=hello"
    written = await run(client, "curl.exe", "-s", "-o", "C:\\out.txt", "-w", "%{http_code}\\n", url)
    assert written.out == "200\n"
    assert client.files.read("C:\\out.txt") == b"hello"
    assert "% Total" in (await run(client, "curl.exe", url)).err
    client.files.write("C:\\headers.txt", b"X-One: two\r\n")
    header = f"http://{address(server)}:8080/header?key=X-One"
    assert (await run(client, "curl.exe", "-s", "-H", "@C:\\headers.txt", header)).out == "two", "brief P1"


async def test_fact_1_3_an_ampersand_is_safe_in_argv_and_splits_in_cmd(server: Container, client: Container) -> None:
    url = f"http://{address(server)}:8080/echo?code=203&msg=whole"
    assert (await run(client, "curl.exe", "-s", url)).out == "whole"
    split = await cmd(client, f"curl.exe -s {url}")
    assert split.out == ""
    assert "whole" not in split.out


async def test_https_is_the_real_protocol(fabric: Fabric, client: Container) -> None:
    import asyncio

    authority = Authority()
    pair = authority.server("api", ["api.test", "10.250.0.2"])

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    context = server_context(pair, authority.certificate)
    context.verify_mode = ssl.CERT_NONE
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    machine = fabric.add_machine("control-plane", ["10.250.0.2"])
    machine.listen(6443, bridge("127.0.0.1", server.sockets[0].getsockname()[1]))
    url = "https://10.250.0.2:6443/healthz"
    assert (await run(client, "curl.exe", "-sS", "-k", url)).out == "ok"
    untrusted = await run(client, "curl.exe", "-sS", url)
    assert untrusted.code == 60
    assert untrusted.err.startswith("curl: (60) SSL certificate problem: ")
    client.files.write("C:\\ca.crt", authority.certificate)
    assert (await run(client, "curl.exe", "-sS", "--cacert", "C:\\ca.crt", url)).out == "ok"
    server.close()


CONNECTS = ("-s", "-w", "#%{num_connects} ")


async def test_a_connection_serves_the_next_url_at_the_same_place(server: Container, client: Container) -> None:
    here, there = f"http://{address(server)}:8080/echo?msg=a", f"http://{address(server)}:8080/echo?msg=b"
    assert (await run(client, "curl.exe", *CONNECTS, here, there, here)).out == "a#1 b#0 a#0 "
    assert (await run(client, "curl.exe", *CONNECTS, here)).out == "a#1 ", "it ends with its command"


@pytest.mark.parametrize(
    ("head", "hangs_up", "second"),
    [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close", False, "#1"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1", True, "#1"),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1", False, "#1"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1", False, "#0"),
    ],
)
async def test_a_server_may_end_a_connection_and_curl_opens_another(
    fabric: Fabric, client: Container, head: str, hangs_up: bool, second: str
) -> None:
    other = on_node(fabric, "l1", "other")

    async def serve(connection: Connection) -> None:
        while line := await connection.readline():
            if line.strip():
                continue
            connection.write(f"{head}\r\n\r\nx".encode())
            if hangs_up:
                connection.close()

    network_of(other).listen(80, serve)
    url = f"http://{address(other)}/"
    assert (await run(client, "curl.exe", *CONNECTS, url, url)).out == f"x#1 x{second} "


async def test_a_kept_connection_that_ends_without_an_answer_is_tried_once_more(
    fabric: Fabric, client: Container
) -> None:
    other = on_node(fabric, "l1", "other")

    async def once(connection: Connection) -> None:
        for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b""):
            while (await connection.readline()).strip():
                pass
            connection.write(answer)
        connection.close()

    network_of(other).listen(80, once)
    url = f"http://{address(other)}/"
    result = await run(client, "curl.exe", *CONNECTS, url, url)
    assert (result.code, result.out) == (0, "x#1 x#1 ")
