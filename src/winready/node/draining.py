"""Taking a node out of use: no new pods, the old ones evicted as their budgets allow, then the Node itself."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from winready.cluster.client import Client, Object
from winready.cluster.errors import ApiError, ClusterError, ConfigError, Conflict, NotFound, ServerTrouble
from winready.cluster.inventory import read_node
from winready.cluster.resources import NODES, PODS

MIRROR = "kubernetes.io/config.mirror"
AT_ONCE = 16
"""Evictions under way at the same time."""
PATIENCE = 5.0
"""Wall seconds after which a budget that refuses is asked again, and said to be in the way."""
PAUSE = 0.5
Fate = Literal["evict", "daemonset", "mirror", "emptydir", "bare"]
Say = Callable[[str], None]


class NotDrainable(ConfigError):
    """Something on the node would be lost, and nobody said that it may be."""


@dataclass
class Drained:
    """What became of the pods of a node, each as ``namespace/name``."""

    evicted: list[str] = field(default_factory=list)
    spared: list[str] = field(default_factory=list)
    """Pods of DaemonSets and static pods, which a drain leaves alone."""
    left: dict[str, str] = field(default_factory=dict)
    """Pods that are still there, and why."""
    cordoned: bool = False
    """Whether it took pods before."""


@dataclass(frozen=True)
class Allowed:
    """What may be lost."""

    emptydir: bool = False
    bare: bool = False


async def find_node(client: Client, name: str) -> Object:
    """The Node of a name; a wrong name is said with the nearest right one."""
    node = await client.find(NODES, name)
    if node is not None:
        return node
    names = [item["metadata"]["name"] for item in await client.list(NODES)]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"nodes: {', '.join(sorted(names)[:10]) or 'none'}"
    raise ConfigError(f"there is no node {name!r}", hint)


async def find_worker(client: Client, name: str) -> Object:
    """The same, and not one of the nodes that the cluster itself may run on."""
    node = await find_node(client, name)
    if (os := read_node(node).os) == "linux":
        raise ConfigError(
            f"node {name} is a {os} node, and 'winready node' is for Windows nodes", "see 'kubectl drain'"
        )
    return node


def fate(pod: Object) -> Fate:
    """What a drain does with a pod, or what somebody has to allow first."""
    metadata, spec = pod["metadata"], pod["spec"]
    if MIRROR in (metadata.get("annotations") or {}):
        return "mirror"
    owner = next((item for item in metadata.get("ownerReferences") or [] if item.get("controller")), None)
    if owner is not None and owner["kind"] == "DaemonSet":
        return "daemonset"
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed") or metadata.get("deletionTimestamp"):
        return "evict"
    if owner is None:
        return "bare"
    return "emptydir" if any("emptyDir" in volume for volume in spec.get("volumes") or []) else "evict"


async def pods_of(client: Client, node: str) -> list[Object]:
    """Every pod that a node has."""
    return await client.list(PODS, fields=f"spec.nodeName={node}")


def to_evict(pods: list[Object], allowed: Allowed) -> list[Object]:
    """The pods that have to go; raises `NotDrainable` when one of them may not."""
    fates = [(pod, fate(pod)) for pod in pods]
    bare = [_name(pod) for pod, what in fates if what == "bare" and not allowed.bare]
    # A bare pod may have such a volume, too.
    local = [
        _name(pod)
        for pod, what in fates
        if (what == "emptydir" or (what == "bare" and _keeps_files(pod))) and not allowed.emptydir
    ]
    if bare:
        raise NotDrainable(
            f"nothing would start these pods anew elsewhere: {_listed(bare)}",
            "--delete-bare-pods deletes them for good",
        )
    if local:
        raise NotDrainable(
            f"what these pods keep in emptyDir volumes would be lost: {_listed(local)}",
            "--delete-emptydir-data lets it be lost",
        )
    return [pod for pod, what in fates if what not in ("daemonset", "mirror")]


async def drain(
    client: Client, name: str, *, allowed: Allowed | None = None, timeout: float, say: Say = lambda line: None
) -> Drained:
    """Cordon a node and evict its pods; nothing changes when one of them may not be evicted."""
    node = await find_worker(client, name)
    pods = await pods_of(client, name)
    going = to_evict(pods, allowed or Allowed())
    result = Drained(spared=sorted(_name(pod) for pod in pods if fate(pod) in ("daemonset", "mirror")))
    if not node["spec"].get("unschedulable"):
        await client.patch(NODES, name, {"spec": {"unschedulable": True}}, kind="strategic")
        result.cordoned = True
        # Whatever came between the first look and now.
        try:
            going = to_evict(await pods_of(client, name), allowed or Allowed())
        except NotDrainable:
            await client.patch(NODES, name, {"spec": {"unschedulable": None}}, kind="strategic")
            raise
        say(f"node {name} takes no new pods")
    end = asyncio.get_running_loop().time() + timeout
    gate = asyncio.Semaphore(AT_ONCE)

    async def send_off(pod: Object) -> None:
        async with gate:
            reason = await _evict(client, pod, end, say)
        if reason:
            result.left[_name(pod)] = reason
        else:
            result.evicted.append(_name(pod))
            say(f"pod {_name(pod)} is gone")

    async with asyncio.TaskGroup() as group:
        for pod in going:
            group.create_task(send_off(pod))
    result.evicted.sort()
    return result


async def _evict(client: Client, pod: Object, end: float, say: Say) -> str:
    """Evict one pod and wait until it is gone; why it is not, else nothing."""
    loop = asyncio.get_running_loop()
    metadata = pod["metadata"]
    namespace, name, uid = metadata["namespace"], metadata["name"], metadata["uid"]
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
    asked, reason = bool(metadata.get("deletionTimestamp")), "it was not asked to go"
    while (left := end - loop.time()) > 0:
        try:
            if not asked:
                path = PODS.path(namespace, name, "eviction")
                await client.transport.call("POST", path, body=body, deadline=min(PATIENCE, left))
                asked = True
            elif (await client.get(PODS, name, namespace))["metadata"]["uid"] != uid:
                return ""
            else:
                reason = "it was evicted and has not ended yet"
                await asyncio.sleep(min(PAUSE, left))
        except NotFound:
            return ""
        except ServerTrouble as error:
            if (why := _refused(error)) != reason:
                say(f"pod {_name(pod)} has to wait: {why}")
            reason = why
        except Conflict:
            # Another pod of this name is not ours to evict.
            return ""
        except ApiError as error:
            # Whoever is refused once by a right or an admission control is refused again.
            return error.message
        except ClusterError as error:
            reason = error.message
    return reason


def _refused(error: ApiError) -> str:
    causes = [str(cause.get("message")) for cause in error.causes if cause.get("reason") == "DisruptionBudget"]
    return "; ".join(causes) or error.message


async def remove(client: Client, name: str, *, force: bool) -> list[str]:
    """Delete a Node that was drained; returns the pods that go with it."""
    node = await find_worker(client, name)
    pods = [pod for pod in await pods_of(client, name) if fate(pod) not in ("daemonset", "mirror")]
    if not force and (pods or not node["spec"].get("unschedulable")):
        why = f"{len(pods)} pods are still on it" if pods else "it still takes pods"
        raise NotDrainable(f"node {name} was not drained: {why}", f"run 'winready node drain {name}' first, or --force")
    if not await client.delete(NODES, name, uid=node["metadata"]["uid"]):
        raise ClusterError(f"node {name} was made anew meanwhile", "look whether its kubelet is still running")
    return sorted(_name(pod) for pod in pods)


def _keeps_files(pod: Object) -> bool:
    return any("emptyDir" in volume for volume in pod["spec"].get("volumes") or [])


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _listed(names: list[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
