"""Bodies that are not what their kind is: wrong types, unknown fields, broken rules."""

from __future__ import annotations

import pytest

from sandbox.api.conftest import Http, config, pod

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


async def test_unknown_fields_are_warned_of_dropped_or_refused(http: Http) -> None:
    body = pod()
    body["spec"]["colour"] = "red"
    body["spec"]["containers"][0]["imagee"] = "x"
    strict = await http.post(PODS, body, fieldValidation="Strict")
    assert strict.code == 400
    assert strict.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "spec.containers[0].imagee", unknown field "spec.colour"'
    )
    ignored = await http.post(PODS, {**body, "metadata": {"name": "ignored"}}, fieldValidation="Ignore")
    assert (ignored.code, ignored.headers.getall("Warning", [])) == (201, [])
    warned = await http.post(PODS, body)
    assert warned.code == 201
    assert warned.headers.getall("Warning") == [
        r'299 - "unknown field \"spec.containers[0].imagee\""',
        r'299 - "unknown field \"spec.colour\""',
    ]
    assert "colour" not in warned.body["spec"]
    patched = await http.patch(f"{PODS}/p/status", {"status": {"phse": "Running"}}, "strategic-merge")
    assert patched.headers.getall("Warning") == [r'299 - "unknown field \"status.phse\""']
    assert (await http.post(PODS, body, fieldValidation="Sometimes")).code == 422


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ({"spec": {"containers": "none"}}, "cannot unmarshal string into Go struct field PodSpec.spec.containers"),
        ({"status": {"conditions": 7}}, "cannot unmarshal number 7 into Go struct field Pod"),
    ],
)
async def test_values_of_the_wrong_type_never_reach_the_store(http: Http, patch: dict[str, object], text: str) -> None:
    created = (await http.post(PODS, pod())).body
    path = f"{PODS}/p/status" if "status" in patch else f"{PODS}/p"
    refused = await http.patch(path, patch)
    assert refused.code == 422
    assert text in refused.message
    assert (await http.get(f"{PODS}/p")).body == created


async def test_broken_rules_are_named_with_their_fields(http: Http) -> None:
    body = pod("Wrong_Name")
    body["spec"] = {"os": {"name": "windows"}, "hostPID": True, "containers": []}
    refused = await http.post(PODS, body)
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    fields = {cause["field"] for cause in refused.body["details"]["causes"]}
    assert {"metadata.name", "spec.containers", "spec.hostPID"} <= fields
    assert refused.body["details"]["kind"] == "Pod"


async def test_what_may_not_change_is_refused_whichever_way_it_is_written(http: Http) -> None:
    await http.post(PODS, pod())
    change = {"spec": {"serviceAccountName": "other"}}
    for kind in ("merge", "strategic-merge"):
        refused = await http.patch(f"{PODS}/p", change, kind)
        assert refused.code == 422
        assert "spec: Forbidden: pod updates may not change fields other than" in refused.message


async def test_a_debug_container_comes_through_its_own_path(http: Http) -> None:
    await http.post(PODS, pod())
    debugger = {"name": "debug", "image": "example/debug:1"}
    body = {"spec": {"ephemeralContainers": [debugger]}}
    assert (await http.patch(f"{PODS}/p", body, "strategic-merge")).code == 422
    added = await http.patch(f"{PODS}/p/ephemeralcontainers", body, "strategic-merge")
    assert added.code == 200
    assert added.body["spec"]["ephemeralContainers"][0]["name"] == "debug"
    gone = [{"op": "remove", "path": "/spec/ephemeralContainers"}]
    refused = await http.patch(f"{PODS}/p/ephemeralcontainers", gone, "json")
    assert "may not be removed" in refused.message


async def test_a_label_that_is_no_text_is_refused(http: Http) -> None:
    body = config()
    body["metadata"]["labels"] = {"a": 1}
    assert (await http.post(MAPS, body)).code == 400
