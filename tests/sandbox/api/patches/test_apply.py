"""Server-side apply and field ownership, step by step as users meet it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.patches.apply import server_side_apply, track_update

LAST = "kubectl.kubernetes.io/last-applied-configuration"


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": data}


def deployment(replicas: int | None, *containers: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"template": {"spec": {"containers": list(containers)}}}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


def owned(obj: dict[str, Any], manager: str) -> Any:
    entries = [e for e in obj["metadata"].get("managedFields", []) if e["manager"] == manager]
    return entries[0]["fieldsV1"] if entries else None


def apply(live: dict[str, Any] | None, applied: dict[str, Any], manager: str, force: bool = False) -> dict[str, Any]:
    return server_side_apply(live, applied, manager, force, "")


def test_create_is_owned_by_its_writer_in_the_real_servers_shape() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"run": "p"}},
        "spec": {"restartPolicy": "Always", "containers": [{"name": "p", "image": "i", "resources": {}}]},
    }
    (entry,) = track_update(None, pod, "kubectl-run")["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {
        "f:metadata": {"f:labels": {".": {}, "f:run": {}}},
        "f:spec": {
            "f:restartPolicy": {},
            "f:containers": {'k:{"name":"p"}': {".": {}, "f:name": {}, "f:image": {}, "f:resources": {}}},
        },
    }
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("kubectl-run", "Update", "v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["time"].endswith("Z")
    assert "subresource" not in entry


def test_apply_owns_exactly_what_it_names() -> None:
    created = apply(None, deployment(2, {"name": "a", "ports": [{"containerPort": 80}]}), "me")
    port: dict[str, Any] = {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}
    item = {".": {}, "f:name": {}, "f:ports": port}
    pod = {"f:containers": {'k:{"name":"a"}': item}}
    assert owned(created, "me") == {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": pod}}}


def test_an_update_takes_fields_from_their_owner() -> None:
    created = apply(None, config_map(a="1", b="1"), "one")
    changed = track_update(created, {**created, "data": {"a": "2", "b": "1"}}, "two")
    assert owned(changed, "one") == {"f:data": {"f:b": {}}}
    assert owned(changed, "two") == {"f:data": {"f:a": {}}}


def test_an_update_that_removes_a_field_leaves_it_to_nobody() -> None:
    created = apply(None, config_map(a="1", b="1"), "one")
    changed = track_update(created, {**created, "data": {"b": "1"}}, "two")
    assert owned(changed, "one") == {"f:data": {"f:b": {}}}
    assert owned(changed, "two") is None


def test_a_write_that_changes_nothing_leaves_the_entries_alone() -> None:
    created = track_update(None, config_map(a="1"), "one")
    again = track_update(created, config_map(a="1"), "two")
    assert again["metadata"]["managedFields"] is created["metadata"]["managedFields"]


def test_status_writes_are_kept_apart() -> None:
    created = track_update(None, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}}, "me")
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    seen = track_update(created, {**created, "status": status}, "me", subresource="status")
    entries = seen["metadata"]["managedFields"]
    assert [entry.get("subresource") for entry in entries] == [None, "status"]
    conditions = entries[1]["fieldsV1"]["f:status"]["f:conditions"]
    assert conditions['k:{"type":"Ready"}'] == {".": {}, "f:type": {}, "f:status": {}}


def test_one_conflict_reads_as_kubectl_prints_it() -> None:
    live = track_update(None, deployment(3, {"name": "a", "image": "i"}), "kubectl-client-side-apply")
    with pytest.raises(ApiError) as caught:
        apply(live, deployment(5), "other")
    error = caught.value
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas'
    )
    assert error.details["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-client-side-apply" using apps/v1',
            "field": ".spec.replicas",
        }
    ]


def test_many_conflicts_are_grouped_by_manager() -> None:
    live = apply(None, deployment(3, {"name": "a", "image": "i"}), "zed")
    live = track_update(live, {**live, "spec": {**live["spec"], "replicas": 4}}, "alf")
    with pytest.raises(ApiError) as caught:
        apply(live, deployment(5, {"name": "a", "image": "j"}), "other")
    assert caught.value.message == (
        'Apply failed with 2 conflicts: conflicts with "alf" using apps/v1:\n- .spec.replicas\n'
        'conflicts with "zed":\n- .spec.template.spec.containers[name="a"].image'
    )


def test_force_takes_the_fields_over() -> None:
    live = apply(None, config_map(a="1", b="1"), "one")
    forced = apply(live, config_map(a="2"), "two", force=True)
    assert forced["data"] == {"a": "2", "b": "1"}
    assert owned(forced, "one") == {"f:data": {"f:b": {}}}
    assert owned(forced, "two") == {"f:data": {"f:a": {}}}


def test_the_same_value_is_shared_and_outlives_one_owner() -> None:
    live = apply(apply(None, config_map(a="1"), "one"), config_map(a="1"), "two")
    assert owned(live, "one") == owned(live, "two") == {"f:data": {"f:a": {}}}
    left = apply(live, config_map(), "one")
    assert left["data"] == {"a": "1"}
    assert owned(left, "two") == {"f:data": {"f:a": {}}}


def test_what_the_last_owner_stops_naming_goes_away() -> None:
    live = apply(None, deployment(2, {"name": "a", "image": "i"}, {"name": "b", "image": "i"}), "me")
    live["spec"]["template"]["spec"]["containers"][1]["imagePullPolicy"] = "Always"  # a default that nobody owns
    live = {**live, "metadata": {**live["metadata"], "labels": {"mine": "1"}}}
    left = apply(live, deployment(None, {"name": "a", "image": "i"}), "me")
    assert "replicas" not in left["spec"]
    assert [c["name"] for c in left["spec"]["template"]["spec"]["containers"]] == ["a"]
    assert left["metadata"]["labels"] == {"mine": "1"}


def test_items_of_others_stay_in_the_list() -> None:
    live = apply(None, deployment(1, {"name": "a"}, {"name": "c"}), "one")
    both = apply(live, deployment(None, {"name": "b"}, {"name": "c"}), "two")
    assert [c["name"] for c in both["spec"]["template"]["spec"]["containers"]] == ["a", "b", "c"]


def test_applying_the_same_again_changes_nothing() -> None:
    live = apply(None, config_map(a="1"), "one")
    assert apply(live, config_map(a="1"), "one") is live


def test_selectors_have_one_owner() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"a": "1"}}}
    assert owned(apply(None, service, "me"), "me") == {"f:spec": {"f:selector": {}}}


def test_owner_references_are_whole() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "ownerReferences": [{"uid": "u", "name": "x"}]}}
    references: dict[str, Any] = {"f:ownerReferences": {".": {}, 'k:{"uid":"u"}': {}}}
    assert owned(track_update(None, pod, "me"), "me") == {"f:metadata": references}


@pytest.mark.parametrize("reset", [[], [{}]])
def test_clients_can_reset_the_list(reset: list[Any]) -> None:
    live = apply(None, config_map(a="1"), "one")
    emptied = {**live, "metadata": {**live["metadata"], "managedFields": reset}}
    assert "managedFields" not in track_update(live, emptied, "two")["metadata"]


def test_a_client_may_write_the_entries_itself() -> None:
    live = track_update(None, config_map(a="1"), "kubectl-client-side-apply")
    entries = [{**live["metadata"]["managedFields"][0], "manager": "kubectl", "operation": "Apply"}]
    migrated = track_update(live, {**live, "metadata": {**live["metadata"], "managedFields": entries}}, "x")
    assert migrated["metadata"]["managedFields"] == entries


def test_kubectl_takes_over_what_client_side_apply_set() -> None:
    first = config_map(a="1", b="1")
    first["metadata"]["annotations"] = {LAST: json.dumps(config_map(a="1", b="1"))}
    live = track_update(None, first, "kubectl-client-side-apply")
    taken = apply(live, config_map(a="2"), "kubectl")
    assert taken["data"]["a"] == "2"
    assert json.loads(taken["metadata"]["annotations"][LAST])["data"] == {"a": "2"}
    with pytest.raises(ApiError):
        apply(live, config_map(a="2"), "somebody-else")


def test_what_changed_since_client_side_apply_still_conflicts() -> None:
    first = config_map(a="1")
    first["metadata"]["annotations"] = {LAST: json.dumps(config_map(a="1"))}
    live = track_update(None, first, "kubectl-client-side-apply")
    live = track_update(live, {**live, "data": {"a": "edited"}}, "kubectl-edit")
    with pytest.raises(ApiError, match=r'conflict with "kubectl-edit" using v1: \.data\.a'):
        apply(live, config_map(a="2"), "kubectl")


def test_managed_fields_cannot_be_applied() -> None:
    bad = config_map(a="1")
    bad["metadata"]["managedFields"] = []
    with pytest.raises(ApiError, match=r"metadata\.managedFields must be nil"):
        apply(None, bad, "me")


def test_the_status_is_applied_through_its_own_door_only() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"podCIDR": "c"}, "status": {"x": 1}}
    assert "status" not in apply(None, node, "me")
    live = apply(None, node, "me")
    through = server_side_apply(live, node, "me", False, "status")
    assert through["status"] == {"x": 1}
    assert {e.get("subresource", "") for e in through["metadata"]["managedFields"]} == {"", "status"}


def test_lists_of_custom_resources_are_whole() -> None:
    custom = {"apiVersion": "example.com/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"containers": [{}]}}
    assert owned(apply(None, custom, "me"), "me") == {"f:spec": {"f:containers": {}}}


def test_an_untracked_object_stays_untracked_until_it_is_applied_to() -> None:
    untracked = config_map(a="1")
    changed = track_update(untracked, config_map(a="2"), "editor")
    assert "managedFields" not in changed["metadata"]
    applied = apply(changed, config_map(a="2", b="1"), "me")
    assert owned(applied, "before-first-apply") == {"f:data": {".": {}, "f:a": {}}}
    with pytest.raises(ApiError, match='conflict with "before-first-apply" using v1'):
        apply(changed, config_map(a="3"), "me")


def test_an_applier_that_names_no_metadata_any_more_leaves_the_object_its_name() -> None:
    first = config_map(a="1")
    first["metadata"]["labels"] = {"x": "1"}
    left = apply(apply(None, first, "me"), config_map(a="1"), "me")
    assert left["metadata"]["name"] == "c"
    assert "labels" not in left["metadata"]


def test_owning_a_part_of_an_item_does_not_keep_the_item() -> None:
    live = apply(None, deployment(1, {"name": "a", "image": "i"}, {"name": "b", "image": "i"}), "me")
    pod = {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "edited"}]}
    edited = track_update(live, {**live, "spec": {"replicas": 1, "template": {"spec": pod}}}, "editor")
    left = apply(edited, deployment(1, {"name": "a", "image": "i"}), "me")
    assert [c["name"] for c in left["spec"]["template"]["spec"]["containers"]] == ["a"]
    assert owned(left, "editor") is None


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [("abc", "cb", "acb"), ("ab", "ca", "cab"), ("abc", "d", "abcd"), ("ab", "ba", "ba"), ("abc", "cxa", "bcxa")],
)
def test_the_order_of_merged_lists(live: str, applied: str, merged: str) -> None:
    before = apply(None, deployment(1, *({"name": name} for name in live)), "one")
    after = apply(before, deployment(None, *({"name": name} for name in applied)), "two")
    assert "".join(c["name"] for c in after["spec"]["template"]["spec"]["containers"]) == merged
