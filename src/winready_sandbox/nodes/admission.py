"""Whether a node takes a pod that was bound to it; what it refuses ends ``Failed`` at once, as on a real node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from winready_sandbox import quantity
from winready_sandbox.nodes import resources
from winready_sandbox.nodes.eviction import critical

Object = dict[str, Any]
NODE_AFFINITY = "NodeAffinity"


@dataclass(frozen=True)
class Refusal:
    """Why a pod may not run here."""

    reason: str
    message: str


NODE_SHUTDOWN = Refusal("NodeShutdown", "Pod was rejected as the node is shutting down.")


def refusal(pod: Object, node: Object, others: Iterable[Object]) -> Refusal | None:
    """The first reason against running the pod beside the others on this node."""
    beside = list(others)
    return (
        _under_pressure(pod, node)
        or _wrong_os(pod, node)
        or _no_match(pod, node)
        or _port_taken(pod, beside)
        or _no_room(pod, node, beside)
    )


def _under_pressure(pod: Object, node: Object) -> Refusal | None:
    """Short of memory, a node takes nobody who promises nothing about the memory he needs."""
    conditions = {item["type"]: item["status"] for item in node["status"].get("conditions") or []}
    if conditions.get("MemoryPressure") != "True" or critical(pod) or resources.qos_class(pod) != "BestEffort":
        return None
    if any(_tolerates_pressure(toleration) for toleration in pod["spec"].get("tolerations") or []):
        return None
    return Refusal("Evicted", "The node had condition: [MemoryPressure]. ")


def _tolerates_pressure(toleration: Object) -> bool:
    right_effect = toleration.get("effect") in (None, "", "NoSchedule")
    key, operator = toleration.get("key"), toleration.get("operator") or "Equal"
    if not key:
        return right_effect and operator == "Exists"
    same_value = operator == "Exists" or not toleration.get("value")
    return right_effect and key == "node.kubernetes.io/memory-pressure" and same_value


def _wrong_os(pod: Object, node: Object) -> Refusal | None:
    wanted = (pod["spec"].get("os") or {}).get("name")
    # A kubelet goes by what it was built for, whatever its node's labels say.
    actual = node["status"]["nodeInfo"]["operatingSystem"]
    if wanted and wanted != actual:
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    selected = (pod["spec"].get("nodeSelector") or {}).get("kubernetes.io/os")
    if selected and selected != actual:
        return Refusal(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    return None


def _no_match(pod: Object, node: Object) -> Refusal | None:
    labels = node["metadata"]["labels"]
    selector = pod["spec"].get("nodeSelector") or {}
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    fits = all(labels.get(key) == value for key, value in selector.items())
    if fits and required:
        fits = any(_term_matches(term, node) for term in required.get("nodeSelectorTerms") or [])
    if not fits:
        return Refusal(
            NODE_AFFINITY, "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        )
    return None


def _term_matches(term: Object, node: Object) -> bool:
    labels = node["metadata"]["labels"]
    fields = {"metadata.name": node["metadata"]["name"]}
    expressions = [(labels, item) for item in term.get("matchExpressions") or []]
    expressions += [(fields, item) for item in term.get("matchFields") or []]
    return bool(expressions) and all(_holds(values, item) for values, item in expressions)


def _holds(values: dict[str, str], expression: Object) -> bool:
    value, wanted = values.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and value.lstrip("-").isdigit() and int(value) > int(wanted[0])
        case "Lt":
            return value is not None and value.lstrip("-").isdigit() and int(value) < int(wanted[0])
    return False


def _port_taken(pod: Object, others: list[Object]) -> Refusal | None:
    taken = [port for other in others for port in _host_ports(other)]
    if any(_clash(mine, theirs) for mine in _host_ports(pod) for theirs in taken):
        words = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
        return Refusal("NodePorts", words)
    return None


def _host_ports(pod: Object) -> list[tuple[int, str, str]]:
    """The node's ports that a pod wants: number, protocol, address (none for any)."""
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports") or []]
    return [
        (port["hostPort"], port.get("protocol") or "TCP", (port.get("hostIP") or "").replace("0.0.0.0", ""))
        for port in ports
        if port.get("hostPort")
    ]


def _clash(mine: tuple[int, str, str], theirs: tuple[int, str, str]) -> bool:
    return mine[:2] == theirs[:2] and (not mine[2] or not theirs[2] or mine[2] == theirs[2])


def _no_room(pod: Object, node: Object, others: list[Object]) -> Refusal | None:
    allocatable = {name: quantity.parse(value) for name, value in node["status"]["allocatable"].items()}
    if len(others) + 1 > allocatable["pods"]:
        return Refusal(
            "OutOfpods",
            f"Node didn't have enough resource: pods, requested: 1, used: {len(others)}, "
            f"capacity: {int(allocatable['pods'])}",
        )
    used = resources.total(others)
    for name, amount in sorted(resources.pod_requests(pod).items()):
        if not amount or name not in allocatable:
            continue
        if used.get(name, Fraction(0)) + amount > allocatable[name]:
            scale = 1000 if name == "cpu" else 1
            return Refusal(
                f"OutOf{name}",
                f"Node didn't have enough resource: {name}, requested: {int(amount * scale)}, "
                f"used: {int(used.get(name, Fraction(0)) * scale)}, capacity: {int(allocatable[name] * scale)}",
            )
    return None
