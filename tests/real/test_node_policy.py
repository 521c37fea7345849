r"""The policy and the rollout of ``winready node addons`` on the embedded and on the real API server, asked alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from node.mirror import running
from real.api import Api, Call
from real.conftest import EMBEDDED, KUBERNETES, Cluster

PODS = "/api/v1/namespaces/default/pods"
GIVEN = [
    "--pod-cidr", "10.244.0.0/16", "--service-cidr", "10.96.0.0/16", "--dns", "10.96.0.10",
    "--endpoint", "api.example:6443",
]  # fmt: skip
MAIN = {"name": "main", "image": "registry.k8s.io/pause:3.10.2"}
HOST_PROCESS = {"windowsOptions": {"hostProcess": True, "runAsUserName": r"NT AUTHORITY\SYSTEM"}}
WINDOWS: dict[str, Any] = {"os": {"name": "windows"}, "nodeSelector": {"kubernetes.io/os": "windows"}}
HOSTED = {"hostNetwork": True, **WINDOWS}


def mounted(path: str, **more: Any) -> dict[str, Any]:
    return {"containers": [MAIN], "volumes": [{"name": "v", "hostPath": {"path": path}}], **more}


def affinity(*values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": list(values)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


JUDGED: dict[str, tuple[dict[str, Any], str]] = {
    "plain": ({"containers": [MAIN], **WINDOWS}, ""),
    "pod": ({"containers": [MAIN], "securityContext": HOST_PROCESS, **HOSTED}, "HostProcess containers"),
    "container": ({"containers": [{**MAIN, "securityContext": HOST_PROCESS}], **HOSTED}, "HostProcess containers"),
    "init": (
        {
            "containers": [{**MAIN, "securityContext": HOST_PROCESS}],
            "initContainers": [{**MAIN, "name": "first", "securityContext": HOST_PROCESS}],
            **HOSTED,
        },
        "HostProcess containers",
    ),
    "pipe": (mounted(r"\\.\pipe\containerd-containerd", **WINDOWS), "the pipes of a node"),
    "pipe in capitals": (mounted(r"\\.\PIPE\CONTAINERD-CONTAINERD", **WINDOWS), "the pipes of a node"),
    "pipe with slashes": (mounted("//./pipe/containerd-containerd", **WINDOWS), "the pipes of a node"),
    "pipe by no system": (mounted(r"\\.\pipe\containerd-containerd"), "the pipes of a node"),
    "pipe by device": (mounted(r"\\.\GLOBALROOT\Device\NamedPipe\x", **WINDOWS), "the pipes of a node"),
    "folder": (mounted(r"C:\var\lib\kubelet", **WINDOWS), "volumes of the node (hostPath)"),
    "folder by no system": (mounted("/var/log"), "volumes of the node (hostPath)"),
    "folder for either": (mounted("/var/log", **affinity("linux", "windows")), "volumes of the node (hostPath)"),
    "linux by os": (mounted("/var/log", os={"name": "linux"}), ""),
    "linux by selector": (mounted("/var/log", nodeSelector={"kubernetes.io/os": "linux"}), ""),
    "linux by affinity": (mounted("/var/log", **affinity("linux")), ""),
}


@pytest.fixture(scope="module", params=[EMBEDDED, KUBERNETES], ids=["embedded", "real"])
def cluster(request: pytest.FixtureRequest, clusters: Callable[..., Cluster]) -> Cluster:
    """One that no other test uses, without the service proxy and pod network of sandboxes."""
    found = clusters(request.param, "--windows", "2", "--linux", "1")
    api = Api(found.kubeconfig)
    for name in ("kube-proxy-windows", "calico-node-windows"):
        api.ask(Call("DELETE", f"/apis/apps/v1/namespaces/kube-system/daemonsets/{name}"))
    return found


def addons(cluster: Cluster, *words: str, code: int = 0) -> str:
    result = cluster.winready("node", "addons", *words, "--kubeconfig", cluster.kubeconfig)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout


def pod(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def until(happened: Callable[[], Any]) -> Any:
    """Ask again and again; the test's own time is the limit."""
    while not (found := happened()):
        time.sleep(0.2)
    return found


