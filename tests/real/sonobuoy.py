"""The real Sonobuoy on a sandbox whose host node runs its aggregator and our plugin."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from real.conftest import SPEED, Cluster
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, PODS, SERVICE_ACCOUNTS

IMAGE = "sonobuoy/sonobuoy:v0.57.5"
WINREADY = "winready:under-test"
HOST = "sandbox.winready.io/host"
KINDS = {kind.kind: kind for kind in (NAMESPACES, SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)}
PATIENCE = 420.0
"""For what others do at their own pace: Sonobuoy looks every ten seconds, and believes in some errors after minutes."""


@dataclass
class Story:
    """One run of Sonobuoy, as its user sees it."""

    folder: Path
    namespace: str
    cluster: Cluster
    program: Path
    status: dict[str, Any] = field(default_factory=dict)
    table: str = ""
    tarball: Path = Path()
    results: str = ""
    log: str = ""
    """Of the plugin, as it is in the tarball."""
    deleted: str = ""
    left: list[str] = field(default_factory=list)

    @property
    def plugin(self) -> dict[str, Any]:
        """What ``sonobuoy status --json`` says of our plugin."""
        found: dict[str, Any] = self.status["plugins"][0]
        return found

    def sonobuoy(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The program, for this run."""
        environment = {**os.environ, "KUBECONFIG": self.cluster.kubeconfig, "HOME": str(self.folder)}
        # For 'results' this flag is a node.
        where = () if arguments[0] == "results" else ("-n", self.namespace)
        command = [str(self.program), *arguments, *where]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    def run(
        self,
        *flags: str,
        edit: Callable[[dict[str, Any]], object] = lambda _: None,
        options: tuple[str, ...] = (),
        meanwhile: Callable[[Story], object] | None = None,
    ) -> Story:
        """Run the plugin with these flags of 'winready sonobuoy plugin', retrieve what came of it, and delete it."""
        place = ("--image", WINREADY, "--pod-node-selector", f"{HOST}=true", "--pod-tolerate", HOST)
        made = self.cluster.winready("sonobuoy", "plugin", *place, *flags)
        assert made.returncode == 0, made.stderr
        document = yaml.safe_load(made.stdout)
        edit(document)
        (self.folder / "plugin.yaml").write_text(yaml.safe_dump(document))
        (self.folder / "config.json").write_text(json.dumps({"AggregatorTolerations": [{"operator": "Exists"}]}))
        where = ("--aggregator-node-selector", f"{HOST}:true", "--sonobuoy-image", IMAGE)
        begun = self.sonobuoy("run", "-p", "plugin.yaml", "--config", "config.json", *where, *options)
        assert begun.returncode == 0, begun.stderr
        try:
            if meanwhile is not None:
                meanwhile(self)
            self.until(lambda: self.look().get("status") == "complete", "the run is complete")
            self.table = self.sonobuoy("status").stdout
            self._retrieve()
        finally:
            self.deleted = self.sonobuoy("delete", "--wait=2").stdout
            self.left = asyncio.run(self._left())
        return self

    def look(self) -> dict[str, Any]:
        """The status as it is now, if there is any."""
        said = self.sonobuoy("status", "--json").stdout
        self.status = json.loads(said) if said.startswith("{") else {}
        return self.status

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something that others do."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"not in time: {what}; {self.status}\n{self.sonobuoy('logs').stdout[-3000:]}"
            time.sleep(1)

    def until_verifying(self) -> None:
        """Wait until Sonobuoy shows that the run itself has begun."""

        def verifying() -> bool:
            plugins = self.look().get("plugins") or [{}]
            return "will be verified" in ((plugins[0].get("progress") or {}).get("msg") or "")

        self.until(verifying, "the plugin tells its progress")

    def remove_plugin_pod(self, grace: int | None) -> None:
        """What a drain does to the plugin's pod, or, without grace, somebody in a hurry."""
        self.until_verifying()

        async def remove() -> None:
            async with Client.connect(find_target(self.cluster.kubeconfig)) as client:
                for pod in await client.list(PODS, self.namespace, labels="sonobuoy-plugin=winready"):
                    path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}"
                    await client.transport.call(
                        "DELETE", path, body={"gracePeriodSeconds": grace} if grace == 0 else {}
                    )

        asyncio.run(remove())

    def create(self, documents: list[dict[str, Any]]) -> None:
        """Create objects, as 'kubectl create' does."""

        async def go() -> None:
            async with Client.connect(find_target(self.cluster.kubeconfig)) as client:
                for document in documents:
                    await client.create(KINDS[document["kind"]], document, document["metadata"].get("namespace"))

        asyncio.run(go())

    def remove_roles(self, name: str) -> None:
        """Take back what was granted."""

        async def go() -> None:
            async with Client.connect(find_target(self.cluster.kubeconfig)) as client:
                for kind in (CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES):
                    await client.delete(kind, name)

        asyncio.run(go())

    def _retrieve(self) -> None:
        self.until(lambda: self.sonobuoy("retrieve", ".").returncode == 0, "the results can be retrieved")
        self.tarball = next(self.folder.glob("*_sonobuoy_*.tar.gz"))
        self.results = self.sonobuoy("results", str(self.tarball)).stdout
        with tarfile.open(self.tarball) as tar:
            logs = [
                member for member in tar if re.fullmatch(r"podlogs/.*-winready-job-.*/logs/plugin\.txt", member.name)
            ]
            self.log = "".join(tar.extractfile(log).read().decode() for log in logs)  # type: ignore[union-attr]

    async def _left(self) -> list[str]:
        """What is still in the cluster of this run, and of the runs of winready."""
        async with Client.connect(find_target(self.cluster.kubeconfig)) as client:
            names = [
                item["metadata"]["name"]
                for kind in (NAMESPACES, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
                for item in await client.list(kind)
            ]
        return [name for name in names if self.namespace in name]


def flags(*requirements: str, scale: float = SPEED) -> tuple[str, ...]:
    """A small selection, at the speed of the sandbox's nodes or slower."""
    chosen = (word for name in requirements for word in ("--requirement", name))
    return (*chosen, "--time-scale", str(scale))
