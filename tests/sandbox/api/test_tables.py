"""What ``kubectl get`` shows: the columns of the real server, for lists, objects and watches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sandbox.api.conftest import Http, config, pod
from winready_sandbox.api.objects import timestamp
from winready_sandbox.api.tables.columns import duration

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PODS = "/api/v1/namespaces/default/pods"


async def shown(http: Http, path: str, **query: str) -> dict[str, Any]:
    """The first row, by column."""
    table = (await http.get(path, accept=TABLE, **query)).body
    assert table["kind"] == "Table"
    return dict(zip([c["name"] for c in table["columnDefinitions"]], table["rows"][0]["cells"], strict=True))


def container(name: str = "c", ready: bool = False, restarts: int = 0, **state: Any) -> dict[str, Any]:
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Pending"}, ("0/1", "Pending", "0")),
        (
            {"phase": "Running", "containerStatuses": [container(ready=False, running={})]},
            ("0/1", "Running", "0"),
        ),
        (
            {"phase": "Running", "containerStatuses": [container(ready=True, running={"startedAt": "x"})]},
            ("1/1", "Running", "0"),
        ),
        (
            {"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ErrImagePull"})]},
            ("0/1", "ErrImagePull", "0"),
        ),
        (
            {"phase": "Succeeded", "containerStatuses": [container(terminated={"reason": "Completed"})]},
            ("0/1", "Completed", "0"),
        ),
        (
            {"phase": "Failed", "containerStatuses": [container(terminated={"exitCode": 3})]},
            ("0/1", "ExitCode:3", "0"),
        ),
        ({"phase": "Failed", "reason": "Evicted"}, ("0/1", "Evicted", "0")),
        (
            {"phase": "Pending", "initContainerStatuses": [container("i", running={"startedAt": "x"})]},
            ("0/1", "Init:0/1", "0"),
        ),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [container("i", restarts=2, waiting={"reason": "CrashLoopBackOff"})],
            },
            ("0/1", "Init:CrashLoopBackOff", "2"),
        ),
        (
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            },
            ("0/1", "SchedulingGated", "0"),
        ),
    ],
)
async def test_the_status_column_of_pods(http: Http, status: dict[str, Any], expected: tuple[str, ...]) -> None:
    body = pod()
    if "initContainerStatuses" in status:
        body["spec"]["initContainers"] = [{"name": "i", "image": "i:1"}]
    http.local.create("pods", body, "default")
    http.local.patch("pods", "p", {"status": status}, "default", subresource="status")
    row = await shown(http, PODS)
    assert (row["Ready"], row["Status"], row["Restarts"]) == expected


async def test_a_pod_that_goes_is_terminating(http: Http) -> None:
    http.local.create("pods", pod(node="n"), "default")
    http.local.delete("pods", "p", "default")
    row = await shown(http, f"{PODS}/p")
    assert (row["Status"], row["Node"], row["IP"]) == ("Terminating", "n", "<none>")


async def test_restarts_say_when(http: Http) -> None:
    http.local.create("pods", pod(), "default")
    ended = (datetime.now(UTC) - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = container(ready=True, restarts=2, running={"startedAt": "x"})
    status["lastState"] = {"terminated": {"finishedAt": ended}}
    http.local.patch("pods", "p", {"status": {"containerStatuses": [status]}}, "default", subresource="status")
    assert (await shown(http, PODS))["Restarts"].startswith("2 (5m")


async def test_wide_columns_have_a_priority(http: Http) -> None:
    table = (await http.get(PODS, accept=TABLE)).body
    wide = {c["name"] for c in table["columnDefinitions"] if c["priority"]}
    assert wide == {"IP", "Node", "Nominated Node", "Readiness Gates"}
    assert table["columnDefinitions"][0]["format"] == "name"


async def test_nodes(http: Http) -> None:
    labels = {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/os": "windows"}
    info = {"kubeletVersion": "v1.36.0", "osImage": "Windows Server 2022 Datacenter", "kernelVersion": "10.0.20348.1"}
    status = {
        "nodeInfo": info,
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.250.0.1"}],
    }
    node = {"metadata": {"name": "w1", "labels": labels}, "spec": {"unschedulable": True}, "status": status}
    http.local.create("nodes", node)
    row = await shown(http, "/api/v1/nodes")
    assert row["Status"] == "Ready,SchedulingDisabled"
    assert row["Roles"] == "control-plane"
    assert (row["Version"], row["Internal-IP"], row["External-IP"]) == ("v1.36.0", "10.250.0.1", "<none>")
    assert row["OS-Image"] == "Windows Server 2022 Datacenter"


async def test_services_and_slices(http: Http) -> None:
    port = {"port": 80, "nodePort": 30080, "protocol": "TCP"}
    spec = {"type": "NodePort", "clusterIP": "10.96.0.9", "ports": [port], "selector": {"app": "a"}}
    http.local.create("services", {"metadata": {"name": "s"}, "spec": spec}, "default")
    row = await shown(http, "/api/v1/namespaces/default/services")
    assert (row["Type"], row["Cluster-IP"], row["External-IP"]) == ("NodePort", "10.96.0.9", "<none>")
    assert (row["Port(s)"], row["Selector"]) == ("80:30080/TCP", "app=a")
    endpoints = [{"addresses": [f"10.244.0.{n}"]} for n in range(1, 6)]
    made = {"metadata": {"name": "s-1"}, "addressType": "IPv4", "ports": [{"port": 80}], "endpoints": endpoints}
    http.local.create("endpointslices", made, "default")
    row = await shown(http, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")
    assert row["Endpoints"] == "10.244.0.1,10.244.0.2,10.244.0.3 + 2 more..."


async def test_workloads(http: Http) -> None:
    inner = {"containers": [{"name": "c", "image": "i:1"}]}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": inner}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    http.local.create("deployments", {"metadata": {"name": "d"}, "spec": spec}, "default")
    status = {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}
    http.local.patch("deployments", "d", {"status": status}, "default", subresource="status")
    row = await shown(http, "/apis/apps/v1/namespaces/default/deployments")
    assert (row["Ready"], row["Up-to-date"], row["Available"]) == ("1/2", "2", "1")
    assert (row["Containers"], row["Images"], row["Selector"]) == ("c", "i:1", "app=a")
    job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": {**inner, "restartPolicy": "Never"}}}}
    http.local.create("jobs", job, "default")
    started = {"startTime": timestamp(-90), "completionTime": timestamp(-60), "succeeded": 1}
    done = {**started, "conditions": [{"type": "Complete", "status": "True"}]}
    http.local.patch("jobs", "j", {"status": done}, "default", subresource="status")
    row = await shown(http, "/apis/batch/v1/namespaces/default/jobs")
    assert (row["Status"], row["Completions"], row["Duration"]) == ("Complete", "1/1", "30s")


async def test_events(http: Http) -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Failed",
        "type": "Warning",
        "message": "no\n",
        "source": {"component": "kubelet", "host": "n1"},
        "lastTimestamp": timestamp(-53 * 3600 - 60),
        "count": 3,
    }
    http.local.create("events", event, "default")
    row = await shown(http, "/api/v1/namespaces/default/events")
    assert (row["Type"], row["Reason"], row["Object"], row["Message"]) == ("Warning", "Failed", "pod/p", "no")
    assert (row["Source"], row["Count"], row["Last Seen"]) == ("kubelet, n1", 3, "2d5h")
    assert (await shown(http, "/apis/events.k8s.io/v1/namespaces/default/events"))["Message"] == "no"


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
async def test_rows_carry_as_much_of_the_object_as_wanted(http: Http, include: str) -> None:
    http.local.create("configmaps", config(a="b"), "default")
    table = (await http.get("/api/v1/configmaps", accept=TABLE, includeObject=include)).body
    row = table["rows"][0]
    assert row["cells"][:2] == ["c", 1]
    kinds = {"None": None, "Metadata": "PartialObjectMetadata", "Object": "ConfigMap"}
    assert row.get("object", {}).get("kind") == kinds[include]


async def test_a_watched_table_has_its_header_once(http: Http) -> None:
    watch = await http.watch(PODS, accept=TABLE)
    http.local.create("pods", pod("a"), "default")
    http.local.create("pods", pod("b"), "default")
    first, second = await watch.next(), await watch.next()
    assert [row["cells"][0] for row in first["object"]["rows"] + second["object"]["rows"]] == ["a", "b"]
    assert first["object"]["columnDefinitions"]
    assert not second["object"]["columnDefinitions"]
    watch.close()


@pytest.mark.parametrize("resource", ["pods", "nodes", "jobs", "events", "persistentvolumes", "clusterroles", "leases"])
async def test_an_empty_object_never_breaks_a_table(http: Http, resource: str) -> None:
    found = http.registry.resources.find(resource)
    group = f"/apis/{found.api_version}" if found.group else "/api/v1"
    metadata = {"name": "x", "creationTimestamp": "2020-01-01T00:00:00Z", "uid": "u"}
    if found.namespaced:
        metadata["namespace"] = "default"
    obj = {"kind": found.kind, "apiVersion": found.api_version, "metadata": metadata}
    http.registry.store.write(found.storage, (metadata.get("namespace", ""), "x"), obj)
    assert (await http.get(f"{group}/{resource}", accept=TABLE)).code == 200


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (3600, "60m"),
        (3 * 3600 + 60, "3h1m"),
        (9 * 3600, "9h"),
        (49 * 3600, "2d1h"),
        (10 * 86400, "10d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_spans_of_time_as_people_read_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text
