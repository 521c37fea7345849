"""Creating, reading, replacing and deleting objects as clients do it, and what is refused."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from sandbox.api.conftest import Http, config, pod
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.server import Disturbance

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(replicas: int = 1) -> dict[str, object]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


async def test_a_new_object_gets_what_only_the_server_gives(http: Http) -> None:
    answer = await http.post(PODS, {**pod(), "status": {"phase": "Running"}})
    assert answer.code == 201
    metadata = answer.body["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["uid"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert metadata["generation"] == 1
    assert int(metadata["resourceVersion"]) > 1
    assert answer.body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert answer.text.startswith('{"kind":"Pod","apiVersion":"v1","metadata":{')


async def test_a_second_object_of_the_same_name_is_refused(http: Http) -> None:
    await http.post(PODS, pod())
    answer = await http.post(PODS, pod())
    assert answer.code == 409
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "p" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "p", "kind": "pods"},
        "code": 409,
    }


async def test_names_are_generated(http: Http) -> None:
    body = config()
    body["metadata"] = {"generateName": "made-"}
    names = {(await http.post(MAPS, body)).body["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("made-") and len(name) == 10 for name in names)


@pytest.mark.parametrize(
    ("path", "body", "code", "message"),
    [
        ("/api/v1/namespaces/missing/pods", pod(), 404, 'namespaces "missing" not found'),
        ("/api/v1/namespaces/default/gadgets", pod(), 404, "the server could not find the requested resource"),
        (f"{PODS}/p", pod(), 405, "the server does not allow this method on the requested resource"),
        (MAPS, pod(), 400, 'Pod in version "v1" cannot be handled as a ConfigMap'),
        (PODS, {**pod(), "apiVersion": "v2"}, 400, 'cannot be handled as a Pod: no kind "Pod" is registered'),
        (PODS, {**pod(), "metadata": []}, 400, "cannot unmarshal array into field metadata"),
        (PODS, {**pod(), "spec": "x"}, 400, "cannot unmarshal string into field spec"),
        (PODS, "{", 400, "json parse error"),
        (PODS, "[]", 400, "must be a JSON or YAML object"),
        (MAPS, {**config(), "metadata": {"name": "c", "namespace": "other"}}, 400, "does not match the namespace sent"),
        (MAPS, {**config(), "metadata": {"name": "c", "resourceVersion": "7"}}, 500, "resourceVersion should not be"),
    ],
)
async def test_what_cannot_be_created(http: Http, path: str, body: object, code: int, message: str) -> None:
    answer = await http.post(path, body)
    assert answer.code == code
    assert message in answer.message


async def test_yaml_bodies_and_answers(http: Http) -> None:
    text = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: y}\ndata: {a: b}\n"
    answer = await http.request("POST", MAPS, text, content_type="application/yaml", accept="application/yaml")
    assert answer.code == 201
    assert answer.headers["Content-Type"] == "application/yaml"
    assert answer.text.startswith("kind: ConfigMap\napiVersion: v1\n")


async def test_unknown_media_types_are_refused(http: Http) -> None:
    answer = await http.request("POST", MAPS, "x", content_type="application/x-thing")
    assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")
    answer = await http.request("GET", MAPS, accept="text/html")
    assert (answer.code, answer.body["reason"]) == (406, "NotAcceptable")
    answer = await http.request("PATCH", f"{MAPS}/x", "{}", content_type="application/json")
    assert answer.code == 415


async def test_a_body_over_three_megabytes_is_refused(http: Http) -> None:
    answer = await http.post(MAPS, config(x="x" * 3_200_000))
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_dry_run_stores_nothing(http: Http) -> None:
    assert (await http.post(MAPS, config(), dryRun="All")).code == 201
    assert (await http.get(f"{MAPS}/c")).code == 404
    created = (await http.post(MAPS, config(a="1"))).body
    changed = await http.put(f"{MAPS}/c", config(a="2"), dryRun="All")
    assert changed.body["data"] == {"a": "2"}
    assert (await http.delete(f"{MAPS}/c", dryRun="All")).code == 200
    assert (await http.get(f"{MAPS}/c")).body == created
    wrong = await http.post(MAPS, config("x"), dryRun="Some")
    assert wrong.message == (
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'
    )


async def test_stale_writes_are_refused(http: Http) -> None:
    first = (await http.post(MAPS, config(a="1"))).body
    second = (await http.put(f"{MAPS}/c", {**first, "data": {"a": "2"}})).body
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    stale = await http.put(f"{MAPS}/c", {**first, "data": {"a": "3"}})
    assert stale.code == 409
    assert "the object has been modified; please apply your changes to the latest version" in stale.message
    other = {**second, "metadata": {**second["metadata"], "uid": "another"}}
    assert "Precondition failed: UID in precondition: another" in (await http.put(f"{MAPS}/c", other)).message
    wrong_name = {**second, "metadata": {**second["metadata"], "name": "d"}}
    assert (await http.put(f"{MAPS}/c", wrong_name)).code == 400


async def test_leases_are_replaced_only_with_a_version(http: Http) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    await http.post(path, lease)
    answer = await http.put(f"{path}/l", {**lease, "spec": {"holderIdentity": "me"}})
    assert answer.code == 422
    assert answer.message == (
        'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )


async def test_some_kinds_are_created_by_a_put(http: Http) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    assert (await http.put(path, lease)).code == 201
    assert (await http.get(path)).code == 200
    assert (await http.put(f"{MAPS}/c", config())).code == 404
    assert (await http.put(MAPS, config())).code == 405


async def test_a_write_that_changes_nothing_makes_no_new_version(http: Http) -> None:
    created = (await http.post(MAPS, config(a="1"))).body
    assert (await http.put(f"{MAPS}/c", created)).body == created
    assert (await http.patch(f"{MAPS}/c", {"data": {"a": "1"}})).body == created


async def test_spec_and_status_are_written_apart(http: Http) -> None:
    created = (await http.post(DEPLOYMENTS, {**deployment(), "status": {"replicas": 9}})).body
    assert created["status"] == {}
    status = await http.put(f"{DEPLOYMENTS}/d/status", {**created, "spec": {}, "status": {"replicas": 1}})
    assert status.body["spec"] == created["spec"]
    assert status.body["status"] == {"replicas": 1}
    assert status.body["metadata"]["generation"] == 1
    changed = {**deployment(3), "status": {"replicas": 7}}
    spec = (await http.put(f"{DEPLOYMENTS}/d", changed)).body
    assert spec["status"] == {"replicas": 1}
    assert spec["metadata"]["generation"] == 2
    labelled = await http.patch(f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"x": "y"}}})
    assert labelled.body["metadata"]["generation"] == 2


async def test_scale_is_an_object_of_its_own(http: Http) -> None:
    await http.post(DEPLOYMENTS, deployment(2))
    scale = (await http.get(f"{DEPLOYMENTS}/d/scale")).body
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 0, "selector": "app=a"}
    assert (await http.put(f"{DEPLOYMENTS}/d/scale", {**scale, "spec": {"replicas": 5}})).body["spec"]["replicas"] == 5
    assert (await http.put(f"{DEPLOYMENTS}/d/scale", {**scale, "spec": {"replicas": 6}})).code == 409
    patched = await http.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 7}})
    assert patched.body["spec"]["replicas"] == 7
    assert (await http.get(f"{DEPLOYMENTS}/d")).body["spec"]["replicas"] == 7
    assert (await http.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}})).code == 422


async def test_patches_of_every_kind(http: Http) -> None:
    await http.post(DEPLOYMENTS, deployment())
    path = f"{DEPLOYMENTS}/d"
    json_patch = [{"op": "replace", "path": "/spec/replicas", "value": 2}]
    assert (await http.patch(path, json_patch, "json")).body["spec"]["replicas"] == 2
    assert (await http.patch(path, {"spec": {"replicas": 3}}, "merge")).body["spec"]["replicas"] == 3
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "s", "image": "s:1"}]}}}}
    merged = (await http.patch(path, sidecar, "strategic-merge")).body
    assert {c["name"] for c in merged["spec"]["template"]["spec"]["containers"]} == {"c", "s"}
    applied = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 4}}
    refused = await http.patch(path, applied, "apply", fieldManager="me")
    assert refused.code == 409
    forced = await http.patch(path, applied, "apply", fieldManager="me", force="true")
    assert forced.body["spec"]["replicas"] == 4
    assert {"me": "Apply"}.items() <= {
        m["manager"]: m["operation"] for m in forced.body["metadata"]["managedFields"]
    }.items()
    assert (await http.patch(path, applied, "apply")).code == 422
    assert (await http.patch(f"{DEPLOYMENTS}/missing", {}, "merge")).code == 404


async def test_an_apply_that_only_defaults_would_undo_writes_nothing(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A field reference is written as a whole, so that each apply drops the version that defaults add to it.
    container = {
        "name": "main",
        "image": "registry.example/pause:3",
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    }
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec}
    path = "/apis/apps/v1/namespaces/default/daemonsets/d"
    first = await http.patch(path, body, "apply", fieldManager="me")
    assert first.code == 201, first.text
    monkeypatch.setattr("winready_sandbox.api.patches.managers.now", lambda: "2099-01-01T00:00:00Z")
    again = await http.patch(path, body, "apply", fieldManager="me")
    assert again.body == first.body


async def test_apply_creates_what_is_not_there(http: Http) -> None:
    answer = await http.patch(f"{MAPS}/new", {**config("new"), "data": {"a": "b"}}, "apply", fieldManager="me")
    assert answer.code == 201
    assert answer.body["data"] == {"a": "b"}
    again = await http.patch(f"{MAPS}/new", {**config("new"), "data": {"a": "b"}}, "apply", fieldManager="me")
    assert (again.code, again.body) == (200, answer.body)


async def test_a_patch_with_an_old_version_is_a_stale_write(http: Http) -> None:
    created = (await http.post(MAPS, config(a="1"))).body
    await http.patch(f"{MAPS}/c", {"data": {"a": "2"}})
    stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"a": "3"}}
    assert (await http.patch(f"{MAPS}/c", stale)).code == 409


async def test_delete_answers_with_a_status_or_the_object(http: Http) -> None:
    created = (await http.post(MAPS, config())).body
    answer = await http.delete(f"{MAPS}/c")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "c", "kind": "configmaps", "uid": created["metadata"]["uid"]},
    }
    assert (await http.delete(f"{MAPS}/c")).message == 'configmaps "c" not found'
    await http.post(PODS, pod())
    last = (await http.delete(f"{PODS}/p")).body
    assert (last["kind"], last["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 0)


async def test_preconditions_of_a_delete(http: Http) -> None:
    created = (await http.post(MAPS, config())).body
    answer = await http.delete(f"{MAPS}/c", {"preconditions": {"uid": "another"}})
    assert answer.code == 409
    assert "the UID in the precondition (another) does not match the UID in record" in answer.message
    old = created["metadata"]["resourceVersion"]
    await http.patch(f"{MAPS}/c", {"data": {"a": "b"}})
    assert (await http.delete(f"{MAPS}/c", {"preconditions": {"resourceVersion": old}})).code == 409
    assert (await http.delete(f"{MAPS}/c", {"preconditions": {"uid": created["metadata"]["uid"]}})).code == 200


async def test_a_pod_on_a_node_waits_for_its_kubelet(http: Http) -> None:
    await http.post(PODS, pod(node="n"))
    first = (await http.delete(f"{PODS}/p")).body["metadata"]
    assert first["deletionGracePeriodSeconds"] == 30
    assert first["deletionTimestamp"]
    longer = (await http.delete(f"{PODS}/p", gracePeriodSeconds=60)).body["metadata"]
    assert longer["deletionTimestamp"] == first["deletionTimestamp"]
    shorter = (await http.delete(f"{PODS}/p", {"gracePeriodSeconds": 5})).body["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 5
    assert (await http.get(f"{PODS}/p")).code == 200
    assert (await http.delete(f"{PODS}/p", gracePeriodSeconds=0)).code == 200
    assert (await http.get(f"{PODS}/p")).code == 404


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_goes_at_once(http: Http, phase: str) -> None:
    await http.post(PODS, pod(node="n"))
    await http.patch(f"{PODS}/p/status", {"status": {"phase": phase}})
    await http.delete(f"{PODS}/p")
    assert (await http.get(f"{PODS}/p")).code == 404


async def test_finalizers_hold_an_object_back(http: Http) -> None:
    body = {**config(), "metadata": {"name": "c", "finalizers": ["example.com/hold"]}}
    await http.post(MAPS, body)
    marked = (await http.delete(f"{MAPS}/c")).body
    assert marked["metadata"]["deletionTimestamp"]
    assert (await http.post(MAPS, config())).message == 'object is being deleted: configmaps "c" already exists'
    more = await http.patch(f"{MAPS}/c", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})
    assert more.code == 422
    assert 'found new finalizers []string{"example.com/more"}' in more.message
    await http.patch(f"{MAPS}/c", {"metadata": {"finalizers": None}})
    assert (await http.get(f"{MAPS}/c")).code == 404


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"])],
)
async def test_propagation_policies_leave_work_for_the_garbage_collector(
    http: Http, policy: str, finalizers: list[str]
) -> None:
    await http.post(DEPLOYMENTS, deployment())
    answer = await http.delete(f"{DEPLOYMENTS}/d", {"propagationPolicy": policy})
    assert answer.body["metadata"]["finalizers"] == finalizers
    assert (await http.delete(f"{DEPLOYMENTS}/d", {"propagationPolicy": "Sideways"})).code == 422
    await http.delete(f"{DEPLOYMENTS}/d", {"propagationPolicy": "Background"})
    assert (await http.get(f"{DEPLOYMENTS}/d")).code == 404


async def test_a_collection_is_deleted_by_selector(http: Http) -> None:
    for name, tier in (("a", "x"), ("b", "y"), ("c", "x")):
        await http.post(PODS, pod(name, tier=tier))
    answer = await http.delete(PODS, labelSelector="tier=x")
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    left = (await http.get(PODS)).body["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]


async def test_a_namespace_goes_in_steps(http: Http) -> None:
    path = "/api/v1/namespaces/other"
    answer = await http.delete(path)
    assert answer.body["status"]["phase"] == "Terminating"
    refused = await http.post(f"{path}/configmaps", config())
    assert refused.code == 403
    assert refused.message == (
        'configmaps "c" is forbidden: unable to create new content in namespace other because it is being terminated'
    )
    assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    assert (await http.get(path)).body["spec"]["finalizers"] == ["kubernetes"]
    await http.put(path, {**answer.body, "spec": {"finalizers": []}, "metadata": {"name": "other"}})
    assert (await http.get(path)).code == 200
    final = {**answer.body, "spec": {"finalizers": []}, "metadata": {"name": "other"}}
    assert (await http.put(f"{path}/finalize", final)).code == 200
    assert (await http.get(path)).code == 404


async def test_pods_are_bound_once(http: Http) -> None:
    await http.post(PODS, pod())
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    bound = await http.post(f"{PODS}/p/binding", {"kind": "Binding", "apiVersion": "v1", **target})
    assert (bound.code, bound.body["status"]) == (201, "Success")
    stored = (await http.get(f"{PODS}/p")).body
    assert stored["spec"]["nodeName"] == "n1"
    assert [(c["type"], c["status"]) for c in stored["status"]["conditions"]] == [("PodScheduled", "True")]
    again = await http.post("/api/v1/namespaces/default/bindings", target)
    assert again.code == 409
    assert 'pod p is already assigned to node "n1"' in again.message


async def test_evictions_keep_to_the_budget(http: Http) -> None:
    await http.post(PODS, pod(node="n", app="a"))
    await http.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    await http.post(
        budgets, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
    )
    status = {"observedGeneration": 1, "disruptionsAllowed": 0, "desiredHealthy": 1, "currentHealthy": 1}
    await http.patch(f"{budgets}/b/status", {"status": status})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    refused = await http.post(f"{PODS}/p/eviction", eviction)
    assert refused.code == 429
    assert refused.body["details"]["causes"][0]["message"] == (
        "The disruption budget b needs 1 healthy pods and has 1 currently"
    )
    await http.patch(f"{budgets}/b/status", {"status": {"disruptionsAllowed": 1}})
    assert (await http.post(f"{PODS}/p/eviction", eviction)).code == 201
    assert (await http.get(f"{PODS}/p")).body["metadata"]["deletionTimestamp"]
    assert (await http.get(f"{budgets}/b")).body["status"]["disruptionsAllowed"] == 0


async def test_events_are_the_same_in_both_groups(http: Http) -> None:
    new = "/apis/events.k8s.io/v1/namespaces/default/events"
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p"},
        "note": "it happened",
        "reason": "Happened",
        "type": "Normal",
        "reportingController": "me",
    }
    created = await http.post(new, event)
    assert (created.code, created.body["apiVersion"], created.body["note"]) == (201, "events.k8s.io/v1", "it happened")
    core = (await http.get("/api/v1/namespaces/default/events", fieldSelector="involvedObject.name=p")).body
    assert (core["items"][0]["message"], core["items"][0]["involvedObject"]["name"]) == ("it happened", "p")
    listed = (await http.get(new, fieldSelector="regarding.name=p")).body
    assert (listed["kind"], listed["items"][0]["note"]) == ("EventList", "it happened")
    changed = await http.patch(f"{new}/e", {"note": "again", "series": {"count": 2}})
    assert (changed.body["note"], changed.body["series"]) == ("again", {"count": 2})


async def test_custom_resources_are_served_once_defined(http: Http) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Size", "type": "string", "jsonPath": ".spec.size"}],
    }
    names = {"kind": "Gadget", "plural": "gadgets", "shortNames": ["gd"]}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    wrong = await http.post(definitions, {**definition, "metadata": {"name": "gadget.example.com"}})
    assert (wrong.code, "metadata.name" in wrong.message) == (422, True)
    created = await http.post(definitions, {**definition, "metadata": {"name": "gadgets.example.com"}})
    assert {c["type"] for c in created.body["status"]["conditions"]} == {"NamesAccepted", "Established"}
    gadgets = "/apis/example.com/v1/namespaces/default/gadgets"
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": "big"}}
    assert (await http.post(gadgets, gadget)).code == 201
    status = await http.patch(f"{gadgets}/g/status", {"status": {"ok": True}, "spec": {"size": "x"}})
    assert (status.body["status"], status.body["spec"]) == ({"ok": True}, {"size": "big"})
    assert (await http.patch(f"{gadgets}/g", {"spec": {"size": "x"}}, "strategic-merge")).code == 415
    table = (await http.get(gadgets, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).body
    assert table["rows"][0]["cells"] == ["g", "big"]
    assert "gadgets" in (await http.get("/apis/example.com/v1")).text
    await http.delete(f"{definitions}/gadgets.example.com")
    assert (await http.get(gadgets)).code == 404


async def test_requests_can_be_disturbed(http: Http) -> None:
    busy = ApiError(429, "TooManyRequests", "later", {"retryAfterSeconds": 1})
    http.server.disturb = lambda request, user: Disturbance(error=busy)
    answer = await http.get(MAPS)
    assert (answer.code, answer.headers["Retry-After"]) == (429, "1")
    http.server.disturb = lambda request, user: Disturbance(reset=True)
    with pytest.raises(aiohttp.ClientError):
        await http.get(MAPS)
    http.server.disturb = None
    assert (await http.get(MAPS)).code == 200


async def test_many_writers_do_not_lose_updates(http: Http) -> None:
    await http.post(MAPS, config(n="0"))

    async def add_one() -> None:
        while True:
            current = (await http.get(f"{MAPS}/c")).body
            current["data"]["n"] = str(int(current["data"]["n"]) + 1)
            if (await http.put(f"{MAPS}/c", current)).code == 200:
                return

    await asyncio.gather(*(add_one() for _ in range(10)))
    assert (await http.get(f"{MAPS}/c")).body["data"] == {"n": "10"}


async def test_who_asks_before_sending_a_body_is_told_to_go_on(http: Http) -> None:
    path, body = f"{http.url}/api/v1/namespaces/default/configmaps", config("asked-first", key="value")
    async with aiohttp.ClientSession() as session, session.post(path, json=body, expect100=True) as answer:
        assert answer.status == 201
