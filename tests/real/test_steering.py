"""Steering by webhook on a real API server that has no MutatingAdmissionPolicy, with pods of the real e2e.test.

The e2e.test is that of the newer version: none of the older one can be built. Its test is one that any server runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from real.conftest import KUBERNETES, OLDER, Cluster
from real_programs import ensure
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NAMESPACES, PODS
from winready.cluster.steering import wait_until_steered
from winready.cluster.steering_webhook import CONFIGURATIONS

pytestmark = [pytest.mark.older, pytest.mark.timeout(600)]

FOCUS = r"Projected configMap should be consumable from pods in volume \[NodeConformance\] \[Conformance\]$"
WINDOWS = {"kubernetes.io/os": "windows"}


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    return clusters(OLDER)


@contextmanager
def serving(cluster: Cluster, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The webhook server, in force."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["steer", "serve", f"https://127.0.0.1:{port}", "--listen", "127.0.0.1", "--apply", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "winready", *words, "--kubeconfig", cluster.kubeconfig],
        env={**os.environ, "XDG_RUNTIME_DIR": str(cluster.runtime)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    assert "is in force" in process.stdout.readline(), process.communicate(timeout=60)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def ask(cluster: Cluster, question: Callable[[Client], Any]) -> Any:
    async def go() -> Any:
        async with Client.connect(find_target(cluster.kubeconfig)) as client:
            return await question(client)

    return asyncio.run(go())


def steered(cluster: Cluster, namespace: str, labels: dict[str, str], seconds: float) -> str:
    """Why pods of such a namespace are not steered, or nothing."""

    async def look(client: Client) -> str:
        await client.create(NAMESPACES, {"metadata": {"name": namespace, "labels": labels}})
        try:
            return await wait_until_steered(client, namespace, seconds=seconds)
        finally:
            await client.delete(NAMESPACES, namespace)

    return str(ask(cluster, look))


def configured(cluster: Cluster) -> list[str]:
    return [item["metadata"]["name"] for item in ask(cluster, lambda client: client.list(CONFIGURATIONS))]


def test_pods_are_steered_in_labelled_namespaces_alone(cluster: Cluster) -> None:
    with serving(cluster):
        assert steered(cluster, "steer-labelled", {"e2e-run": "x"}, 60) == ""
        assert steered(cluster, "steer-plain", {}, 10) == "pods keep the selectors they have"
    assert configured(cluster) == []
    assert steered(cluster, "steer-over", {"e2e-run": "x"}, 10) == "pods keep the selectors they have"


def test_a_server_that_is_gone_harms_nobody_and_cleanup_removes_what_it_left(cluster: Cluster) -> None:
    with serving(cluster, "--namespace", "steer-alive", "--namespace", "steer-killed") as process:
        assert steered(cluster, "steer-alive", {}, 60) == ""
        process.kill()
        process.wait(timeout=60)
        assert configured(cluster) == ["winready-steer"]
        # It fails open: pods are created as if nobody steered.
        assert steered(cluster, "steer-killed", {}, 10) == "pods keep the selectors they have"
    assert cluster.winready("cleanup", "--kubeconfig", cluster.kubeconfig).returncode == 0
    assert configured(cluster) == []


@pytest.mark.e2e
def test_pods_of_e2e_test_run_on_windows(cluster: Cluster, tmp_path: Path) -> None:
    program = ensure(KUBERNETES, ["e2e.test"]) / "e2e.test"
    seen: dict[str, dict[str, Any]] = {}
    over = threading.Event()

    def watch() -> None:
        async def look(client: Client) -> None:
            while not over.is_set():
                for pod in await client.list(PODS):
                    if pod["metadata"]["namespace"].startswith("projected-"):
                        seen[pod["metadata"]["uid"]] = pod
                await asyncio.sleep(0.2)

        ask(cluster, look)

    command = [
        str(program),
        "--kubeconfig",
        cluster.kubeconfig,
        "--provider",
        "skeleton",
        "--node-os-distro",
        "windows",
    ]
    command += ["--ginkgo.focus", FOCUS, "--ginkgo.no-color", "--report-dir", str(tmp_path), "--disable-log-dump"]
    watcher = threading.Thread(target=watch)
    with serving(cluster):
        watcher.start()
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        finally:
            over.set()
            watcher.join()
    assert result.returncode == 0, result.stdout[-3000:]
    assert "1 Passed" in result.stdout
    assert seen
    nodes = {pod["spec"].get("nodeName", "") for pod in seen.values()} - {""}
    assert all(pod["spec"]["nodeSelector"] == WINDOWS for pod in seen.values()), json.dumps(list(seen.values()))[:2000]
    assert nodes
    assert all(node.startswith("windows-") for node in nodes)