@pytest.fixture(scope="module")
def guarded(cluster: Cluster) -> Iterator[Api]:
    """The API server once the policy refuses; a pod of before is still there."""
    api = Api(cluster.kubeconfig)
    stays = {**mounted("C:\\k", **WINDOWS), "nodeSelector": {"no": "node"}}
    assert api.ask(Call("POST", PODS, pod("old", stays)))[0] == 201
    addons(cluster, "apply", *GIVEN, "--policy", "deny")
    # A real API server takes a moment to notice a policy.
    probe = Call("POST", f"{PODS}?dryRun=All", pod("probe", JUDGED["folder"][0]))
    until(lambda: api.ask(probe)[0] == 403)
    yield api
    addons(cluster, "delete")
    api.ask(Call("DELETE", f"{PODS}/old?gracePeriodSeconds=0"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", JUDGED)
def test_both_api_servers_judge_pods_alike(guarded: Api, name: str) -> None:
    spec, words = JUDGED[name]
    status, answer = guarded.ask(Call("POST", f"{PODS}?dryRun=All", pod("judged", spec)))
    if not words:
        assert status == 201, answer
        return
    assert (status, answer["reason"]) == (403, "Forbidden"), answer
    assert (
        f"ValidatingAdmissionPolicy 'winready-node-pods' with binding 'winready-node-pods' denied request: {words}"
        in (answer["message"])
    )
    system = PODS.replace("default", "kube-system")
    assert guarded.ask(Call("POST", f"{system}?dryRun=All", pod("judged", spec)))[0] == 201


@pytest.mark.timeout(300)
def test_a_container_that_joins_later_is_judged_and_other_changes_are_not(guarded: Api) -> None:
    later = {"spec": {"ephemeralContainers": [{**MAIN, "name": "debug"}]}}
    merge = "application/strategic-merge-patch+json"
    status, answer = guarded.ask(Call("PATCH", f"{PODS}/old/ephemeralcontainers", later, merge))
    assert status == 403, answer
    assert "volumes of the node (hostPath)" in answer["message"]
    labelled = {"metadata": {"labels": {"a": "b"}}}
    assert guarded.ask(Call("PATCH", f"{PODS}/old", labelled, merge))[0] == 200


@pytest.mark.timeout(300)
def test_workloads_are_taken_and_their_pods_are_not(guarded: Api) -> None:
    labels = {"app": "helper"}
    template = {"metadata": {"labels": labels}, "spec": JUDGED["pipe"][0]}
    body = {"metadata": {"name": "helper"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    path = "/apis/apps/v1/namespaces/default/replicasets"
    assert guarded.ask(Call("POST", path, body))[0] == 201

    def refused() -> bool:
        events = guarded.ask(Call("GET", "/api/v1/namespaces/default/events"))[1]["items"]
        told = [item["message"] for item in events if item["involvedObject"].get("name") == "helper"]
        return any("the pipes of a node" in text for text in told)

    until(refused)
    assert guarded.ask(Call("DELETE", f"{path}/helper"))[0] == 200


@pytest.mark.timeout(600)
def test_a_newer_bundle_replaces_every_pod_of_the_old_one(cluster: Cluster, tmp_path: Path) -> None:
    api = Api(cluster.kubeconfig)
    release = cluster.version.removeprefix("v")

    def programs() -> list[str]:
        found = api.ask(
            Call("GET", "/api/v1/namespaces/winready-node/pods?labelSelector=app.kubernetes.io/name=kube-proxy")
        )
        return [item["metadata"]["annotations"]["winready.io/program"][-64:] for item in found[1]["items"]]

    with running() as mirror:
        mirror.release(release)
        for letter in "ab":
            made = cluster.winready(
                "node", "bundle", "--kubernetes", release, *GIVEN, "--mirror", mirror.url,
                "--digest", f"kube-proxy={letter * 64}", "--to", str(tmp_path / letter),
            )  # fmt: skip
            assert made.returncode == 0, made.stderr
    addons(cluster, "apply", "--bundle", str(tmp_path / "a"))
    until(lambda: programs() == ["a" * 64] * 2)
    shown = addons(cluster, "diff", "--bundle", str(tmp_path / "b"), code=1)
    changed = [line for line in shown.splitlines() if line.startswith(("changed: ", "created: ", "removed: "))]
    assert changed == ["changed: DaemonSet winready-node/kube-proxy"]
    addons(cluster, "apply", "--bundle", str(tmp_path / "b"))
    until(lambda: programs() == ["b" * 64] * 2)
    again = addons(cluster, "apply", "--bundle", str(tmp_path / "b"))
    assert again.splitlines()[-1] == "nothing was changed", again
    addons(cluster, "delete")
