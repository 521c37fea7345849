"""What administrators and other workloads do to a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from winready.proof.healthy.model import Scene

if TYPE_CHECKING:
    from winready_sandbox.api.policing.hooks import Review

Object = dict[str, Any]
SHOP = "shop"
"""Where workloads of others are."""
WEBHOOK = "pods.policy.example.com"


def taint(scene: Scene, node: str, key: str, value: str, effect: str) -> None:
    """Taint a node."""
    before = scene.api.get("nodes", node)["spec"].get("taints") or []
    added = {"key": key, "value": value, "effect": effect}
    scene.api.patch("nodes", node, {"spec": {"taints": [*before, added]}})


def cordon(scene: Scene, node: str) -> None:
    """Let no more pods onto a node."""
    scene.api.patch("nodes", node, {"spec": {"unschedulable": True}})


def label(scene: Scene, node: str, labels: dict[str, str], annotations: dict[str, str] | None = None) -> None:
    """Label and annotate a node."""
    scene.api.patch("nodes", node, {"metadata": {"labels": labels, "annotations": annotations or {}}})


async def in_every_namespace(scene: Scene, objects: dict[str, Object], delay: float = 1.0) -> None:
    """Write objects, by their plural, into every new namespace a moment after it was made, as policy engines do."""
    async with asyncio.TaskGroup() as writers:
        async for change, namespace in scene.api.watch("namespaces", since=scene.api.list("namespaces")[1]):
            if change == "ADDED":
                writers.create_task(_write(scene, objects, namespace["metadata"]["name"], delay))


async def _write(scene: Scene, objects: dict[str, Object], namespace: str, delay: float) -> None:
    await scene.sandbox.clock.sleep(delay)
    names = [item["metadata"]["name"] for item in scene.api.list("namespaces")[0] if live(item)]
    # What gave up at once is on its way out already.
    for plural, obj in objects.items() if namespace in names else ():
        scene.api.create(plural, obj, namespace)


def live(item: Object) -> bool:
    """Whether nobody has deleted an object."""
    return "deletionTimestamp" not in item["metadata"]


def webhook(scene: Scene, kind: str, review: Review | None, resources: Sequence[str] = ("pods",)) -> None:
    """A webhook of somebody's, behind a service; without an answer, its program is away."""
    if review is not None:
        scene.sandbox.embedded.reviewers.services["policy", "admission"] = review
    service = {"namespace": "policy", "name": "admission", "path": "/review"}
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": list(resources)}
    hook = {
        "name": WEBHOOK,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": service},
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "shop"]}
            ]
        },
        "rules": [rule],
    }
    body = {"metadata": {"name": "policy"}, "webhooks": [hook]}
    scene.api.create(f"{kind}webhookconfigurations", body)


def workload(scene: Scene, name: str, os: str, replicas: int, *, burns: bool = False, **requests: str) -> None:
    """Somebody else's Deployment, spread over the nodes of an OS."""
    command = {"command": ["powershell.exe", "-NoProfile", "-Command", "while ($true) {}"]} if burns else {}
    image = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
    container = {"name": "app", "image": image, "args": ["pause"], "resources": {"requests": requests}, **command}
    if burns:
        del container["args"]
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    spec = {
        "os": {"name": os},
        "nodeSelector": {"kubernetes.io/os": os},
        "containers": [container],
        "topologySpreadConstraints": [spread],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    whole = {"replicas": replicas, "selector": selector, "template": template}
    scene.api.create("deployments", {"metadata": {"name": name}, "spec": whole}, SHOP)


def shop(scene: Scene) -> None:
    """The namespace of somebody else's workloads."""
    scene.api.create("namespaces", {"metadata": {"name": SHOP}})


async def until(scene: Scene, holds: Callable[[], bool], seconds: float = 900.0) -> None:
    """Let cluster time pass until something holds."""
    end = scene.sandbox.clock.now() + seconds
    while not holds():
        if scene.sandbox.clock.now() > end:
            raise RuntimeError("the scene does not become what it should be")
        await scene.sandbox.clock.sleep(1.0)


async def all_ready(scene: Scene) -> None:
    """Wait for everybody's Deployments."""

    def ready() -> bool:
        items, _ = scene.api.list("deployments", SHOP)
        return all((item.get("status") or {}).get("readyReplicas") == item["spec"]["replicas"] for item in items)

    await until(scene, ready)
