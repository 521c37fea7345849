"""Pods that the real API server refuses, with its paths and words."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from winready_sandbox.api.defaults import apply_defaults
from winready_sandbox.api.validation import validate

Object = dict[str, Any]


def pod(**spec: Any) -> Object:
    obj = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **copy.deepcopy(spec)}}
    apply_defaults("Pod", "", obj)
    return obj


def container(**fields: Any) -> Object:
    return pod(containers=[{"name": "c", "image": "i", **fields}])


def errors(obj: Object, old: Object | None = None, minor: int = 36) -> list[str]:
    return [f"{error.field}: {error.message}" for error in validate("Pod", "", obj, old, minor)]


def test_a_plain_pod_is_fine() -> None:
    assert errors(pod()) == []


def test_mounts_are_unique() -> None:
    mounts = [{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}]
    broken = pod(volumes=[{"name": "v"}], containers=[{"name": "c", "image": "i", "volumeMounts": mounts}])
    assert errors(broken) == ['spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique']


def test_host_network_ports_are_the_containers_own() -> None:
    ports = [{"containerPort": 80, "hostPort": 81}]
    broken = pod(hostNetwork=True, containers=[{"name": "c", "image": "i", "ports": ports}])
    assert errors(broken) == [
        "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"
    ]


def test_rules_follow_the_version() -> None:
    odd = container(env=[{"name": "1A"}])
    assert errors(odd, minor=36) == []
    assert errors(odd, minor=31)[0].startswith('spec.containers[0].env[0].name: Invalid value: "1A": a valid env')
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "readinessProbe": {"tcpSocket": {"port": 1}}}
    assert errors(pod(initContainers=[sidecar]), minor=29) == []
    assert "must not be set for init containers" in errors(pod(initContainers=[sidecar]), minor=28)[0]
    windows = pod(os={"name": "windows"}, hostPID=True)
    assert errors(windows, minor=23) == []
    assert errors(windows, minor=24) == ["spec.hostPID: Forbidden: cannot be set for a windows pod"]


OTHERS = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
DEADLINE = "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"
KEPT = "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
GATE = "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"
COUNT = "spec.containers: Forbidden: pod updates may not add or remove containers"
TOLERANT = {"tolerations": [{"key": "k", "operator": "Exists"}]}
ONE, TWO = {"name": "c", "image": "i"}, {"name": "d", "image": "i"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"containers": [{"name": "c", "image": "other:1", "imagePullPolicy": "Always"}]}, []),
        ({}, TOLERANT, []),
        ({}, {"activeDeadlineSeconds": 5}, []),
        ({"schedulingGates": [{"name": "g"}]}, {}, []),
        ({"terminationGracePeriodSeconds": -1}, {"terminationGracePeriodSeconds": 1}, []),
        ({}, {"nodeName": "n"}, [OTHERS]),
        ({}, {"terminationGracePeriodSeconds": 5}, [OTHERS]),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 6}, [DEADLINE]),
        (TOLERANT, {}, [KEPT]),
        ({}, {"schedulingGates": [{"name": "g"}]}, [GATE]),
        ({}, {"containers": [ONE, TWO]}, [COUNT]),
    ],
)
def test_what_of_a_pod_may_change(before: Object, after: Object, expected: list[str]) -> None:
    found = errors(pod(**after), pod(**before))
    assert len(found) == len(expected), found
    for text, start in zip(found, expected, strict=True):
        assert text.startswith(start)


def test_status_writes_are_not_held_against_the_spec() -> None:
    broken = pod(restartPolicy="Sometimes")
    assert errors({**broken, "status": {"phase": "Running"}}, broken) == []
