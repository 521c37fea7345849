"""What faults of the API server, the scheduler and the controllers look like."""

from __future__ import annotations

import asyncio
from functools import partial

from sandbox.faults.bench import IMAGE, NAMESPACE, SHORT, Bench, Object, pod
from sandbox.faults.case import Case
from sandbox.faults.network_cases import service_ip
from winready.cluster.resources import CONFIG_MAPS, DEPLOYMENTS, ENDPOINT_SLICES, NODES, PODS, STATEFUL_SETS

PATH = "/api/v1/nodes/linux-1"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}


async def answers(b: Bench, node: str, token: str = "") -> str:
    """What two dozen calls are answered with; POST, as HTTP clients may repeat a GET by themselves."""
    return ",".join(sorted(await b.statuses(REVIEWS, 24, token=token, body=REVIEW)))


async def answers_to_a_node(b: Bench, node: str) -> str:
    """What two dozen calls of a kubelet are answered with."""
    return await answers(b, node, b.sandbox.control_plane.node_token("linux-1"))


async def race(b: Bench, node: str) -> str:
    """Whether one call is answered before three later ones of a kubelet, one after the other."""
    token = b.sandbox.control_plane.node_token("linux-1")
    call = asyncio.create_task(b.statuses(PATH))
    await asyncio.sleep(0)
    await b.statuses(PATH, 3, token=token)
    place = "first" if call.done() else "last"
    await call
    return place


async def old_watch(b: Bench, node: str) -> str:
    """How a watch from a version of a while ago begins."""
    _, version = await b.client.list_versioned(CONFIG_MAPS, NAMESPACE)
    await b.client.patch(CONFIG_MAPS, "unwatched", {"data": {"n": b.name("n")}}, NAMESPACE)
    for _ in range(30):
        await b.client.get(CONFIG_MAPS, "unwatched", NAMESPACE)
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "1"}
    options = await b.client.transport.options()
    http = b.client.transport.session
    async with http.get(b.client.transport.target.server + path, params=query, **options) as answer:
        line = await answer.content.readline()
    return "expired" if answer.status == 410 or b'"code":410' in line.replace(b" ", b"") else "goes on"


async def pod_os(b: Bench, node: str) -> str:
    """The operating system that a new pod is stored with."""
    stored = await b.client.create(PODS, pod(b.name("dry"), "windows-1"), NAMESPACE, dry_run=True)
    return str(stored["spec"].get("os", {}).get("name", "none"))


async def pod_selector(b: Bench, node: str) -> str:
    """The selector that a new pod is stored with."""
    stored = await b.client.create(PODS, pod(b.name("dry"), "windows-1"), NAMESPACE, dry_run=True)
    return str(stored["spec"]["nodeSelector"]["kubernetes.io/os"])


async def _asks(b: Bench, node: str, requests: Object, *, patience: float = 0.0) -> str:
    """What becomes of a pod that asks for too much, at once or within a while."""
    async with b.pod(node, wait=False, container={"resources": {"requests": requests}}) as made:

        async def seen() -> str:
            found = await b.client.get(PODS, made["metadata"]["name"], NAMESPACE)
            if found["spec"].get("nodeName"):
                return "placed"
            conditions = found.get("status", {}).get("conditions") or []
            return "waits" if any(each.get("reason") == "Unschedulable" for each in conditions) else ""

        async def placed() -> bool:
            return await seen() == "placed"

        answer = str(await b.until(seen))
        return "placed" if patience and await b.until(placed, patience) else answer


async def over_sized(b: Bench, node: str) -> str:
    """What becomes of a pod that asks for more processors than the node has."""
    return await _asks(b, node, {"cpu": "10000"})


async def over_sized_memory(b: Bench, node: str) -> str:
    """What becomes of a pod that asks for more memory than the node has."""
    return await _asks(b, node, {"memory": "100Ti"})


async def over_sized_later(b: Bench, node: str) -> str:
    """What becomes of a pod that asks for more than the node has, after two minutes."""
    return await _asks(b, node, {"cpu": "10000"}, patience=120.0)


async def all_of_it(b: Bench, node: str) -> str:
    """What becomes of a pod that asks for all of a node where a pod has a part already."""
    async with b.pod(node, container={"resources": {"requests": {"cpu": "100m"}}}):
        there = (await b.client.get(NODES, node))["status"]["allocatable"]
        return await _asks(b, node, {"cpu": there["cpu"]})


async def endpoints_under_churn(b: Bench, node: str) -> str:
    """Whether a service follows its pod that left it and came back again and again."""
    name = b.name("churned")
    async with b.pod("linux-1") as made, b.service(name) as service:
        pod, label = made["metadata"]["name"], f"kubernetes.io/service-name={service['metadata']['name']}"

        async def filled(wanted: bool) -> bool:
            slices = await b.client.list(ENDPOINT_SLICES, NAMESPACE, labels=label)
            return any(each.get("endpoints") for each in slices) is wanted

        for number in range(70):
            app = name if number % 2 == 0 else "nobody"
            await b.client.patch(PODS, pod, {"metadata": {"labels": {"app": app}}}, NAMESPACE)
            if not await b.until(partial(filled, app == name), SHORT, pause=0.5):
                return "late"
        return "follows"


