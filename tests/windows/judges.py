"""Two that are asked the same: Windows programs under wine, and their models. What they say goes to our own readers."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from real_programs import ensure
from sandbox.helpers.containers import run
from windows.control_plane import KUBERNETES
from windows.ground import Ground, stopped_at_last
from winready.cluster.execution import Execution
from winready.cluster.pods import Pod
from winready_sandbox.machine.container import Container

AGNHOST = r"C:\agnhost"
"""As in images: without an ending, and started as ``/agnhost``."""
EMPTY_REPLY = 52
"""How curl ends when a server closes the connection and has said nothing."""


def put_agnhost(machine: Ground) -> None:
    """Have the real program on a machine."""
    machine.put(AGNHOST, ensure(KUBERNETES, ["agnhost.exe"]) / "agnhost.exe")


def foreign(machine: Ground, words: Sequence[str], env: Mapping[str, str] | None = None) -> Execution:
    """What a real program answers."""
    result = machine.run(words, env=env)
    return Execution(result.code, result.out.encode(), result.err.encode())


async def ours(where: Container, words: Sequence[str]) -> Execution:
    """What the model answers."""
    result = await run(where, *words)
    return Execution(result.code, result.out.encode(), result.err.encode())


@contextlib.contextmanager
def running(
    machine: Ground, words: Sequence[str], *, port: int = 0, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that stays, from when something listens on its port."""
    command = machine.command(words, env=env)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with stopped_at_last(process):
        while port and not _listens(machine, port):
            assert process.poll() is None, f"{words} ended with {process.returncode}"
            time.sleep(0.1)
        yield process


def _listens(machine: Ground, port: int) -> bool:
    with machine.network(), contextlib.suppress(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
        return True
    return False


def curl(machine: Ground, words: Sequence[str]) -> Execution:
    """What ``curl.exe`` with these words would print of the servers of a machine, by another client."""
    assert words[0] == "curl.exe"
    after = words[words.index("-w") + 1].replace("\\n", "\n") if "-w" in words else ""
    out = ""
    for url in [word for word in words if word.startswith("http://")]:
        try:
            body, code = _get(machine, url)
        except http.client.RemoteDisconnected:
            return Execution(EMPTY_REPLY, out.encode(), b"")
        out += body + after.replace("%{http_code}", str(code))
    return Execution(0, out.encode(), b"")


def _get(machine: Ground, url: str) -> tuple[str, int]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with machine.network():
        try:
            with opener.open(url, timeout=60) as answer:
                return answer.read().decode(), answer.status
        except urllib.error.HTTPError as error:
            return error.read().decode(), error.code


def pod_that_says(answer: Execution) -> Pod:
    """A pod that answers any command with this."""

    class Saying:
        async def run(self, *_: Any, **__: Any) -> Execution:
            return answer

    return cast(Pod, Saying())
