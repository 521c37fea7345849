"""The network in a whole sandbox: names, services and the API server as pods of both OSes reach them."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox.helpers.containers import Result, run
from winready_sandbox.machine.container import Container
from winready_sandbox.plan import Plan
from winready_sandbox.state import Place
from winready_sandbox.up import Sandbox

IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
FETCH = ("-g", "-s", "-S", "--connect-timeout", "10", "--max-time", "15")


@asynccontextmanager
async def new_cluster(**more: Any) -> AsyncIterator[Sandbox]:
    folder = Path(tempfile.mkdtemp(prefix="wr-"))
    async with Sandbox(Plan(linux=1, windows=1, speed=100, **more), Place("test", folder)) as sandbox:
        yield sandbox
    shutil.rmtree(folder)


@pytest.fixture
async def cluster() -> AsyncIterator[Sandbox]:
    """One node of each OS."""
    async with new_cluster() as sandbox:
        yield sandbox


def netexec(name: str, os: str) -> dict[str, Any]:
    """A pod with a netexec server."""
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "os": {"name": os},
            "nodeSelector": {"kubernetes.io/os": os},
            "containers": [
                {
                    "name": "c",
                    "image": IMAGE,
                    "args": ["netexec"],
                    "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1},
                }
            ],
        },
    }


async def started(cluster: Sandbox, name: str, os: str) -> Container:
    """Create a pod and wait until it is ready and so is cluster DNS."""
    client = cluster.embedded.client
    client.create("pods", netexec(name, os), "default")
    async with asyncio.timeout(60):
        while True:
            pods = [client.get("pods", name, "default"), *client.list("pods", "kube-system")[0]]
            if all(_ready(pod) for pod in pods):
                break
            await asyncio.sleep(0.02)
    containers = cluster.fleet.kubelets[f"{os}-1"].machine.containers.values()
    return next(each for each in containers if each.hostname == name)


def _ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def eventually(where: Container, *argv: str, out: str | None = None, code: int | None = None) -> None:
    """Run a command until it prints, or ends with, what is expected."""
    async with asyncio.timeout(60):
        while True:
            result: Result = await run(where, *argv)
            if result.out == out or result.code == code:
                return
            await asyncio.sleep(0.02)


async def test_pods_find_services_by_name_and_the_api_server_by_tls(cluster: Sandbox) -> None:
    linux, windows = await started(cluster, "srv", "linux"), await started(cluster, "wc", "windows")
    client = cluster.embedded.client
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    web = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "srv"}, "ports": ports}}
    vip = client.create("services", web, "default")["spec"]["clusterIP"]
    await eventually(windows, "curl.exe", *FETCH, f"http://{vip}/hostname", out="srv")
    await eventually(windows, "curl.exe", *FETCH, "http://web/hostname", out="srv")
    await eventually(windows, "curl.exe", *FETCH, "http://web.default.svc.cluster.local/hostname", out="srv")
    await eventually(linux, "curl", *FETCH, "http://web.default/hostname", out="srv")
    partial = await run(windows, "curl.exe", *FETCH, "http://web.default/hostname")
    assert (partial.code, partial.err) == (6, "curl: (6) Could not resolve host: web.default\n")
    api = "https://kubernetes.default.svc.cluster.local/healthz"
    ca = "C:\\var\\run\\secrets\\kubernetes.io\\serviceaccount\\ca.crt"
    await eventually(windows, "curl.exe", *FETCH, "--cacert", ca, api, out="ok")
    client.delete("services", "web", "default")
    await eventually(windows, "/agnhost", "connect", "--timeout=1s", f"{vip}:80", code=1)


async def test_linux_pods_ask_the_cache_of_their_node_and_windows_pods_the_service() -> None:
    async with new_cluster(node_local_dns=True, cluster_domain="k8s.example") as cluster:
        linux, windows = await started(cluster, "lx", "linux"), await started(cluster, "wx", "windows")
        for pod, server in ((linux, "169.254.20.10"), (windows, "10.96.0.10")):
            assert (await run(pod, "/agnhost", "dns-server-list")).out.strip() == server
            for name in ("kubernetes.default.svc.k8s.example.", "registry.k8s.io."):
                await eventually(pod, "/agnhost", "connect", "--timeout=5s", f"{name}:443", code=0)
            assert not (await run(pod, "dig", "+short", "kubernetes.default.svc.cluster.local.")).out
            assert "svc.k8s.example" in (await run(pod, "/agnhost", "dns-suffix")).out
