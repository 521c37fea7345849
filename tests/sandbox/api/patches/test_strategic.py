"""Strategic merge: lists by key, directives, order."""

from __future__ import annotations

from typing import Any

import pytest

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.patches import strategic_merge


def deployment() -> dict[str, Any]:
    containers = [
        {"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"name": "side", "image": "side:1", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
    ]
    volumes = [{"name": "data", "emptyDir": {}}]
    tolerations = [{"key": "os", "operator": "Exists"}]
    pod = {"containers": containers, "volumes": volumes, "tolerations": tolerations}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "finalizers": ["a/1", "a/2"]},
        "spec": {"strategy": rolling, "template": {"spec": pod}},
    }


def pod_patched(patch: dict[str, Any]) -> dict[str, Any]:
    before = deployment()
    result = strategic_merge(before, {"spec": {"template": {"spec": patch}}})
    assert before == deployment()
    spec: dict[str, Any] = result["spec"]["template"]["spec"]
    return spec


def test_items_merge_by_name_down_to_their_own_lists() -> None:
    patch = {"containers": [{"name": "web", "image": "web:2", "env": [{"name": "B", "value": "3"}]}]}
    web, side = pod_patched(patch)["containers"]
    assert web["image"] == "web:2"
    assert web["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}]
    assert side == deployment()["spec"]["template"]["spec"]["containers"][1]


def test_a_new_item_goes_to_the_front_as_with_the_real_server() -> None:
    patch = {"containers": [{"name": "new", "image": "new:1"}]}
    assert [c["name"] for c in pod_patched(patch)["containers"]] == ["new", "web", "side"]


def test_set_element_order_decides_the_place() -> None:
    patch = {
        "$setElementOrder/containers": [{"name": "side"}, {"name": "web"}, {"name": "new"}],
        "containers": [{"name": "new", "image": "new:1"}],
    }
    assert [c["name"] for c in pod_patched(patch)["containers"]] == ["side", "web", "new"]


def test_delete_directive_removes_an_item() -> None:
    assert [c["name"] for c in pod_patched({"containers": [{"name": "web", "$patch": "delete"}]})["containers"]] == [
        "side"
    ]


def test_replace_directive_in_a_list_and_in_a_map() -> None:
    spec = pod_patched({"containers": [{"$patch": "replace"}, {"name": "only", "image": "o"}]})
    assert spec["containers"] == [{"name": "only", "image": "o"}]
    strategy = {"$patch": "replace", "type": "Recreate"}
    assert strategic_merge(deployment(), {"spec": {"strategy": strategy}})["spec"]["strategy"] == {"type": "Recreate"}


def test_retain_keys_drops_what_is_not_named() -> None:
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic_merge(deployment(), patch)["spec"]["strategy"] == {"type": "Recreate"}
    volumes = [{"$retainKeys": ["name", "secret"], "name": "data", "secret": {"secretName": "s"}}]
    assert pod_patched({"volumes": volumes})["volumes"] == [{"name": "data", "secret": {"secretName": "s"}}]


def test_retain_keys_that_forget_a_field_of_the_patch_are_refused() -> None:
    with pytest.raises(ApiError) as caught:
        strategic_merge(deployment(), {"spec": {"strategy": {"$retainKeys": ["x"], "type": "Recreate"}}})
    assert (caught.value.code, caught.value.message) == (400, "invalid patch format of retainKeys")


def test_primitive_lists_are_sets_where_the_api_says_so() -> None:
    added = strategic_merge(deployment(), {"metadata": {"finalizers": ["a/2", "a/3"]}})
    assert sorted(added["metadata"]["finalizers"]) == ["a/1", "a/2", "a/3"]
    gone = strategic_merge(deployment(), {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"]}})
    assert gone["metadata"]["finalizers"] == ["a/2"]


def test_lists_without_a_key_are_replaced() -> None:
    assert pod_patched({"tolerations": [{"key": "x"}]})["tolerations"] == [{"key": "x"}]


def test_null_removes() -> None:
    assert "volumes" not in pod_patched({"volumes": None})


def test_node_conditions_merge_by_type() -> None:
    node = {"kind": "Node", "apiVersion": "v1", "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    patch = {"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "False"}]}}
    conditions = strategic_merge(node, patch)["status"]["conditions"]
    assert conditions == [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "False"}]


def test_an_item_without_its_key_is_refused() -> None:
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        pod_patched({"containers": [{"image": "x"}]})
