"""Autoscalers are one kind in two versions: what one of them has no field for is kept for the other."""

from __future__ import annotations

import json

from sandbox.api.conftest import Http

V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}


async def test_both_versions_are_served_and_the_newer_is_preferred(http: Http) -> None:
    groups = {group["name"]: group for group in (await http.get("/apis")).body["groups"]}
    versions = [version["version"] for version in groups["autoscaling"]["versions"]]
    assert (versions, groups["autoscaling"]["preferredVersion"]["version"]) == (["v2", "v1"], "v2")


async def test_what_is_written_in_one_version_is_read_in_the_other(http: Http) -> None:
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    made = await http.post(V1, {"apiVersion": "autoscaling/v1", "metadata": {"name": "a"}, "spec": spec})
    assert made.code == 201
    assert made.body["apiVersion"] == "autoscaling/v1"
    assert made.body["spec"] == {**spec, "minReplicas": 1}
    newer = (await http.get(f"{V2}/a")).body
    assert (newer["apiVersion"], newer["spec"]["metrics"]) == ("autoscaling/v2", [CPU])
    patched = await http.patch(f"{V1}/a", {"spec": {"targetCPUUtilizationPercentage": 60}})
    assert patched.body["spec"]["targetCPUUtilizationPercentage"] == 60
    newer = (await http.get(f"{V2}/a")).body
    assert newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 60


async def test_other_metrics_and_behaviour_are_annotations_in_the_older_version(http: Http) -> None:
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": [MEMORY, CPU], "behavior": behavior}
    await http.post(V2, {"apiVersion": "autoscaling/v2", "metadata": {"name": "a"}, "spec": spec})
    older = (await http.get(f"{V1}/a")).body
    noted = older["metadata"]["annotations"]
    assert older["spec"]["targetCPUUtilizationPercentage"] == 50
    assert json.loads(noted["autoscaling.alpha.kubernetes.io/metrics"]) == [MEMORY]
    assert (
        json.loads(noted["autoscaling.alpha.kubernetes.io/behavior"])["scaleDown"]["stabilizationWindowSeconds"] == 60
    )
    older["spec"]["maxReplicas"] = 5
    written = await http.put(f"{V1}/a", older)
    assert written.code == 200
    newer = (await http.get(f"{V2}/a")).body
    assert newer["spec"]["maxReplicas"] == 5
    assert newer["spec"]["metrics"] == [CPU, MEMORY]
    assert "annotations" not in newer["metadata"]


async def test_lists_and_refusals_are_in_the_version_that_was_asked(http: Http) -> None:
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 3}
    await http.post(V2, {"apiVersion": "autoscaling/v2", "metadata": {"name": "a"}, "spec": spec})
    listed = (await http.get(V1)).body
    assert (listed["apiVersion"], listed["items"][0]["spec"]["targetCPUUtilizationPercentage"]) == (
        "autoscaling/v1",
        80,
    )
    wrong = await http.post(V1, {"metadata": {"name": "b"}, "spec": {**spec, "maxReplicas": 0}})
    assert (wrong.code, wrong.body["details"]["causes"][0]["field"]) == (422, "spec.maxReplicas")
