"""What the API server does with fields depends on its version: unknown, dropped, or kept and carried on."""

from __future__ import annotations

from typing import Any

import pytest

from winready_sandbox.api import policing
from winready_sandbox.api.admission import install
from winready_sandbox.api.assembly import new_registry
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object
from winready_sandbox.api.registry import Registry, Write

APPARMOR = "container.apparmor.security.beta.kubernetes.io/c"


def cluster(minor: int) -> Registry:
    registry = new_registry(minor)
    install(registry)
    policing.install(registry)
    api = LocalClient(registry)
    api.create("namespaces", {"metadata": {"name": "default"}})
    api.create("serviceaccounts", {"metadata": {"name": "default"}}, "default")
    return registry


def create(minor: int, write: Write | None = None, annotations: Object | None = None, **spec: Any) -> Object:
    registry = cluster(minor)
    container = {"name": "c", "image": "i", **spec.pop("container", {})}
    body = {"metadata": {"name": "p", "annotations": annotations or {}}, "spec": {"containers": [container], **spec}}
    return registry.create(registry.resources.find("pods"), body, "default", write or Write(fields="Warn")).obj


@pytest.mark.parametrize(
    ("spec", "unknown", "dropped", "kept"),
    [
        ({"hostUsers": False}, 24, 32, 33),
        ({"hostnameOverride": "a"}, 33, 34, 35),
        ({"resources": {"limits": {"cpu": "1"}}}, 31, 33, 34),
        ({"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}, 25, 33, 34),
        ({"volumes": [{"name": "v", "image": {"reference": "r"}}]}, 30, 34, 35),
    ],
)
def test_a_field_is_unknown_then_dropped_then_kept(spec: Object, unknown: int, dropped: int, kept: int) -> None:
    (name,) = spec
    write = Write(fields="Warn")
    create(unknown, write, **spec)
    assert any(warning.startswith('unknown field "spec.') for warning in write.warnings)
    write = Write(fields="Warn")
    found = create(dropped, write, **spec)["spec"].get(name) or []
    assert write.warnings == []
    assert not [item for item in found if not str(item.get("name", "")).startswith("kube-api")]
    assert create(kept, **spec)["spec"][name] not in (None, [], {})


def test_processes_are_masked_where_unmasking_is_switched_off() -> None:
    container = {"securityContext": {"procMount": "Unmasked"}}
    assert create(32, container=container)["spec"]["containers"][0]["securityContext"] == {"procMount": "Default"}
    with pytest.raises(ApiError, match="`hostUsers` must be false to use `Unmasked`"):
        create(33, container=container)


@pytest.mark.parametrize(("minor", "field", "noted"), [(29, None, {}), (32, True, True), (36, True, {})])
def test_apparmor_annotations_become_fields_and_fields_annotations(minor: int, field: Any, noted: Any) -> None:
    write = Write()
    made = create(minor, write, {APPARMOR: "localhost/a"})
    context = made["spec"]["containers"][0].get("securityContext")
    profile = {"appArmorProfile": {"type": "Localhost", "localhostProfile": "a"}}
    assert context == (profile if field else None)
    assert bool(write.warnings) is bool(field)
    if minor >= 30:
        profiled = create(minor, securityContext={"appArmorProfile": {"type": "RuntimeDefault"}})
        expected = {APPARMOR: "runtime/default"} if noted else {}
        assert (profiled["metadata"].get("annotations") or {}) == expected


def test_windows_pods_keep_apparmor_annotations_as_they_are() -> None:
    write = Write()
    made = create(36, write, {APPARMOR: "runtime/default"}, os={"name": "windows"})
    assert "securityContext" not in made["spec"]["containers"][0]
    assert write.warnings == []


def test_amounts_of_a_pod_are_completed_from_its_containers() -> None:
    container = {"resources": {"requests": {"cpu": "250m"}, "limits": {"memory": "1Gi"}}}
    made = create(36, container=container, resources={"limits": {"cpu": "2", "memory": "2Gi"}})
    assert made["spec"]["resources"]["requests"] == {"cpu": "250m", "memory": "1Gi"}
    assert made["status"]["qosClass"] == "Burstable"


def test_an_empty_list_counts_as_set_and_is_not_stored() -> None:
    with pytest.raises(ApiError, match="supplementalGroups: Forbidden"):
        create(36, os={"name": "windows"}, securityContext={"supplementalGroups": []})
    assert create(36, securityContext={"supplementalGroups": []})["spec"]["securityContext"] == {}
    with pytest.raises(ApiError, match="Overhead set without corresponding RuntimeClass"):
        create(36, overhead={})


def test_templates_of_stateful_sets_are_looked_into_since_1_34() -> None:
    spec = {"os": {"name": "windows"}, "hostPID": True, "containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    body = {"metadata": {"name": "s"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    old, new = cluster(33), cluster(34)
    old.create(old.resources.find("statefulsets"), {**body, "metadata": {"name": "s"}}, "default")
    with pytest.raises(ApiError, match="cannot be set for a windows pod"):
        new.create(new.resources.find("statefulsets"), {**body, "metadata": {"name": "s"}}, "default")


def test_pods_count_their_generations_and_can_be_resized_since_1_33() -> None:
    assert "generation" not in create(32)["metadata"]
    assert create(33)["metadata"]["generation"] == 1
    paths = {minor: cluster(minor).resources.find("pods").subresource("resize") for minor in (32, 33)}
    assert paths[32] is None
    assert paths[33] is not None
