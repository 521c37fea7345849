"""Sending pods that name no operating system to Windows nodes, in chosen namespaces only.

Tests that were written for any Linux cluster let the scheduler choose. A MutatingAdmissionPolicy gives their pods the
selector they lack; it ignores its own failures, so that it can harm nobody, and touches no pod that chose its place
itself. Where the API server does not offer such policies, a taint keeps pods off the Linux nodes: that concerns
everybody's new pods, hence only with the operator's word.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from winready.cluster.client import Client, Object, is_discovery
from winready.cluster.errors import ApiError, ClusterError, Conflict, NotFound
from winready.cluster.resources import NAMESPACES, NODES, PODS, Resource
from winready.cluster.settings import RUN_LABEL, Settings

GROUP = "admissionregistration.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")
TAINT = "winready.io/steer"
E2E_NAMESPACES = {"matchExpressions": [{"key": "e2e-run", "operator": "Exists"}]}
WRITES = 20
"""How often a write is tried that others keep overtaking: kubelets and controllers write to nodes all the time."""
Taints = list[dict[str, Any]]
PROBE_IMAGE = "registry.k8s.io/pause:3.10.2"

CONDITIONS = {
    "no-system-named": "!has(object.spec.os)",
    "no-place-chosen": (
        "!has(object.spec.nodeName) && !has(object.spec.affinity) && !(has(object.spec.nodeSelector) && "
        "('kubernetes.io/os' in object.spec.nodeSelector || 'kubernetes.io/hostname' in object.spec.nodeSelector))"
    ),
    "no-host-network": "!(has(object.spec.hostNetwork) && object.spec.hostNetwork)",
}
# A node selector is written as a whole, so no apply configuration may add to it; a patch may.
EXPRESSION = (
    "has(object.spec.nodeSelector) "
    '? [JSONPatch{op: "add", path: "/spec/nodeSelector/kubernetes.io~1os", value: "windows"}] '
    ': [JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"kubernetes.io/os": "windows"}}]'
)


def policies(version: str) -> Resource:
    """The policies in a version of their API."""
    return Resource(f"{GROUP}/{version}", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", namespaced=False)


def bindings(version: str) -> Resource:
    """What puts policies into force."""
    plural = "mutatingadmissionpolicybindings"
    return Resource(f"{GROUP}/{version}", "MutatingAdmissionPolicyBinding", plural, namespaced=False)


async def served_version(client: Client) -> str | None:
    """The newest version of the policy API that discovery shows; None where there is none."""
    for version in VERSIONS:
        try:
            answer = await client.transport.call("GET", f"/apis/{GROUP}/{version}", expected=is_discovery)
        except NotFound:
            continue
        if any(item.get("name") == "mutatingadmissionpolicies" for item in answer.body.get("resources") or []):
            return version
    return None


def selector(namespaces: list[str]) -> Object:
    """Which namespaces are meant: those of e2e.test, or the ones that are named."""
    if not namespaces:
        return E2E_NAMESPACES
    return {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}]}


def policy_objects(name: str, labels: dict[str, str], namespaces: list[str]) -> tuple[Object, Object]:
    """The policy and its binding."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec: Object = {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"namespaceSelector": selector(namespaces), "resourceRules": [rule]},
        "matchConditions": [{"name": key, "expression": text} for key, text in CONDITIONS.items()],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": EXPRESSION}}],
    }
    metadata = {"name": name, "labels": labels}
    return {"metadata": metadata, "spec": spec}, {"metadata": metadata, "spec": {"policyName": name}}


async def apply_policy(client: Client, version: str, name: str, labels: dict[str, str], namespaces: list[str]) -> None:
    """Put the policy into force, or change the one that is there."""
    policy, binding = policy_objects(name, labels, namespaces)
    for resource, obj in ((policies(version), policy), (bindings(version), binding)):
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        await client.patch(resource, name, body, kind="apply", force=True)


