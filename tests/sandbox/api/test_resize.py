"""Resizing pods through their own path."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.api.conftest import Http

PODS = "/api/v1/namespaces/default/pods"


def pod(amounts: dict[str, Any], **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": amounts}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}


def wanted(**amounts: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": amounts}]}}


async def test_processors_and_memory_change_and_nothing_else_does(http: Http) -> None:
    await http.post(PODS, pod({"requests": {"cpu": "1"}}))
    body = wanted(requests={"cpu": "2"})
    body["spec"]["containers"][0]["image"] = "j"
    resized = await http.patch(f"{PODS}/p/resize", body, "strategic-merge")
    assert resized.code == 200
    (container,) = resized.body["spec"]["containers"]
    assert (container["resources"]["requests"], container["image"]) == ({"cpu": "2"}, "i")
    assert resized.body["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("before", "patch", "field", "text"),
    [
        ({"requests": {"cpu": "1"}}, wanted(requests={"cpu": None}), "requests", "resource requests cannot be removed"),
        ({"requests": {"cpu": "1"}}, wanted(limits={"cpu": "1"}), "spec", "Pod QOS Class may not change"),
        (
            {"requests": {"cpu": "1"}},
            wanted(requests={"ephemeral-storage": "1Gi"}),
            "spec",
            "only cpu and memory resources are mutable",
        ),
    ],
)
async def test_what_a_resize_may_not_do(http: Http, before: Any, patch: Any, field: str, text: str) -> None:
    memory = {"requests": {**before["requests"], "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    await http.post(PODS, pod(memory if "QOS" in text else before))
    if "QOS" in text:
        patch = wanted(requests={"cpu": "1"}, limits={"cpu": "1"})
    refused = await http.patch(f"{PODS}/p/resize", patch, "strategic-merge")
    assert refused.code == 422
    assert text in refused.message
    assert any(cause["field"].endswith(field) for cause in refused.body["details"]["causes"])


async def test_windows_pods_are_never_resized(http: Http) -> None:
    await http.post(PODS, pod({"requests": {"cpu": "1"}}, os={"name": "windows"}))
    refused = await http.patch(f"{PODS}/p/resize", wanted(requests={"cpu": "2"}), "strategic-merge")
    assert refused.message == 'Pod "p" is invalid: []: Forbidden: windows pods cannot be resized'


async def test_a_running_pod_is_resized_only_where_its_node_can(http: Http) -> None:
    await http.post(PODS, pod({"requests": {"cpu": "1"}}))
    running = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": {"running": {}}}
    await http.patch(f"{PODS}/p/status", {"status": {"containerStatuses": [running]}}, "merge")
    refused = await http.patch(f"{PODS}/p/resize", wanted(requests={"cpu": "2"}), "strategic-merge")
    assert "Pod running on node without support for resize" in refused.message
    told = {**running, "resources": {"requests": {"cpu": "1"}}}
    await http.patch(f"{PODS}/p/status", {"status": {"containerStatuses": [told]}}, "merge")
    assert (await http.patch(f"{PODS}/p/resize", wanted(requests={"cpu": "2"}), "strategic-merge")).code == 200
