"""Claims get volumes by themselves, which nodes of both systems can mount."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.helpers.containers import run
from winready_sandbox.plan import Plan
from winready_sandbox.state import Place
from winready_sandbox.up import Sandbox

Object = dict[str, Any]
IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"


@pytest.fixture
async def cluster() -> AsyncIterator[Sandbox]:
    """One node of each OS."""
    folder = Path(tempfile.mkdtemp(prefix="wr-"))
    async with Sandbox(Plan(linux=1, windows=1, speed=100), Place("test", folder)) as sandbox:
        yield sandbox
    shutil.rmtree(folder)


async def until(condition: Callable[[], Any]) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came to be")


def user(name: str, os: str) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "os": {"name": os},
            "nodeSelector": {"kubernetes.io/os": os},
            "containers": [
                {
                    "name": "c",
                    "image": IMAGE,
                    "args": ["pause"],
                    "volumeMounts": [{"name": "v", "mountPath": "/data"}],
                }
            ],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    }


async def test_a_claim_gets_a_volume_that_all_nodes_share_and_that_goes_with_it(cluster: Sandbox) -> None:
    client = cluster.embedded.client
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    client.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": spec}, "default")
    for os in ("linux", "windows"):
        client.create("pods", user(f"on-{os}", os), "default")

    def phases() -> set[str]:
        return {each.get("status", {}).get("phase", "") for each in client.list("pods", "default")[0]}

    await until(lambda: phases() == {"Running"})
    claim = client.get("persistentvolumeclaims", "data", "default")
    assert (claim["status"]["phase"], claim["spec"]["storageClassName"]) == ("Bound", "smb")
    instances = {
        os: next(iter(worker.runs.values())).instance
        for os in ("linux", "windows")
        for worker in cluster.fleet.kubelets[f"{os}-1"].workers.values()
        if worker.pod["metadata"]["name"] == f"on-{os}"
    }
    containers = {os: instance.metered for os, instance in instances.items() if instance is not None}
    linux, windows = containers["linux"], containers["windows"]
    assert linux is not None
    assert windows is not None
    assert (await run(windows, "cmd", "/c", "echo hello>C:\\data\\File.txt")).code == 0
    assert (await run(linux, "cat", "/data/File.txt")).out == "hello\r\n"

    volume = claim["spec"]["volumeName"]
    for os in ("linux", "windows"):
        client.delete("pods", f"on-{os}", "default")
    client.delete("persistentvolumeclaims", "data", "default")
    await until(lambda: volume not in [each["metadata"]["name"] for each in client.list("persistentvolumes")[0]])


async def test_a_claim_of_another_class_waits_and_says_for_whom(cluster: Sandbox) -> None:
    client = cluster.embedded.client
    client.create("storageclasses", {"metadata": {"name": "other"}, "provisioner": "disk.example"})
    for name in ("other", "missing"):
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "resources": {"requests": {"storage": "1Gi"}},
        }
        client.create("persistentvolumeclaims", {"metadata": {"name": name}, "spec": spec}, "default")

    def said() -> dict[str, tuple[str, str]]:
        events = client.list("events", "default")[0]
        return {each["involvedObject"]["name"]: (each["reason"], each["message"]) for each in events}

    await until(lambda: {"other", "missing"} <= said().keys())
    assert said()["other"][0] == "ExternalProvisioning"
    assert "external provisioner 'disk.example'" in said()["other"][1]
    assert said()["missing"] == ("ProvisioningFailed", 'storageclass.storage.k8s.io "missing" not found')
    assert client.get("persistentvolumeclaims", "other", "default")["status"]["phase"] == "Pending"
