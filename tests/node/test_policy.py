r"""The policy of the add-ons on an API server that evaluates it: what is refused, what is not, and who is warned."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sandbox.api.test_policing import Cluster
from winready.node.addons import LABELS
from winready.node.policy import ENFORCE, policy_objects
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.identity import ADMIN
from winready_sandbox.api.objects import Object
from winready_sandbox.api.registry import Admission, Write

PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
HOST_PROCESS = {"windowsOptions": {"hostProcess": True, "runAsUserName": r"NT AUTHORITY\SYSTEM"}}
PIPE, VOLUME, PROCESS = "the pipes of a node", "volumes of the node (hostPath)", "HostProcess containers"
MAIN = {"name": "main", "image": "x.example/y:1"}
WINDOWS = {"os": {"name": "windows"}, "nodeSelector": {"kubernetes.io/os": "windows"}}


def guarded(*, enforce: bool = True, labels: dict[str, str] | None = None) -> Cluster:
    cluster = Cluster(labels)
    for obj in policy_objects(LABELS, enforce=enforce):
        cluster.api.create(PLURALS[obj["kind"]], obj)
    return cluster


def mounted(path: str, **more: Any) -> Object:
    return {"containers": [MAIN], "volumes": [{"name": "v", "hostPath": {"path": path}}], **more}


def put(cluster: Cluster, plural: str, obj: Object, write: Write) -> None:
    """Create something; whatever the writer is told is in the write afterwards."""
    cluster.registry.create(cluster.registry.resources.find(plural), copy.deepcopy(obj), "default", write)


def refusal(cluster: Cluster, spec: Object, namespace: str = "default") -> str:
    """Why a pod is refused; empty when it is taken."""
    try:
        cluster.api.create("pods", {"metadata": {"generateName": "p-"}, "spec": spec}, namespace)
    except ApiError as error:
        refused = error
    else:
        return ""
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert "ValidatingAdmissionPolicy 'winready-node-pods'" in refused.message
    return refused.message.partition("denied request: ")[2]


@pytest.mark.parametrize(
    "spec",
    [
        {"securityContext": HOST_PROCESS, "containers": [MAIN]},
        {"containers": [{**MAIN, "securityContext": HOST_PROCESS}]},
        {"containers": [MAIN], "initContainers": [{**MAIN, "name": "first", "securityContext": HOST_PROCESS}]},
        {"containers": [MAIN, {**MAIN, "name": "second", "securityContext": HOST_PROCESS}]},
    ],
    ids=["pod", "container", "init container", "second container"],
)
def test_host_process_is_refused_wherever_it_is_asked_for(spec: Object) -> None:
    words = _judged(guarded(), {**spec, "hostNetwork": True, **WINDOWS})
    assert words.startswith(PROCESS)
    assert f"{ENFORCE}=privileged" in words


def _judged(cluster: Cluster, spec: Object, operation: str = "CREATE", subresource: str = "") -> str:
    """What the policy alone says: other rules of pods want all their containers to be alike."""
    pods = cluster.registry.resources.find("pods")
    pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": spec}
    try:
        cluster.reviewers.validate(
            Admission(operation, pods, subresource, "default", "p", pod, None, ADMIN, dry_run=False)
        )
    except ApiError as error:
        return error.message.partition("denied request: ")[2]
    return ""


@pytest.mark.parametrize(
    "path",
    [
        r"\\.\pipe\containerd-containerd",
        r"\\.\PIPE\Containerd-Containerd",
        "//./pipe/containerd-containerd",
        r"\\./pipe\containerd-containerd",
        r"\\.\\pipe\\containerd-containerd",
        "npipe:////./pipe/containerd-containerd",
        r"\\?\pipe\containerd-containerd",
        r"\\localhost\pipe\containerd-containerd",
        r"\\.\GLOBALROOT\Device\NamedPipe\containerd-containerd",
        r"\\.\pipe\docker_engine",
        r"\\.\pipe\csi-proxy-filesystem-v1",
    ],
)
def test_the_pipe_of_the_runtime_is_refused_however_it_is_spelled(path: str) -> None:
    assert refusal(guarded(), mounted(path, **WINDOWS)).startswith(PIPE)


@pytest.mark.parametrize(
    "path",
    ["C:\\k", "c:/etc/kubernetes", r"C:\var\lib\kubelet", "/var/log", r"\\?\C:\k", r"\\.\PhysicalDrive0", "C:", "\\"],
)
@pytest.mark.parametrize(
    "where",
    [
        WINDOWS,
        {"os": {"name": "windows"}},
        {"nodeSelector": {"kubernetes.io/os": "windows"}},
        {},
        {"nodeName": "windows-1"},
        {"nodeSelector": {"kubernetes.io/arch": "amd64"}},
    ],
    ids=["both", "os", "selector", "says nothing", "by name", "another selector"],
)
def test_volumes_of_the_node_are_refused_unless_the_pod_says_that_it_is_for_linux(path: str, where: Object) -> None:
    assert refusal(guarded(), mounted(path, **where)).startswith(VOLUME)


def affinity(*terms: list[Object]) -> Object:
    listed = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": listed}}}


LINUX = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
EITHER = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux", "windows"]}
LARGE = {"key": "size", "operator": "Exists"}


@pytest.mark.parametrize(
    ("where", "taken"),
    [
        ({"os": {"name": "linux"}}, True),
        ({"nodeSelector": {"kubernetes.io/os": "linux"}}, True),
        (affinity([LINUX]), True),
        (affinity([LARGE, LINUX]), True),
        (affinity([LINUX], [LARGE]), False),
        (affinity([EITHER]), False),
    ],
)
def test_pods_for_linux_are_left_alone(where: Object, taken: bool) -> None:
    assert (refusal(guarded(), mounted("/var/log", **where)) == "") == taken


def test_ordinary_windows_pods_are_left_alone() -> None:
    cluster = guarded()
    options = {"windowsOptions": {"runAsUserName": "ContainerUser"}}
    spec = {
        **WINDOWS,
        "securityContext": options,
        "containers": [{**MAIN, "securityContext": {"windowsOptions": {"hostProcess": False}}}],
        "initContainers": [{**MAIN, "name": "first"}],
        "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "pipe"}}],
    }
    assert refusal(cluster, spec) == ""


def test_system_namespaces_and_those_that_are_labelled_may_have_them() -> None:
    spec = mounted(r"\\.\pipe\containerd-containerd", **WINDOWS)
    assert refusal(guarded(labels={ENFORCE: "privileged"}), spec) == ""
    cluster = guarded()
    for name, taken in (("kube-system", True), ("kube-systems", False)):
        labels = {"kubernetes.io/metadata.name": name}
        cluster.api.create("namespaces", {"metadata": {"name": name, "labels": labels}})
        cluster.api.create("serviceaccounts", {"metadata": {"name": "default"}}, name)
        assert (refusal(cluster, spec, name) == "") == taken


def test_a_container_that_joins_a_pod_later_is_judged_too() -> None:
    later = {"name": "debug", "image": "x.example/y:1"}
    for context, refused in ((HOST_PROCESS, True), ({}, False)):
        spec = {"containers": [MAIN], "ephemeralContainers": [{**later, "securityContext": context}], **WINDOWS}
        words = _judged(guarded(), spec, "UPDATE", "ephemeralcontainers")
        assert words.startswith(PROCESS) == refused
    # What is there already can still be changed and removed.
    assert _judged(guarded(), {"securityContext": HOST_PROCESS, "containers": [MAIN]}, "UPDATE") == ""


def test_a_container_that_joins_over_the_api_reaches_the_policy() -> None:
    cluster = guarded()
    spec = mounted("C:\\k", **WINDOWS)
    for obj in policy_objects(LABELS, enforce=True):
        cluster.api.delete(PLURALS[obj["kind"]], obj["metadata"]["name"])
    pod = cluster.api.create("pods", {"metadata": {"name": "old"}, "spec": spec}, "default")
    for obj in policy_objects(LABELS, enforce=True):
        cluster.api.create(PLURALS[obj["kind"]], obj)
    pods = cluster.registry.resources.find("pods")
    cluster.registry.update(pods, {**pod, "metadata": {**pod["metadata"], "labels": {"a": "b"}}}, namespace="default")
    debug = {**pod, "spec": {**pod["spec"], "ephemeralContainers": [{**MAIN, "name": "debug"}]}}
    del debug["metadata"]["resourceVersion"]
    with pytest.raises(ApiError, match="volumes of the node"):
        cluster.registry.update(pods, debug, namespace="default", subresource="ephemeralcontainers")


def test_by_default_everybody_is_warned_and_nobody_is_refused() -> None:
    cluster = guarded(enforce=False)
    write = Write()
    spec = mounted(r"\\.\pipe\containerd-containerd", **WINDOWS)
    put(cluster, "pods", {"metadata": {"name": "p"}, "spec": spec}, write)
    head = "Validation failed for ValidatingAdmissionPolicy 'winready-node-pods' with binding 'winready-node-pods': "
    assert len(write.warnings) == 2
    for text, words in zip(write.warnings, (PIPE, VOLUME), strict=True):
        assert text.startswith(head + words)


@pytest.mark.parametrize("enforce", [True, False])
@pytest.mark.parametrize(
    "plural", ["deployments", "daemonsets", "statefulsets", "replicasets", "jobs", "cronjobs", "replicationcontrollers"]
)
def test_whoever_writes_a_workload_is_warned_since_its_pods_are_somebody_elses(plural: str, enforce: bool) -> None:
    def workload(pod: Object) -> Object:
        labels = {"app": "a"}
        template: Object = {"metadata": {"labels": labels}, "spec": pod}
        spec: Object = {"template": template, "selector": {"matchLabels": labels}}
        if plural == "replicationcontrollers":
            spec["selector"] = labels
        if plural in ("jobs", "cronjobs"):
            template["spec"] = {**pod, "restartPolicy": "Never"}
            spec = {"template": template}
        if plural == "cronjobs":
            spec = {"schedule": "0 0 * * *", "jobTemplate": {"spec": spec}}
        return {"metadata": {"generateName": "w-"}, "spec": spec}

    cluster = guarded(enforce=enforce)
    for pod, count in ((mounted("C:\\k", **WINDOWS), 1), ({"containers": [MAIN], **WINDOWS}, 0)):
        write = Write()
        put(cluster, plural, workload(pod), write)
        assert len([text for text in write.warnings if VOLUME in text]) == count
