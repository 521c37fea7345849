"""Objects on the cluster that are ours: put there by server-side apply, compared, and removed, no others touched."""

from __future__ import annotations

import asyncio

from winready.cluster.applying import Applier, Difference, removal, title
from winready.cluster.client import Client, Object
from winready.cluster.errors import ClusterError, ConfigError, NotFound
from winready.cluster.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    Resource,
)
from winready.node.addons import LABELS, NAMESPACE
from winready.node.policy import GROUP

MANAGER = "winready-node"
POLICIES = Resource(f"{GROUP}/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(
    f"{GROUP}/v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)
KINDS = {
    resource.kind: resource
    for resource in (
        BINDINGS,
        POLICIES,
        DAEMON_SETS,
        CONFIG_MAPS,
        CLUSTER_ROLE_BINDINGS,
        CLUSTER_ROLES,
        SERVICE_ACCOUNTS,
        NAMESPACES,
    )
}
"""Every kind of object that is ever ours, in the order in which they can go."""
PATIENCE, PAUSE = 120.0, 0.5
EVERYWHERE = ("kube-root-ca.crt", "default")
"""Names of what Kubernetes itself puts into every namespace."""


async def apply(client: Client, wanted: list[Object], *, force: bool = False) -> list[Difference]:
    """Make the cluster have these objects and no other ones of ours; an object that fits is not written."""
    # All are tried out first: what is refused is refused before anything has changed.
    await differences(client, wanted, force=force)
    done = await _applier(client).apply(wanted, force=force)
    for obj in await surplus(client, wanted):
        await _delete(client, obj)
        done.append(Difference("removed", title(obj)))
    return done


async def rolled_out(client: Client, wanted: list[Object], *, patience: float) -> list[str]:
    """Wait until every node runs what was applied and nothing older; what is not so after the time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + patience
    names = [obj["metadata"]["name"] for obj in wanted if obj["kind"] == "DaemonSet"]
    while True:
        left = [text for name in names if (text := _unfinished(await client.get(DAEMON_SETS, name, NAMESPACE)))]
        if not left or loop.time() >= end:
            return left
        await asyncio.sleep(min(PAUSE, max(end - loop.time(), 0)))


def _unfinished(daemon_set: Object) -> str:
    status, name = daemon_set.get("status") or {}, title({"kind": "DaemonSet", **daemon_set})
    if status.get("observedGeneration", 0) < daemon_set["metadata"]["generation"]:
        return f"{name}: its controller has not seen it yet"
    nodes = status.get("desiredNumberScheduled", 0)
    new, ready = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
    return "" if new >= nodes and ready >= nodes else f"{name}: new on {new}, available on {ready} of {nodes} nodes"


async def differences(client: Client, wanted: list[Object], *, force: bool = False) -> list[Difference]:
    """What an apply would change, asked of the API server itself; nothing is changed."""
    found = await _applier(client).differences(wanted, force=force)
    return found + [removal(obj) for obj in await surplus(client, wanted)]


async def delete(client: Client, *, patience: float = PATIENCE) -> list[Difference]:
    """Remove everything that is ours and wait until it is gone; the namespace stays when others use it, too."""
    done, kept = [], set()
    for obj in await surplus(client, []):
        if obj["kind"] == "Namespace" and (others := await _foreign(client)):
            done.append(Difference("kept", title(obj), tuple(others)))
            kept.add(title(obj))
            continue
        await _delete(client, obj)
        done.append(Difference("removed", title(obj)))
    loop = asyncio.get_running_loop()
    end = loop.time() + patience
    while left := [title(obj) for obj in await surplus(client, []) if title(obj) not in kept]:
        if loop.time() >= end:
            raise ClusterError(f"{left[0]} is still going after {patience:g} s", "look at what its finalizers wait for")
        await asyncio.sleep(PAUSE)
    return done


async def _foreign(client: Client) -> list[str]:
    """What others keep in our namespace."""
    found = []
    for resource in (CONFIG_MAPS, SERVICE_ACCOUNTS, DAEMON_SETS, DEPLOYMENTS, STATEFUL_SETS, PODS):
        for item in await client.list(resource, NAMESPACE):
            name, owners = item["metadata"]["name"], item["metadata"].get("ownerReferences")
            if name not in EVERYWHERE and not owners and not _ours(item):
                found.append(title(item))
    return found


async def surplus(client: Client, wanted: list[Object]) -> list[Object]:
    """Objects of ours on the cluster that are not among these, in the order in which they can go."""
    keep = {title(obj) for obj in wanted}
    labels = ",".join(f"{key}={value}" for key, value in LABELS.items())
    found = []
    for resource in KINDS.values():
        try:
            items = await client.list(resource, NAMESPACE if resource.namespaced else None, labels=labels)
        except NotFound:
            # Older API servers have no such policies.
            continue
        found += [item for item in items if _ours(item) and title(item) not in keep]
    return found


def _ours(obj: Object) -> bool:
    """Labels can be copied; who applied an object is written by the API server."""
    return any(
        entry.get("manager") == MANAGER and entry.get("operation") == "Apply"
        for entry in obj["metadata"].get("managedFields") or []
    )


async def check_alone(client: Client, wanted: list[Object]) -> None:
    """Refuse where somebody else brings the same to Windows nodes: two service proxies undo each other's work."""
    kinds = {obj["metadata"]["name"] for obj in wanted if obj["kind"] == "DaemonSet"}
    for daemon_set in await client.list(DAEMON_SETS):
        metadata, pod = daemon_set["metadata"], daemon_set["spec"]["template"]["spec"]
        if metadata["namespace"] == NAMESPACE or not _windows(pod):
            continue
        programs = " ".join([metadata["name"], *(item["image"] for item in pod["containers"])]).lower()
        networks = ("flannel", "calico", "antrea", "cilium", "ovn")
        rival = "kube-proxy" if "kube-proxy" in programs else next((n for n in networks if n in programs), "")
        if rival and ("kube-proxy" if rival == "kube-proxy" else "flannel") in kinds:
            what = "kube-proxy" if rival == "kube-proxy" else f"a pod network ({rival})"
            raise ConfigError(
                f"DaemonSet {metadata['namespace']}/{metadata['name']} brings {what} to Windows nodes already",
                "remove that one first"
                + ("" if rival == "kube-proxy" else ", or choose --cni none and --network-name"),
            )


def _windows(pod: Object) -> bool:
    selector = pod.get("nodeSelector") or {}
    if selector.get("kubernetes.io/os") == "windows" or (pod.get("os") or {}).get("name") == "windows":
        return True
    options = (pod.get("securityContext") or {}).get("windowsOptions") or {}
    return bool(options.get("hostProcess"))


def _applier(client: Client) -> Applier:
    return Applier(client, KINDS, MANAGER)


async def _delete(client: Client, obj: Object) -> None:
    metadata = obj["metadata"]
    await client.delete(KINDS[obj["kind"]], metadata["name"], metadata.get("namespace"), uid=metadata["uid"])