async def delete_policy(client: Client, version: str, name: str) -> bool:
    """Remove policy and binding; False when neither was there."""
    gone = [await client.delete(resource, name) for resource in (bindings(version), policies(version))]
    return any(gone)


async def wait_until_steered(client: Client, namespace: str, *, seconds: float) -> str:
    """Wait until a pod that is only tried out in a namespace gets the selector; why it does not, else nothing."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    probe = {
        "metadata": {"name": "steered"},
        "spec": {"containers": [{"name": "main", "image": PROBE_IMAGE}]},
    }
    reason = "pods keep the selectors they have"
    while loop.time() < end:
        try:
            answer = await client.create(PODS, probe, namespace, dry_run=True)
        except ApiError as error:
            # Until its default service account is there, a new namespace refuses pods.
            reason = error.message
        else:
            if (answer["spec"].get("nodeSelector") or {}).get("kubernetes.io/os") == "windows":
                return ""
        await asyncio.sleep(0.2)
    return reason


async def probe_namespace(client: Client, settings: Settings) -> str:
    """A namespace of the run that looks like one of e2e.test, to see whether steering is in force."""
    name = f"winready-{settings.run_id}-steer"
    labels = {**settings.labels(), "e2e-run": f"winready-{settings.run_id}"}
    await client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
    return name


async def taint_linux(client: Client, value: str) -> list[str]:
    """Keep new pods off the Linux nodes; returns the nodes that were tainted."""
    taint = {"key": TAINT, "value": value, "effect": "NoSchedule"}
    nodes = await client.list(NODES, labels="kubernetes.io/os=linux")
    return [
        node["metadata"]["name"]
        for node in nodes
        if await _change_taints(client, node, lambda old: [item for item in old if item["key"] != TAINT] + [taint])
    ]


async def remove_taints(client: Client, value: str | None = None) -> list[str]:
    """Take the taint away again (``None``: whichever run put it there); returns the nodes that had it."""

    def without(old: Taints) -> Taints:
        return [item for item in old if item["key"] != TAINT or (value is not None and item.get("value") != value)]

    nodes = await client.list(NODES)
    return [node["metadata"]["name"] for node in nodes if await _change_taints(client, node, without)]


async def _tainted(client: Client, value: str | None) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in await client.list(NODES)
        for taint in node["spec"].get("taints") or []
        if taint["key"] == TAINT and value in (None, taint.get("value"))
    ]


async def _change_taints(client: Client, node: Object, change: Callable[[Taints], Taints]) -> bool:
    """Write a node's taints, over again while others write to the node too; says whether there was anything to do."""
    name = node["metadata"]["name"]
    for attempt in itertools.count(1):
        old = node["spec"].get("taints") or []
        if (new := change(old)) == old:
            break
        patch = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}, "spec": {"taints": new or None}}
        try:
            await client.patch(NODES, name, patch)
        except Conflict:
            if attempt == WRITES:
                raise
            node = await client.get(NODES, name)
        else:
            return True
    return False


async def leftovers(client: Client, run_id: str | None, *, remove: bool = True) -> list[str]:
    """Remove policies and taints of a run (``None``: of any run), or only look for them; what was there."""
    labels = RUN_LABEL if run_id is None else f"{RUN_LABEL}={run_id}"
    found = []
    version = await served_version(client)
    try:
        for resource in (bindings(version), policies(version)) if version else ():
            for item in await client.list(resource, labels=labels):
                found.append(f"{resource.kind} {item['metadata']['name']}")
                if remove:
                    await client.delete(resource, item["metadata"]["name"])
        tainted = await (remove_taints if remove else _tainted)(client, run_id)
        found += [f"taint {TAINT} of node {name}" for name in tainted]
    except ClusterError as error:
        if not isinstance(error, ApiError) or error.code != 403:
            raise
        # Without the right to see policies or to change nodes no run can have made or tainted one.
    return found
