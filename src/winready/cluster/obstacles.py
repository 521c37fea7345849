"""What in a cluster keeps a run's pods from existing, starting or talking, although nothing is broken."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable

from winready.cluster.client import Client, Object
from winready.cluster.errors import AlreadyExists, ApiError, ClusterError, Conflict, Forbidden, NotFound, Refused
from winready.cluster.failures import CheckBlocked
from winready.cluster.refusals import OURS, Refusal, read_refusal
from winready.cluster.resources import (
    DEPLOYMENTS,
    EVENTS,
    LIMIT_RANGES,
    NETWORK_POLICIES,
    STATEFUL_SETS,
    Resource,
)
from winready.cluster.settings import RUN_LABEL, Settings

ALLOW = "winready-allow"
"""Our own policy, in a namespace that somebody else's policies isolate."""
_IMAGE = re.compile(r'image "([^"]+)"')
_SOON = re.compile(r"error looking up service account .* not found|status unknown for quota")


def passes_soon(error: ApiError) -> bool:
    """Whether a create failed for what a sound cluster gets over by itself: it is new, or others were quicker."""
    if isinstance(error, Conflict):
        return not isinstance(error, AlreadyExists) and "resourcequotas" in error.message
    return isinstance(error, (Forbidden, Refused)) and _SOON.search(error.message) is not None


async def refusal_of(client: Client, namespace: str, what: str, refusal: Refusal) -> CheckBlocked:
    """Why an object could not be created; the words about a limit range do not say which one it was."""
    by = refusal.by
    if "LimitRange" in by:
        with contextlib.suppress(ClusterError):
            names = [item["metadata"]["name"] for item in await client.list(LIMIT_RANGES, namespace)]
            if names:
                by = by.replace("a LimitRange", f"LimitRange {', '.join(names)}")
    return CheckBlocked(
        f"{what} cannot be created in namespace {namespace}: {by} refuses it: {refusal.words}",
        next_step=refusal.next_step,
    )


async def refused_workloads(client: Client, namespace: str, kinds: Collection[Resource]) -> dict[str, Refusal]:
    """Workloads that lack pods because somebody refuses these, by what they are called."""
    found: dict[str, Refusal] = {}
    if DEPLOYMENTS in kinds:
        for item in await client.list(DEPLOYMENTS, namespace):
            for condition in (item.get("status") or {}).get("conditions") or []:
                if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
                    _add(found, f"a pod of Deployment {item['metadata']['name']}", [condition.get("message") or ""])
    if STATEFUL_SETS in kinds:
        for item in await client.list(STATEFUL_SETS, namespace):
            name, status = item["metadata"]["name"], item.get("status") or {}
            if (status.get("replicas") or 0) < item["spec"].get("replicas", 1):
                fields = f"involvedObject.name={name},reason=FailedCreate"
                events = await client.list(EVENTS, namespace, fields=fields)
                _add(found, f"a pod of StatefulSet {name}", [event.get("message") or "" for event in events])
    return found


def _add(found: dict[str, Refusal], what: str, messages: Iterable[str]) -> None:
    for message in messages:
        if refusal := read_refusal(message):
            found[what] = refusal


async def still_pulling(client: Client, namespace: str, pods: Iterable[Object], minutes: float) -> str:
    """Which of these pods waits for an image that is on its way, for people; empty when none does."""
    for raw in pods:
        name = raw["metadata"]["name"]
        events = await client.list(EVENTS, namespace, fields=f"involvedObject.name={name}")
        images = {
            reason: {image for event in events if event.get("reason") in reason for image in _images(event)}
            for reason in (("Pulling",), ("Pulled", "Failed"))
        }
        if coming := sorted(images["Pulling",] - images["Pulled", "Failed"]):
            node = raw["spec"].get("nodeName") or "(none)"
            return f"pod {namespace}/{name} is still pulling image {coming[0]} on node {node} after {minutes:g} minutes"
    return ""


def _images(event: Object) -> list[str]:
    return _IMAGE.findall(event.get("message") or "")


async def open_to_traffic(client: Client, settings: Settings, namespace: str) -> str:
    """Answer policies that others wrote into a namespace with one that allows everything; which policies there are.

    Policies add up: what ours allows is allowed. Where it cannot be made, nothing can be said about the network.
    """
    try:
        policies = await client.list(NETWORK_POLICIES, namespace)
    except (Forbidden, NotFound):
        # Who may not look cannot tell; a cluster without such policies must not suffer from it.
        return ""
    names = [item["metadata"]["name"] for item in policies]
    strangers = ", ".join(name for name in names if name != ALLOW)
    if not strangers or ALLOW in names:
        return strangers
    spec: Object = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{}], "egress": [{}]}
    try:
        await client.create(
            NETWORK_POLICIES, {"metadata": {"name": ALLOW, "labels": settings.labels()}, "spec": spec}, namespace
        )
        await settings.timing.pause(settings.timing.table.policy_settle)
    except AlreadyExists:
        pass
    except (Forbidden, Refused) as error:
        raise CheckBlocked(
            f"NetworkPolicy {strangers} isolates the pods of namespace {namespace}, and one that allows their traffic "
            f"cannot be created: {error.message}",
            next_step=f"keep that policy out of namespaces with the label {OURS}, or let runs create NetworkPolicies",
        ) from None
    return strangers


async def isolated(client: Client, namespaces: Collection[str], *, everywhere: bool = True) -> str:
    """Policies of others in these namespaces that none of ours answers, for people; empty when there are none.

    ``everywhere``: one question for all namespaces of the cluster, which takes the right to ask it.
    """
    places = [None] if everywhere else sorted(namespaces)
    try:
        policies = [item["metadata"] for place in places for item in await client.list(NETWORK_POLICIES, place)]
    except (Forbidden, NotFound):
        return ""
    answered = {each["namespace"] for each in policies if each["name"] == ALLOW}
    # What a check puts into a namespace of its own is what it is about.
    foreign = [each for each in policies if RUN_LABEL not in (each.get("labels") or {})]
    strangers = [each for each in foreign if each["namespace"] in namespaces and each["namespace"] not in answered]
    return ", ".join(sorted(f"{each['namespace']}/{each['name']}" for each in strangers))
