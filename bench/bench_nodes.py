"""How fast a large sandbox is up, what it costs in memory, and how both grow with nodes and pods."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from winready_sandbox.apiclient import Access, ApiClient, Transport

PODS = 2000
SPEED = "20"
READY_WITHIN = 15.0
MEMORY = 1024.0


@contextmanager
def sandbox(windows: int, linux: int, folder: str) -> Iterator[tuple[float, dict[str, Any]]]:
    """A running sandbox, with the seconds it took until all nodes were ready and what it says about itself."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": folder}

    def command(*words: str) -> str:
        line = [sys.executable, "-m", "winready", "sandbox", *words, "--name", "bench"]
        return subprocess.run(line, check=True, capture_output=True, text=True, env=environment).stdout

    begun = time.monotonic()
    command("up", "--windows", str(windows), "--linux", str(linux), "--speed", SPEED, "--detach")
    try:
        document = json.loads(command("status", "-o", "json"))
        assert all(node["ready"] for node in document["nodes"])
        yield time.monotonic() - begun, document
    finally:
        command("down")


def megabytes(pid: int) -> float:
    """Resident memory of a process."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def access(document: dict[str, Any], folder: str) -> Access:
    """The administrator's way in."""
    config = yaml.safe_load(Path(document["kubeconfig"]).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    paths = []
    for name in ("client-certificate-data", "client-key-data"):
        path = Path(folder) / name
        path.write_bytes(base64.b64decode(user[name]))
        paths.append(str(path))
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return Access(cluster["server"], authority, (paths[0], paths[1]))


async def fill(way: Access, wanted: int) -> int:
    """Let a Deployment bring the cluster to that many running pods; returns how many there are."""
    transport = Transport(way)
    client = ApiClient(transport)
    try:
        system = len((await client.list("pods"))[0])
        labels = {"app": "bench"}
        container = {"name": "c", "image": "registry.k8s.io/pause:3.10.2"}
        template = {
            "metadata": {"labels": labels},
            "spec": {"nodeSelector": {"kubernetes.io/os": "windows"}, "containers": [container]},
        }
        spec = {"replicas": wanted - system, "selector": {"matchLabels": labels}, "template": template}
        await client.create("deployments", {"metadata": {"name": "bench"}, "spec": spec}, "default")
        while True:
            status = (await client.get("deployments", "bench", "default")).get("status", {})
            if status.get("readyReplicas", 0) >= wanted - system:
                return wanted
            await asyncio.sleep(1)
    finally:
        await transport.close()


def main() -> None:
    """Print the figures, and fail when one is over its limit."""
    with tempfile.TemporaryDirectory() as folder:
        with sandbox(2, 2, folder) as (seconds, document):
            small = megabytes(document["pid"])
            print(f"nodes: 4 nodes ready in {seconds:.1f} s, {small:.0f} MB")
        with sandbox(100, 10, folder) as (seconds, document):
            large = megabytes(document["pid"])
            each = (large - small) / 106
            print(f"nodes: 110 nodes ready in {seconds:.1f} s, {large:.0f} MB ({each:.2f} MB for each further node)")
            begun = time.monotonic()
            pods = asyncio.run(fill(access(document, folder), PODS))
            full = megabytes(document["pid"])
            took, growth = time.monotonic() - begun, (full - large) / pods * 1024
            print(f"nodes: {pods} pods running after {took:.0f} s, {full:.0f} MB ({growth:.0f} KB for each pod)")
    if seconds > READY_WITHIN or full > MEMORY:
        sys.exit(f"nodes: over the limit of {READY_WITHIN:g} s or {MEMORY:g} MB")


if __name__ == "__main__":
    main()
