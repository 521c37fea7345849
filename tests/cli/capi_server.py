"""A `winready capi serve` in a process of its own, and a caller that does to it what Cluster API's controllers do."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.conftest import CommandLine
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NAMESPACES, SECRETS
from winready.deploy.capi import hooks

UPGRADE = {"fromKubernetesVersion": "v1.34.0", "toKubernetesVersion": "v1.35.0"}
WORKERS = {"kubernetesVersion": "v1.35.0"}
SCALE = "100"
QUICK = "core.storage.shared-files"
FAULT = "volumes.windows.not-shared"
PATIENCE = 240.0
"""Seconds: far more than anything takes, so that a busy machine fails nothing."""


def put_kubeconfig(management: str, cluster: str, content: bytes, namespace: str = "fleet") -> None:
    """The Secret that Cluster API keeps for a cluster."""

    async def put() -> None:
        async with Client.connect(find_target(management)) as client:
            if await client.find(NAMESPACES, namespace) is None:
                await client.create(NAMESPACES, {"metadata": {"name": namespace}})
            name = f"{cluster}-kubeconfig"
            await client.delete(SECRETS, name, namespace)
            data = {"value": base64.b64encode(content).decode()}
            await client.create(SECRETS, {"metadata": {"name": name}, "data": data}, namespace)

    asyncio.run(put())


@dataclass
class Extension:
    """The server, in a folder of its own."""

    command_line: CommandLine
    folder: Path
    management: str
    options: tuple[str, ...] = ()
    lines: list[str] = field(default_factory=list)
    port: int = 0
    process: subprocess.Popen[str] | None = None

    def start(self, *more: str) -> Extension:
        """Have it listen."""
        words = ["capi", "serve", "https://127.0.0.1:0", "--kubeconfig", self.management, "--listen", "127.0.0.1"]
        words += ["--port", "0", "--identity", str(self.folder / "keys"), "--state", str(self.folder / "state")]
        words += ["--report-dir", str(self.folder / "runs"), "--poll", "1s", "--time-scale", SCALE]
        words += ["--requirement", QUICK, "--metrics-listen", "0", *self.options, *more]
        self.lines = []
        self.process = self.command_line.start(*words)
        self.follow()
        self.port = int(self.said(r"listening on 127.0.0.1 port (\d+)")[1])
        return self

    def follow(self) -> None:
        assert self.process is not None
        threading.Thread(target=self._follow, args=(self.process,), daemon=True).start()

    def _follow(self, process: subprocess.Popen[str]) -> None:
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            # Closed by `deaf`, perhaps.
            with contextlib.suppress(ValueError, OSError):
                for line in stream:
                    self.lines.append(line)

    def deaf(self) -> None:
        """Read its log no more, and let it know."""
        assert self.process is not None
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            nowhere = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)

    def said(self, pattern: str) -> re.Match[str]:
        """What its log says, as soon as it does."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if found := re.search(pattern, "".join(self.lines)):
                return found
            assert self.process is not None
            if self.process.poll() is not None:
                time.sleep(0.5)
                break
            time.sleep(0.05)
        raise AssertionError(f"{pattern!r} is not in:\n{''.join(self.lines)}")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Have it end, and wait for that."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE)

    @property
    def trust(self) -> ssl.SSLContext:
        """Of whoever has its authority."""
        return ssl.create_default_context(cafile=str(self.folder / "keys" / "ca.crt"))

    def post(self, path: str, body: bytes) -> dict[str, Any]:
        """One request; the document of a successful answer."""
        url = f"https://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30, context=self.trust) as response:  # noqa: S310
            found: dict[str, Any] = json.loads(response.read())
        return found

    def call(self, hook: str, cluster: str = "one", *, uid: str = "uid-1", **more: Any) -> dict[str, Any]:
        """What a controller asks, and what it hears; labels, annotations and deletionTimestamp go to the cluster."""
        own: dict[str, Any] = {
            key: more.pop(key) for key in ("labels", "annotations", "deletionTimestamp") if key in more
        }
        metadata: dict[str, Any] = {"name": cluster, "namespace": "fleet", "uid": uid, "generation": 3, **own}
        document: dict[str, Any] = {
            "apiVersion": hooks.VERSION,
            "kind": f"{hook}Request",
            "cluster": {"metadata": metadata},
            **more,
        }
        return self.post(hooks.path(hook), json.dumps(document).encode())

    def until(self, condition: Callable[[dict[str, Any]], bool], hook: str, *words: str, **more: Any) -> dict[str, Any]:
        """Ask as a controller does, until the answer is as wanted."""
        until = time.monotonic() + PATIENCE
        while True:
            found = self.call(hook, *words, **more)
            if condition(found):
                return found
            assert time.monotonic() < until, f"{found}\n{''.join(self.lines)}"
            time.sleep(0.2)

    def facts(self, kind: str = "") -> list[str]:
        """The facts it keeps, by their names."""
        return sorted(path.name for path in (self.folder / "state").rglob("*.json") if kind in path.name)

    def metrics(self) -> str:
        """Its metrics."""
        port = self.said(r"metrics at port (\d+)")[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
            return str(response.read().decode())


def released(answer: dict[str, Any]) -> bool:
    """It goes on."""
    return answer["status"] == "Success" and not answer.get("retryAfterSeconds")


def held(answer: dict[str, Any]) -> bool:
    """It waits."""
    return answer["status"] == "Success" and bool(answer.get("retryAfterSeconds"))
