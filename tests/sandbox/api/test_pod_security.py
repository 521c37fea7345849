"""Pod Security: levels by mode and version, who is exempt, and what is told instead of refused."""

from __future__ import annotations

from typing import Any

import pytest

from winready_sandbox.api import policing
from winready_sandbox.api.admission import install
from winready_sandbox.api.assembly import new_registry
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.identity import User
from winready_sandbox.api.objects import Object
from winready_sandbox.api.policing.security import Configuration, Level, PodSecurity, Policy, read_policy
from winready_sandbox.api.policing.standards import reasons, violations
from winready_sandbox.api.registry import Admission, Registry, Write

HOST_PROCESS: dict[str, Any] = {"hostNetwork": True, "securityContext": {"windowsOptions": {"hostProcess": True}}}


def labels(**levels: str) -> dict[str, str]:
    return {f"pod-security.kubernetes.io/{mode.replace('_', '-')}": level for mode, level in levels.items()}


def cluster(minor: int = 36, **levels: str) -> tuple[Registry, Write]:
    registry = new_registry(minor)
    install(registry)
    policing.install(registry)
    api = LocalClient(registry)
    api.create("namespaces", {"metadata": {"name": "team", "labels": labels(**levels)}})
    api.create("serviceaccounts", {"metadata": {"name": "default"}}, "team")
    return registry, Write()


def pod(name: str = "p", **spec: Any) -> Object:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


@pytest.mark.parametrize(
    ("level", "minor", "spec", "found"),
    [
        ("baseline", 36, HOST_PROCESS, "host namespaces, hostProcess"),
        ("restricted", 36, {"os": {"name": "windows"}}, "runAsNonRoot != true"),
        (
            "restricted",
            24,
            {"os": {"name": "windows"}},
            "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
        ),
        ("restricted", 18, {"os": {"name": "windows"}}, "allowPrivilegeEscalation != false, runAsNonRoot != true"),
        ("baseline", 31, {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}}, "forbidden sysctls"),
        ("baseline", 32, {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}}, ""),
        ("baseline", 30, {"securityContext": {"seLinuxOptions": {"type": "container_engine_t"}}}, "seLinuxOptions"),
        ("baseline", 31, {"securityContext": {"seLinuxOptions": {"type": "container_engine_t"}}}, ""),
        (
            "restricted",
            34,
            {"hostUsers": False, "os": {"name": "windows"}, "securityContext": {"runAsUser": 0}},
            "runAsNonRoot != true, runAsUser=0",
        ),
        ("restricted", 35, {"hostUsers": False, "os": {"name": "windows"}, "securityContext": {"runAsUser": 0}}, ""),
    ],
)
def test_the_standard_is_that_of_its_version(level: str, minor: int, spec: Object, found: str) -> None:
    assert reasons(violations(level, minor, {}, pod(**spec)["spec"])) == found


def test_probes_of_other_hosts_are_refused_since_1_34() -> None:
    spec = pod()["spec"]
    spec["containers"][0]["livenessProbe"] = {"httpGet": {"port": 80, "host": "b.example"}}
    spec["containers"][0]["lifecycle"] = {"preStop": {"tcpSocket": {"port": 80, "host": "a.example"}}}
    assert violations("baseline", 33, {}, spec) == []
    detail = 'container "c" uses probe or lifecycle hosts "a.example", "b.example"'
    assert violations("baseline", 34, {}, spec) == [("probe or lifecycle host", detail)]


def test_a_workload_is_warned_where_its_pods_will_be_refused() -> None:
    registry, write = cluster(enforce="baseline")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(**HOST_PROCESS)["spec"]}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    registry.create(registry.resources.find("deployments"), body, "team", write)
    assert write.warnings == [
        'would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true), hostProcess '
        "(pod must not set securityContext.windowsOptions.hostProcess=true)"
    ]


