"""Cluster API's own managers ask our extension: a new cluster, an upgrade held by a Fail and let on by a Pass, the end.

The management cluster is the real API server; the extension asks it with the rights that 'winready deploy capi' grants
and no others. Runs judge a sandbox, which the Secret NAME-winready beside each cluster leads to: the in-memory clusters
of Cluster API have no nodes that could run anything.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.capi_server import FAULT, QUICK, Extension
from cli.conftest import CommandLine
from real.cluster_api import ClusterApi, free_port, managers
from real.conftest import EMBEDDED, KUBERNETES, Cluster, Kubectl, programs, start, winready
from winready.deploy.capi import hooks

pytestmark = [pytest.mark.capi, pytest.mark.timeout(900)]
SPACE, NAME = "fleet", "w1"
BEFORE, AFTER = "v1.34.0", "v1.35.0"
PATIENCE = 240.0
DEPLOY = ("deploy", "capi", "--image", "registry.invalid/winready:1", "--cluster-namespace", SPACE,
          "--kubeconfig-secret", "winready")  # fmt: skip
GRANTS = ("ServiceAccount", "Role", "RoleBinding", "Namespace")


@dataclass(frozen=True)
class Ground:
    """The management cluster with Cluster API, the cluster that is judged, and our extension between them."""

    management: Cluster
    workload: Cluster
    kubectl: Kubectl
    capi: ClusterApi
    extension: Extension

    def get(self, what: str, *more: str) -> dict[str, Any]:
        """One object of the namespace, or nothing."""
        found = self.kubectl("get", "--namespace", SPACE, what, *more, "--ignore-not-found", "-o", "json")
        document: dict[str, Any] = json.loads(found.stdout) if found.returncode == 0 and found.stdout else {}
        return document

    def condition(self, what: str, name: str, kind: str) -> dict[str, Any]:
        """One condition of an object."""
        conditions = (self.get(what, name).get("status") or {}).get("conditions") or []
        return next((item for item in conditions if item["type"] == kind), {})

    def until(self, ready: Callable[[], bool], what: str) -> None:
        """Wait for it, and tell everything if it does not come."""
        end = time.monotonic() + PATIENCE
        while not ready():
            if time.monotonic() > end:
                told = json.dumps((self.get("cluster", NAME).get("status") or {}).get("conditions"), indent=1)
                logs = self.capi.log("capi-core")
                raise AssertionError(f"{what} did not come\n{told}\n{''.join(self.extension.lines)}\n{logs}")
            time.sleep(0.5)


def account(kubectl: Kubectl, folder: Path, runtime: Path, admin: str) -> str:
    """The kubeconfig of an account that has what 'winready deploy capi' grants."""
    printed = winready(runtime, *DEPLOY)
    assert printed.returncode == 0, printed.stderr
    granted = [item for item in yaml.safe_load_all(printed.stdout) if item["kind"] in GRANTS]
    kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(granted))
    token = kubectl.ok("create", "token", "winready-capi", "--namespace", "winready-capi", "--duration=2h").strip()
    config = yaml.safe_load(Path(admin).read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path = folder / "least.yaml"
    path.write_text(yaml.safe_dump(config))
    return str(path)


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    runtime = Path(tempfile.mkdtemp(prefix="wr-"))
    folder = runtime / "capi"
    folder.mkdir()
    extension: Extension | None = None
    try:
        management = start(runtime, KUBERNETES, "--name", "management", "--linux", "1", "--windows", "1")
        workload = start(runtime, EMBEDDED, "--name", "workload", "--speed", "100")
        kubectl = Kubectl(programs(KUBERNETES) / "kubectl", management.kubeconfig)
        kubectl.ok("create", "namespace", SPACE)
        kubectl.ok("create", "secret", "generic", f"{NAME}-winready", "--namespace", SPACE,
                   f"--from-file=value={workload.kubeconfig}")  # fmt: skip
        with managers(folder, kubectl, management.kubeconfig) as capi:
            least = account(kubectl, folder, runtime, management.kubeconfig)
            options = ("--port", str(free_port()), "--kubeconfig-secret", "winready", "--again", "1h", "--poll", "2s")
            extension = Extension(CommandLine(runtime), folder, least, options).start()
            yield Ground(management, workload, kubectl, capi, extension)
    finally:
        if extension is not None:
            extension.end()
        assert winready(runtime, "sandbox", "down", "--all").returncode == 0
        shutil.rmtree(runtime)


def apply_config(ground: Ground, name: str, ca: Path) -> None:
    url = f"https://127.0.0.1:{ground.extension.port}"
    words = ("deploy", "capi", "--name", name, "--url", url, "--ca", str(ca), "--cluster-namespace", SPACE)
    applied = ground.management.winready(*words, "--apply", "--kubeconfig", ground.management.kubeconfig)
    assert applied.returncode == 0, applied.stderr


def test_a_wrong_authority_is_seen_at_the_extension_config(ground: Ground) -> None:
    (ground.extension.folder / "wrong.crt").write_bytes(ground.capi.identity.ca)
    apply_config(ground, "wrong", ground.extension.folder / "wrong.crt")

    def refused() -> bool:
        found = ground.condition("extensionconfig", "wrong", "Discovered")
        return found.get("status") == "False" and "certificate" in found["message"]

    ground.until(refused, "the complaint about the certificate")
    ground.kubectl.ok("delete", "extensionconfig", "wrong")


def test_the_server_makes_its_certificate_and_cluster_api_takes_the_authority_from_there(ground: Ground) -> None:
    """Everything that is deployed; the server runs here, with the rights of its account, instead of in the pod."""
    deployed = (*DEPLOY, "--apply", "--kubeconfig", ground.management.kubeconfig)
    first = ground.management.winready(*deployed)
    assert first.returncode == 0, first.stderr
    assert "created: ExtensionConfig winready-capi" in first.stdout
    server = Extension(ground.extension.command_line, ground.extension.folder, ground.extension.management)
    place = ("winready-capi/winready-capi", "--identity-secret", "winready-capi/winready-capi-tls")
    where = ("--kubeconfig", server.management, "--listen", "127.0.0.1", "--port", "0")
    server.process = server.command_line.start("capi", "serve", *place, *where, "--state", str(server.folder / "other"))
    server.follow()
    try:
        server.said("answering Cluster API at winready-capi/winready-capi")
        made = secret(ground)
        assert set(made) == {"ca.crt", "tls.crt", "tls.key"}

        def injected() -> bool:
            client = ground.get("extensionconfig", "winready-capi")["spec"]["clientConfig"]
            return str(client.get("caBundle")) == made["ca.crt"]

        ground.until(injected, "the authority in the ExtensionConfig")
    finally:
        assert server.end() == 0
    # To deploy once more takes nothing away.
    second = ground.management.winready(*deployed)
    assert second.returncode == 0, second.stderr
    assert [line for line in second.stdout.splitlines() if not line.startswith("unchanged: ")] == []
    assert secret(ground) == made
    ground.kubectl.ok("delete", "extensionconfig", "winready-capi")


def secret(ground: Ground) -> dict[str, str]:
    """What the server keeps of itself."""
    words = ("get", "secret", "winready-capi-tls", "--namespace", "winready-capi", "-o", "json")
    data: dict[str, str] = json.loads(ground.kubectl.ok(*words)).get("data") or {}
    return data


def test_an_upgrade_waits_for_a_pass(ground: Ground) -> None:
    extension = ground.extension
    apply_config(ground, "winready", extension.folder / "keys" / "ca.crt")
    ground.until(
        lambda: ground.condition("extensionconfig", "winready", "Discovered").get("status") == "True", "discovery"
    )
    handlers = ground.get("extensionconfig", "winready")["status"]["handlers"]
    assert {item["requestHook"]["hook"] for item in handlers} == set(hooks.HOOKS)

    # A new cluster: the first run is queued, and nothing waits for it.
    ground.capi.class_of_clusters(SPACE)
    ground.capi.cluster(SPACE, NAME, BEFORE, {"winready.io/policy": "require-pass"})
    extension.said(f"cluster {SPACE}/{NAME}, after its control plane came up: Pass")
    ground.until(lambda: reconciled(ground), "a cluster that is as it should be")
    assert versions(ground) == {BEFORE}

    # An upgrade of a cluster that fails is held, and the Cluster says why.
    broken = ground.workload.winready("sandbox", "break", FAULT, "--name", "workload")
    assert broken.returncode == 0, broken.stderr
    patch = json.dumps({"spec": {"topology": {"version": AFTER}}})
    ground.kubectl.ok("patch", "cluster", NAME, "--namespace", SPACE, "--type", "merge", "-p", patch)
    ground.until(lambda: "did not pass" in complaint(ground), "a hold by a Fail")
    assert f"cluster {SPACE}/{NAME} did not pass" in complaint(ground)
    assert QUICK in complaint(ground)
    assert versions(ground) == {BEFORE}

    # Mended, and asked again: a Pass lets it go on, and once more when the workers are new.
    assert ground.workload.winready("sandbox", "heal", "--name", "workload").returncode == 0
    ground.kubectl.ok("annotate", "cluster", NAME, "--namespace", SPACE, "winready.io/run-again=1")
    extension.said(f"BeforeClusterUpgrade of cluster {SPACE}/{NAME} goes on: winready: Pass")
    ground.until(lambda: versions(ground) == {AFTER}, "the new version")
    extension.said(f"AfterWorkersUpgrade of cluster {SPACE}/{NAME} is held")
    extension.said(f"AfterWorkersUpgrade of cluster {SPACE}/{NAME} goes on: winready: Pass")
    ground.until(lambda: reconciled(ground), "the end of the upgrade")
    assert len(extension.facts("asked")) == 4

    # The end: nothing is left of it, neither there nor with us.
    ground.kubectl.ok("delete", "cluster", NAME, "--namespace", SPACE, "--wait=false")
    ground.until(lambda: not ground.get("cluster", NAME), "the end of the cluster")
    ground.until(lambda: not extension.facts(), "the end of its facts")
    told = extension.metrics()
    assert [hook for hook in hooks.HOOKS if f'hook="{hook}",answer="release"' not in told] == []
    assert 'answer="failure"' not in told
    assert 'winready_capi_runs_total{verdict="Pass"} 3' in told
    assert 'winready_capi_runs_total{verdict="Fail"} 1' in told


def reconciled(ground: Ground) -> bool:
    """Whether Cluster API has nothing more to do."""
    return ground.condition("cluster", NAME, "TopologyReconciled").get("status") == "True" and all(
        item.get("status", {}).get("readyReplicas") == item["spec"]["replicas"]
        for item in ground.get("machinedeployments").get("items", [{"spec": {"replicas": 1}}])
    )


def complaint(ground: Ground) -> str:
    """What the Cluster says of its topology."""
    return str(ground.condition("cluster", NAME, "TopologyReconciled").get("message") or "")


def versions(ground: Ground) -> set[str]:
    """What control plane and workers are meant to run."""
    planes = [item["spec"]["version"] for item in ground.get("kubeadmcontrolplanes").get("items", [])]
    workers = [
        item["spec"]["template"]["spec"]["version"] for item in ground.get("machinedeployments").get("items", [])
    ]
    return {*planes, *workers}
