"""The real managers of Cluster API as plain processes: no cert-manager, no container, webhooks by URL on loopback.

The infrastructure is the in-memory provider of Cluster API's own tests. Its workload clusters answer as far as the
managers ask, and are no place for readiness checks.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from real.conftest import KUBERNETES, Kubectl
from real_programs import ensure
from winready.cluster.serving import make_identity

MANAGERS = ("capi-core", "capi-bootstrap", "capi-control-plane", "capi-in-memory")
GATES = {
    "capi-core": "ClusterTopology=true,RuntimeSDK=true",
    "capi-bootstrap": "",
    "capi-control-plane": "ClusterTopology=true",
    "capi-in-memory": "ClusterTopology=true",
}
CONTRACTS = {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}
UP_SECONDS = 180.0


def programs() -> Path:
    """The folder with the managers and their manifests."""
    return ensure(KUBERNETES, [*MANAGERS, "capi-config"])


def free_port() -> int:
    """A port of loopback that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class ClusterApi:
    """All four managers, on one API server."""

    def __init__(self, folder: Path, kubectl: Kubectl, kubeconfig: str) -> None:
        self.folder = folder
        self.kubectl = kubectl
        self.kubeconfig = kubeconfig
        self.config = programs() / "capi-config"
        self.identity = make_identity("127.0.0.1", "webhooks")
        self.ports = {name: free_port() for name in MANAGERS}
        self.health = {name: free_port() for name in MANAGERS}
        self._processes: list[subprocess.Popen[bytes]] = []

    def install(self) -> None:
        """Their kinds and webhooks."""
        for name in MANAGERS:
            found = [item for path in sorted((self.config / name / "crd" / "bases").glob("*.yaml"))
                     for item in documents(path)]  # fmt: skip
            for item in found:
                item["metadata"].setdefault("labels", {}).update(CONTRACTS)
                item["spec"]["conversion"] = {
                    "strategy": "Webhook",
                    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": self._called(name, "/convert")},
                }
            self._apply(found)
            hooks = documents(self.config / name / "webhook" / "manifests.yaml")
            for item in hooks:
                item["metadata"]["name"] = f"{name}-{item['metadata']['name']}"
                for hook in item["webhooks"]:
                    hook["clientConfig"] = self._called(name, hook["clientConfig"]["service"]["path"])
            self._apply(hooks)

    def start(self) -> None:
        """Have them work, and wait until their webhooks answer."""
        keys = self.folder / "webhook-keys"
        keys.mkdir()
        (keys / "tls.crt").write_bytes(self.identity.certificate)
        (keys / "tls.key").write_bytes(self.identity.key)
        self.kubectl.ok("create", "namespace", "capi-system")
        for name in MANAGERS:
            own = {"POD_NAMESPACE": "capi-system", "POD_NAME": name, "POD_UID": name, "POD_IP": "127.0.0.1"}
            gates = [f"--feature-gates={GATES[name]}"] if GATES[name] else []
            command = [
                str(programs() / name), "--kubeconfig", self.kubeconfig, "--webhook-port", str(self.ports[name]),
                "--webhook-cert-dir", str(keys), "--health-addr", f"127.0.0.1:{self.health[name]}",
                "--diagnostics-address", f"127.0.0.1:{free_port()}", "--insecure-diagnostics", *gates,
            ]  # fmt: skip
            with (self.folder / f"{name}.log").open("wb") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **own})
            self._processes.append(process)
        until = time.monotonic() + UP_SECONDS
        for name, process in zip(MANAGERS, self._processes, strict=True):
            while not self._ready(name):
                assert process.poll() is None, self.log(name)
                assert time.monotonic() < until, self.log(name)
                time.sleep(0.5)

    def stop(self) -> None:
        """End them."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self._processes:
                if process.poll() is None:
                    process.send_signal(number)
            for process in self._processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=20)

    def log(self, name: str) -> str:
        """The last lines of a manager."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-4000:]

    def class_of_clusters(self, namespace: str) -> None:
        """What clusters in memory are made of, with machines that start at once."""
        text = (self.config / "templates" / "clusterclass-in-memory.yaml").read_text()
        text = re.sub(r'startupDuration: "\d+s"', 'startupDuration: "1s"', text)
        self.kubectl.ok("apply", "--namespace", namespace, "-f", "-", stdin=text)

    def cluster(self, namespace: str, name: str, version: str, labels: dict[str, str]) -> None:
        """A cluster in memory: one machine for the control plane, one worker."""
        text = (self.config / "templates" / "cluster-template-in-memory.yaml").read_text()
        given = {
            "CLUSTER_NAME": name, "NAMESPACE": namespace, "KUBERNETES_VERSION": version,
            "CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1",
        }  # fmt: skip
        text = re.sub(r"\$\{(\w+)(?::=([^}]*))?\}", lambda found: given.get(found[1], found[2] or ""), text)
        document = yaml.safe_load(text)
        document["metadata"]["labels"] = labels
        self._apply([document])

    def _called(self, name: str, path: str) -> dict[str, str]:
        bundle = base64.b64encode(self.identity.ca).decode()
        return {"url": f"https://127.0.0.1:{self.ports[name]}{path}", "caBundle": bundle}

    def _apply(self, items: list[dict[str, Any]]) -> None:
        # Most of these are too large for the annotation of a plain apply.
        self.kubectl.ok("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(items))

    def _ready(self, name: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health[name]}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects of a file."""
    return [item for item in yaml.safe_load_all(path.read_text()) if item]


@contextlib.contextmanager
def managers(folder: Path, kubectl: Kubectl, kubeconfig: str) -> Iterator[ClusterApi]:
    """Cluster API for the time of the block."""
    found = ClusterApi(folder, kubectl, kubeconfig)
    try:
        found.install()
        found.start()
        yield found
    finally:
        found.stop()
