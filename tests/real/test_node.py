"""``winready node`` on a real API server: add-ons are accepted, applied once, and their policy is understood."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from real.conftest import KUBERNETES, OLDER, WITH_OLDER, Cluster, Kubectl, programs

NAMESPACE = "winready-node"
GIVEN = [
    "--pod-cidr", "10.244.0.0/16", "--service-cidr", "10.96.0.0/16", "--dns", "10.96.0.10",
    "--endpoint", "api.example:6443",
]  # fmt: skip
HOST_PROCESS = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "host"},
    "spec": {
        "hostNetwork": True,
        "os": {"name": "windows"},
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "containers": [
            {
                "name": "main",
                "image": "registry.k8s.io/pause:3.10.2",
                "securityContext": {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}},
            }
        ],
    },
}

HELPER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "helper"},
    "spec": {
        "selector": {"matchLabels": {"app": "helper"}},
        "template": {
            "metadata": {"labels": {"app": "helper"}},
            "spec": {
                "os": {"name": "windows"},
                "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10.2"}],
                "volumes": [{"name": "programs", "hostPath": {"path": "C:\\k"}}],
            },
        },
    },
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", [KUBERNETES, pytest.param(OLDER, marks=WITH_OLDER)])
def test_add_ons_on_a_real_api_server(clusters: Callable[[str], Cluster], version: str, tmp_path: Path) -> None:
    cluster = clusters(version)
    kubectl = Kubectl(programs(version) / "kubectl", cluster.kubeconfig)
    rivals = ["daemonset/kube-proxy-windows", "daemonset/calico-node-windows"]
    there = kubectl.ok("-n", "kube-system", "get", *rivals, "-o", "yaml")

    def addons(*words: str, code: int = 0) -> str:
        result = cluster.winready("node", "addons", *words, "--kubeconfig", own)
        assert result.returncode == code, result.stdout + result.stderr
        return result.stdout

    rights = cluster.winready("rbac", "--for", "node", "--name", "least", "--namespace", "least-node").stdout
    kubectl.ok("apply", "-f", "-", stdin=rights)
    token = kubectl.ok("create", "token", "least", "--namespace", "least-node").strip()
    config = json.loads(kubectl.ok("config", "view", "--raw", "-o", "json"))
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    own = str(tmp_path / "own.json")
    Path(own).write_text(json.dumps(config))
    kubectl.ok("-n", "kube-system", "delete", *rivals)
    try:
        addons("diff", *GIVEN, code=1)
        addons("apply", *GIVEN)
        kinds = "daemonsets,configmaps,serviceaccounts"
        columns = "custom-columns=N:.metadata.name,V:.metadata.resourceVersion,G:.metadata.generation"
        look = ("-n", NAMESPACE, "get", "configmaps,serviceaccounts", "-o", columns)
        before = kubectl.ok(*look)
        again = addons("apply", *GIVEN)
        assert again.splitlines()[-1] == "nothing was changed", again
        assert kubectl.ok(*look) == before
        assert addons("diff", *GIVEN).splitlines()[-1] == "nothing changes"
        # A client that knows nothing of us finds nothing to change, either.
        generations = kubectl.ok("-n", NAMESPACE, "get", kinds, "-o", "custom-columns=G:.metadata.generation")
        assert set(generations.split()) <= {"G", "1", "<none>"}

        # The API server has no doubts about the expressions: their types fit each kind that they are about.
        for name in ("pods", "templates", "cronjobs"):
            policy = f"validatingadmissionpolicy/{NAMESPACE}-{name}"
            kubectl.ok("wait", "--for=jsonpath={.status.observedGeneration}=1", policy, "--timeout=60s")
            doubts = kubectl.ok("get", policy, "-o", "jsonpath={.status.typeChecking.expressionWarnings}")
            assert doubts == ""

        warned = kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(HOST_PROCESS))
        assert warned.returncode == 0, warned.stderr
        assert "HostProcess containers are administrators of their node" in warned.stderr
        addons("apply", *GIVEN, "--policy", "deny")
        refused = _until_refused(kubectl)
        assert "only namespaces with the label pod-security.kubernetes.io/enforce=privileged" in refused
        kubectl.ok("-n", "kube-system", "apply", "--dry-run=server", "-f", "-", stdin=json.dumps(HOST_PROCESS))
        plain = json.loads(json.dumps(HOST_PROCESS))
        del plain["spec"]["containers"][0]["securityContext"], plain["spec"]["hostNetwork"]
        kubectl.ok("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(plain))
        workload = kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(HELPER))
        assert workload.returncode == 0, workload.stderr
        assert "volumes of the node (hostPath) reach its programs and secrets on Windows" in workload.stderr
        addons("delete")
        assert addons("delete") == "there was nothing to remove\n"
        assert "NotFound" in kubectl("get", "namespace", NAMESPACE).stderr
    finally:
        cluster.winready("node", "addons", "delete", "--kubeconfig", cluster.kubeconfig)
        for item in yaml.safe_load(there)["items"]:
            for field in ("resourceVersion", "uid", "creationTimestamp"):
                item["metadata"].pop(field, None)
            kubectl.ok("create", "-f", "-", stdin=json.dumps(item))
        kubectl.ok("delete", "--ignore-not-found", "-f", "-", stdin=rights)


def _until_refused(kubectl: Kubectl) -> str:
    """The API server takes a moment to notice that the binding changed."""
    for _ in range(60):
        answer = kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(HOST_PROCESS))
        if answer.returncode:
            return answer.stderr
    raise AssertionError("the policy never refused anything")
