"""Bodies are held against the shape of their kind."""

from __future__ import annotations

from typing import Any

import pytest

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.shapes import conform


def test_fields_that_no_pod_has_are_named_and_dropped() -> None:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "creationTimestamp": None, "label": {}},
        "spec": {"containers": [{"name": "c", "imagePullPolicy": "Always", "img": "x"}], "volumes": [{"name": "v"}]},
        "stats": 1,
    }
    kept, unknown = conform("v1", "Pod", pod)
    assert unknown == ["metadata.label", "spec.containers[0].img", "stats"]
    assert kept["metadata"] == {"name": "p"}
    assert kept["spec"]["containers"] == [{"name": "c", "imagePullPolicy": "Always"}]


def test_inline_fields_belong_to_their_holder() -> None:
    spec = {
        "volumes": [
            {"name": "v", "hostPath": {"path": "/x"}},
            {"name": "c", "configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}},
        ],
        "containers": [{"name": "c", "livenessProbe": {"httpGet": {"port": "web"}, "periodSeconds": 3}}],
        "ephemeralContainers": [{"name": "e", "image": "i", "targetContainerName": "c"}],
    }
    assert conform("v1", "Pod", {"spec": spec}) == ({"spec": spec}, [])


@pytest.mark.parametrize(
    ("kind", "version", "obj", "message"),
    [
        (
            "Deployment",
            "apps/v1",
            {"spec": {"replicas": "two"}},
            'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct'
            " field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "ConfigMap",
            "v1",
            {"data": {"a": 1}},
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct'
            " field ConfigMap.data of type string",
        ),
        (
            "Pod",
            "v1",
            {"spec": {"containers": {}}},
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal object into Go struct'
            " field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            "Pod",
            "v1",
            {"spec": 3},
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number 3 into Go struct'
            " field Pod.spec of type v1.PodSpec",
        ),
    ],
)
def test_values_of_the_wrong_type_are_400(kind: str, version: str, obj: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        conform(version, kind, obj)
    assert (caught.value.code, caught.value.message) == (400, message)


def test_data_of_secrets_is_base64() -> None:
    with pytest.raises(ApiError, match="illegal base64 data at input byte 0"):
        conform("v1", "Secret", {"data": {"a": "***"}})


def test_quantities_may_be_numbers_and_ports_names() -> None:
    resources = {"limits": {"cpu": 1, "memory": "1Gi"}}
    kept, _ = conform("v1", "Pod", {"spec": {"containers": [{"name": "c", "resources": resources}]}})
    assert kept["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}


def test_kinds_without_a_table_pass() -> None:
    assert conform("example.com/v1", "Thing", {"spec": {"anything": None}}) == ({"spec": {"anything": None}}, [])


def test_zero_values_are_stored_where_they_are_values() -> None:
    container = {"name": "c", "stdin": False, "resources": {}, "args": [], "env": [{"name": "A", "value": ""}]}
    spec = {"containers": [container], "hostNetwork": False, "securityContext": {}, "terminationGracePeriodSeconds": 0}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {}}, "spec": spec}
    kept, unknown = conform("v1", "Pod", pod)
    assert unknown == []
    assert kept == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "c", "resources": {}, "env": [{"name": "A"}]}],
            "securityContext": {},
            "terminationGracePeriodSeconds": 0,
        },
    }
