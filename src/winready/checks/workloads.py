"""Controllers that checks create: Deployments and StatefulSets of netexec servers on Windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from winready.cluster.client import Object
from winready.cluster.inventory import Node
from winready.cluster.pods import netexec_container, pinned, pod_spec

if TYPE_CHECKING:
    from winready.checks.world import World

HOSTNAME = "kubernetes.io/hostname"


def netexec_deployment(world: World, name: str, replicas: int) -> Object:
    """A Deployment of Windows servers, spread over the judged nodes."""
    return deployment(world, name, replicas, netexec_container(world.settings))


def deployment(world: World, name: str, replicas: int, container: Object) -> Object:
    """A Deployment of Windows pods of one container, spread over the judged nodes."""
    return {"metadata": {"name": name}, "spec": {"replicas": replicas, **_template(world, name, container)}}


def pinned_deployment(world: World, name: str, replicas: int, container: Object, node: Node) -> Object:
    """A Deployment of Windows pods that all belong on one node."""
    made = deployment(world, name, replicas, container)
    template = made["spec"]["template"]
    spec = {key: value for key, value in template["spec"].items() if key != "topologySpreadConstraints"}
    made["spec"]["template"] = {**template, "spec": pinned(spec, node)}
    return made


def netexec_stateful_set(world: World, name: str, replicas: int, service: str) -> Object:
    """A StatefulSet of Windows servers behind a headless service."""
    spec = {
        "replicas": replicas,
        "serviceName": service,
        "podManagementPolicy": "Parallel",
        **_template(world, name, netexec_container(world.settings)),
    }
    return {"metadata": {"name": name}, "spec": spec}


def on_judged_nodes(world: World) -> Object:
    """The affinity of pods that may run on any Windows node that is judged, and on no other."""
    hostnames = [node.labels.get(HOSTNAME, node.name) for node in world.windows_nodes]
    judged = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": hostnames}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [judged]}}}


def _template(world: World, name: str, container: Object) -> Object:
    labels = {"app": name}
    spread: dict[str, Any] = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    spec = pod_spec(
        "windows",
        [container],
        world.settings,
        world.windows_nodes,
        affinity=on_judged_nodes(world),
        topologySpreadConstraints=[spread],
    )
    template = {"metadata": {"labels": {**world.settings.labels(), **labels}}, "spec": spec}
    return {"selector": {"matchLabels": labels}, "template": template}