def _workload(kind: str) -> Object:
    labels = {"app": f"lost-{kind}"}
    spec: Object = {"nodeSelector": {"kubernetes.io/os": "linux"}, "containers": [{"name": "c", "image": IMAGE}]}
    template = {"metadata": {"labels": labels}, "spec": {**spec, "terminationGracePeriodSeconds": 0}}
    extra = {"serviceName": "none"} if kind == "set" else {}
    return {
        "metadata": {"name": f"lost-{kind}"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template, **extra},
    }


async def _replaced(b: Bench, kind: str) -> str:
    resource = STATEFUL_SETS if kind == "set" else DEPLOYMENTS
    await b.create(resource, _workload(kind))
    try:

        async def living() -> set[str]:
            pods = await b.client.list(PODS, NAMESPACE, labels=f"app=lost-{kind}")
            return {p["metadata"]["name"] + "/" + p["metadata"]["uid"] for p in pods}

        before = await b.until(living)
        assert before
        for each in before:
            await b.client.delete(PODS, each.partition("/")[0], NAMESPACE, grace=0)

        async def others() -> bool:
            return bool(await living() - before)

        return "replaced" if await b.until(others, SHORT) else "lost"
    finally:
        await b.client.delete(resource, f"lost-{kind}", NAMESPACE)

        async def gone() -> bool:
            return await b.client.find(resource, f"lost-{kind}", NAMESPACE) is None and not await living()

        await b.until(gone)


async def deployment(b: Bench, node: str) -> str:
    """Whether a Deployment's pod that was deleted is replaced."""
    return await _replaced(b, "deployment")


async def stateful_set(b: Bench, node: str) -> str:
    """Whether a StatefulSet's pod that was deleted is replaced."""
    return await _replaced(b, "set")


async def endpoints(b: Bench, node: str) -> str:
    """Whether a new service gets endpoints."""
    async with b.service() as made:
        label = f"kubernetes.io/service-name={made['metadata']['name']}"

        async def filled() -> bool:
            slices = await b.client.list(ENDPOINT_SLICES, NAMESPACE, labels=label)
            return any(each.get("endpoints") for each in slices)

        return "some" if await b.until(filled, SHORT) else "none"


async def _token(b: Bench, bound: bool) -> str:
    reference: Object = {}
    if bound:
        uid = (await b.client.get(PODS, "wc-1", NAMESPACE))["metadata"]["uid"]
        reference = {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "wc-1", "uid": uid}}
    body = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": reference}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default/token"
    answer = await b.client.transport.call("POST", path, body=body)
    statuses = await b.statuses(PATH, token=answer.body["status"]["token"])
    return {"{'401'}": "refused", "{'403'}": "accepted"}[str(statuses)]


async def rotated_token(b: Bench, node: str) -> str:
    """Whether the API server knows the owner of a token that was made for a running pod."""
    return await _token(b, True)


async def other_token(b: Bench, node: str) -> str:
    """Whether the API server knows the owner of a token that was made for nobody's pod."""
    return await _token(b, False)


CONTROL_PLANE_CASES = [
    Case("api.slow", race, "first", "last", beside=(answers_to_a_node, "201")),
    Case("api.too-many-requests", answers, "201", "201,429", beside=(answers_to_a_node, "201")),
    Case("api.internal-errors", answers, "201", "201,500", beside=(answers_to_a_node, "201")),
    Case("api.resets", answers, "201", "201,reset", beside=(answers_to_a_node, "201")),
    Case("api.watch-expiry", old_watch, "goes on", "expired", beside=(answers, "201")),
    Case("admission.pod-os-removed", pod_os, "windows", "none", beside=(pod_selector, "windows")),
    Case("scheduler.overcommits-windows", over_sized, "waits", "placed"),
    Case("scheduler.counts-no-memory", over_sized_memory, "waits", "placed"),
    Case("scheduler.counts-no-cpu", over_sized, "waits", "placed"),
    Case("scheduler.counts-pods-alone", all_of_it, "waits", "placed"),
    Case("scheduler.places-later", over_sized_later, "waits", "placed"),
    Case("controllers.endpoints-lag", endpoints_under_churn, "follows", "late", beside=(service_ip, "ls")),
    Case("controllers.replicas-lost", deployment, "replaced", "lost", beside=(stateful_set, "replaced")),
    Case("controllers.endpoints-frozen", endpoints, "some", "none", beside=(service_ip, "ls")),
    Case("tokens.rotated-refused", rotated_token, "accepted", "refused", beside=(other_token, "accepted")),
]