def test_a_namespace_with_wrong_labels_is_refused_and_a_raised_level_tells_of_its_pods() -> None:
    registry, write = cluster()
    namespaces, pods = registry.resources.find("namespaces"), registry.resources.find("pods")
    wrong = {"metadata": {"name": "x", "labels": labels(enforce="high", warn_version="1.25")}}
    with pytest.raises(ApiError) as refused:
        registry.create(namespaces, wrong)
    assert [cause["message"] for cause in refused.value.details["causes"]] == [
        'Invalid value: "high": must be one of privileged, baseline, restricted',
        'Invalid value: "1.25": must be "latest" or "v1.x"',
    ]
    for name in ("b", "a"):
        registry.create(pods, pod(name, **HOST_PROCESS), "team")
    registry.create(pods, pod("fine"), "team")
    raised = {"metadata": {"labels": labels(enforce="baseline", enforce_version="v1.30")}}
    registry.patch(namespaces, "team", raised, kind="merge", write=write)
    assert write.warnings == [
        'existing pods in namespace "team" violate the new PodSecurity enforce level "baseline:v1.30"',
        "a (and 1 other pod): host namespaces, hostProcess",
    ]


def test_a_level_warns_as_it_enforces_unless_labels_say_otherwise() -> None:
    policy, _ = read_policy(labels(enforce="restricted", enforce_version="v1.29"), Policy())
    assert policy == Policy(Level("restricted", 29), Level(), Level("restricted", 29))
    policy, _ = read_policy(labels(enforce="restricted", warn="privileged"), Policy())
    assert str(policy.warn) == "privileged:latest"
    policy, errors = read_policy(labels(enforce="x", audit="x"), Policy())
    assert (str(policy.enforce), str(policy.audit), len(errors)) == ("restricted:latest", "privileged:latest", 2)


@pytest.mark.parametrize(
    "exempt", [{"namespaces": ("team",)}, {"users": ("admin",)}, {"runtime_classes": ("windows",)}]
)
def test_who_is_exempt_may_do_everything(exempt: dict[str, Any]) -> None:
    registry, _ = cluster(enforce="restricted")
    body = pod(**HOST_PROCESS, runtimeClassName="windows")
    admission = Admission(
        "CREATE", registry.resources.find("pods"), "", "team", "p", body, None, User("admin", ()), dry_run=False
    )
    PodSecurity(registry, Configuration(**exempt)).validate(admission)
    with pytest.raises(ApiError, match="violates PodSecurity"):
        PodSecurity(registry, Configuration()).validate(admission)


def test_a_namespace_that_is_exempt_says_that_its_labels_mean_nothing() -> None:
    registry, _ = cluster()
    body = {"metadata": {"name": "team", "labels": labels(enforce="restricted", audit="baseline")}}
    admission = Admission(
        "CREATE", registry.resources.find("namespaces"), "", "", "team", body, None, User("a", ()), dry_run=False
    )
    PodSecurity(registry, Configuration(namespaces=("team",))).validate(admission)
    policy = "enforce=restricted:latest, audit=baseline:latest"
    assert admission.warnings == [
        f'namespace "team" is exempt from Pod Security, and the policy ({policy}) will be ignored'
    ]


def test_new_images_are_judged_and_other_changes_are_not() -> None:
    registry, _ = cluster()
    pods, namespaces = registry.resources.find("pods"), registry.resources.find("namespaces")
    registry.create(pods, pod(**HOST_PROCESS), "team")
    registry.patch(namespaces, "team", {"metadata": {"labels": labels(enforce="baseline")}}, kind="merge")
    registry.patch(pods, "p", {"metadata": {"labels": {"a": "b"}}}, "team", kind="merge")
    with pytest.raises(ApiError, match='violates PodSecurity "baseline:latest"'):
        registry.patch(pods, "p", {"spec": {"containers": [{"name": "c", "image": "j"}]}}, "team", kind="strategic")
