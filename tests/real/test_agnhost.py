"""The simulated agnhost gives the answers of the real one, word for word, where both can be asked the same."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from real.conftest import KUBERNETES
from real_programs import ensure
from sandbox.helpers.containers import container, machine, run
from winready.cluster.commands import DATAGRAM, NETEXEC_UDP, PAUSE
from winready_sandbox.machine.container import Container
from winready_sandbox.network.fabric import Fabric


@pytest.fixture(scope="session")
def agnhost() -> Path:
    """The real program."""
    return ensure(KUBERNETES, ["agnhost"]) / "agnhost"


@pytest.fixture
async def simulated() -> AsyncIterator[Container]:
    """A Linux container with the simulated one."""
    host = machine("linux")
    fabric = Fabric(host.clock)
    fabric.add_node("n", "linux", ["10.250.0.2"], ["10.244.2.0/24"])
    endpoint = fabric.attach("n", namespace="ns", name="pod-1", uid="u")
    where = container("agnhost", "linux", on=host, endpoint=endpoint)
    yield where
    for process in list(where.processes.values()):
        await process.kill()
    fabric.close()


USES = [
    ("bogus",),
    ("connect",),
    ("connect", "a", "b"),
    ("connect", "foo"),
    ("connect", "127.0.0.1:1"),
    ("connect", "127.0.0.1:99999"),
    ("connect", "127.0.0.1:abc"),
    ("connect", "--protocol=udp", "foo"),
    ("connect", "--protocol=udp", "127.0.0.1:99999"),
    ("connect", "--timeout=abc", "1.1.1.1:1"),
    ("connect", "--timeout=5", "1.1.1.1:1"),
    ("connect", "--protocol=x", "1.1.1.1:1"),
    ("connect", "--timeout"),
    ("netexec", "--bogus"),
    ("netexec", "-z"),
    ("netexec", "extra"),
    ("netexec", "--http-port=x"),
    ("serve-hostname", "--port=x"),
    ("mounttest", "--file_content=/no/such/file"),
    ("mounttest", "--new_file_0644=/no/such/folder/file"),
]


@pytest.mark.parametrize("arguments", USES, ids=" ".join)
async def test_uses_and_misuses(agnhost: Path, simulated: Container, arguments: tuple[str, ...]) -> None:
    command = [str(agnhost), *arguments]
    real = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    ours = await run(simulated, "/agnhost", *arguments)
    out = real.stdout.replace(str(agnhost), "/agnhost")
    assert (ours.code, ours.out, ours.err) == (real.returncode, out, real.stderr)


@pytest.fixture(scope="session")
def real_netexec(agnhost: Path) -> Iterator[tuple[int, int]]:
    """The ports of a real netexec."""
    with socket.socket() as free, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free_udp:
        free.bind(("127.0.0.1", 0))
        free_udp.bind(("127.0.0.1", 0))
        port, udp_port = free.getsockname()[1], free_udp.getsockname()[1]
    flags = [f"--http-port={port}", f"--udp-port={udp_port}"]
    with subprocess.Popen([agnhost, "netexec", *flags], stderr=subprocess.DEVNULL) as process:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield port, udp_port
        process.terminate()


TARGETS = [
    "/hostname",
    "/healthz",
    "/clientip",
    "/echo?msg=a%20b&code=203",
    "/echo?msg=x&code=z",
    "/header?key=X-None",
    "/redirect?location=/hostname",
    "/redirect?location=/hostname&code=x",
    "/shell?cmd=echo%20hi",
    "/shell?cmd=exit%203",
    "/exit?timeout=x",
    "/exit?code=x",
    "/upload",
    "/dial?host=127.0.0.1&port=PORT&request=hostname&tries=3",
    "/dial?host=127.0.0.1&port=PORT&request=echo?msg=",
    "/dial?host=127.0.0.1&port=1&request=hostname",
    "/dial?host=127.0.0.1&port=1&protocol=udp&request=hostname",
    f"/dial?host=127.0.0.1&port=UDP&protocol=udp&request=echo+{'x' * DATAGRAM}",
    PAUSE.url.partition("8080")[2].replace(f"port={NETEXEC_UDP}", "port=UDP"),
    "/dial?host=127.0.0.1&port=1",
    "/dial?host=127.0.0.1&port=1&protocol=foo&request=x",
    "/dial?host=127.0.0.1&port=1&request=x&tries=z",
]


class _Stay(urllib.request.HTTPRedirectHandler):
    """Redirections are answers like others."""

    def redirect_request(self, *_: object) -> None:
        return None


def _fetch(url: str) -> tuple[int, str]:
    opener = urllib.request.build_opener(_Stay, urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def _plain(text: str, ports: tuple[int, int], hostname: str) -> str:
    """Without what differs by nature: ports, addresses of the caller, host names."""
    text = text.replace(hostname, "HOST").replace(str(ports[0]), "PORT").replace(str(ports[1]), "UDP")
    return re.sub(r"\d+\.\d+\.\d+\.\d+:\d+(?=$|-|\\u003e)", "CALLER", text)


@pytest.mark.parametrize("target", TARGETS)
async def test_netexec_answers(real_netexec: tuple[int, int], simulated: Container, target: str) -> None:
    path = target.replace("PORT", str(real_netexec[0])).replace("UDP", str(real_netexec[1]))
    real = await asyncio.to_thread(_fetch, f"http://127.0.0.1:{real_netexec[0]}{path}")
    simulated.spawn(["/agnhost", "netexec"])
    await asyncio.sleep(0)
    url = f"http://127.0.0.1:8080{target.replace('PORT', '8080').replace('UDP', '8081')}"
    ours = await run(simulated, "curl", "-s", "-w", "%{http_code}", url)
    status, body = int(ours.out[-3:]), ours.out[:-3]
    assert status == real[0]
    assert _plain(body, (8080, 8081), simulated.hostname) == _plain(real[1], real_netexec, socket.gethostname())
