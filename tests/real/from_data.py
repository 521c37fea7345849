"""Requests made from the lint data: every field of every rule, in every kind that can hold it, with several values.

The types of the API say which values a field can have: empty and filled lists and structures, numbers at their bounds,
texts that are known and texts that are not. Rules that are functions bring the manifests of their own tests.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lint.cases import CASES
from real.api import Call
from real.values import NEIGHBOURS, VALUES, WORDS
from winready.lint.catalog import load
from winready.lint.fields import expand
from winready_sandbox.api.resources import Resource, ResourceTable
from winready_sandbox.api.shapes import Field, Type, type_named, type_of_kind

WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob")
OPERATING_SYSTEMS: dict[str, dict[str, Any]] = {
    "declared": {"os": {"name": "windows"}, "nodeSelector": {"kubernetes.io/os": "windows"}},
    "inferred": {"nodeSelector": {"kubernetes.io/os": "windows"}},
    "linux": {"os": {"name": "linux"}, "nodeSelector": {"kubernetes.io/os": "linux"}},
}
LEVELS: dict[str, dict[str, str]] = {
    "": {},
    "-baseline": {"enforce": "baseline", "warn": "restricted"},
    "-restricted": {"enforce": "restricted", "audit": "baseline"},
    "-pinned": {"enforce": "restricted", "enforce-version": "v1.24"},
    "-warned": {"warn": "restricted", "warn-version": "v1.29", "audit": "restricted"},
}
"""Namespaces by what their name ends with, and their Pod Security labels."""
SEVERAL = 2
"""How many values of a field are tried in every kind; pods get all of them."""
_KINDS = {resource.kind: resource for resource in ResourceTable() if not resource.virtual and resource.kind != "Event"}
_CONTAINER: dict[str, Any] = {"name": "c", "image": "registry.k8s.io/pause:3.10"}


@dataclass(frozen=True)
class Setting:
    """A value for a field that a rule looks at; ``number`` says how many were before it."""

    number: int
    rule: str
    kind: str
    path: str
    steps: tuple[str, ...]
    value: Any


def settings() -> Iterator[Setting]:
    """Every field of every rule, with every value that is tried; each field once, by the first rule that has it."""
    known = set()
    for rule in load().values():
        for place in rule.places:
            if not place.path or (place.kind, place.path) in known:
                continue
            known.add((place.kind, place.path))
            for steps in expand(place.path):
                for number, value in enumerate(_values(_root(place.kind), steps)):
                    yield Setting(number, rule.id, place.kind, place.path, steps, value)


def _root(kind: str) -> Type:
    found = type_of_kind(_KINDS[kind].api_version, kind)
    assert found is not None, kind
    return found


def _values(shape: Type, steps: tuple[str, ...]) -> list[Any]:
    """What to try for the field that the steps lead to."""
    field, owner, inside = _field(shape, steps)
    if field is None:  # of a later version
        return list(WORDS)
    name = f"{owner.short}.{field.name}"
    if inside:
        key = steps[-1] if field.form == "%" else "*"
        return copy.deepcopy(VALUES.get(f"{name}[{key}]") or _single(field.type))
    if name in VALUES:
        return copy.deepcopy(VALUES[name])
    single = _single(field.type)
    if not field.form:
        return copy.deepcopy(single)
    return [[], [single[0]]] if field.form == "*" else [{}, {"a": single[0]}]


def _single(name: str) -> list[Any]:
    if (shape := type_named(name)) is not None:
        return [copy.deepcopy(NEIGHBOURS.get(shape.short, {})), {}]
    plain: dict[str, list[Any]] = {
        "bool": [True, False],
        "int": [1, 0, -1],
        "long": [1, 0, -1, 2**31],
        "Quantity": ["1", "0", "-1"],
        "IntOrString": [80, "http", 0, ""],
    }
    return plain.get(name, list(WORDS))


def _field(shape: Type, steps: tuple[str, ...]) -> tuple[Field | None, Type, bool]:
    """The last field on the way, the struct that has it, and whether the steps lead into its list or map."""
    field: Field | None = None
    owner, inside = shape, True
    for step in steps:
        if field is not None and field.form and not inside:
            inside = True
            continue
        following = shape if field is None else type_named(field.type)
        if following is None or step not in following.names:
            return None, owner, False
        owner, field, inside = following, following.names[step], False
    return field, owner, inside


def placed(shape: Type, document: Any, steps: tuple[str, ...], value: Any) -> None:
    """Set a field, with what every structure on the way must have."""
    step, *rest = steps
    if step == "[*]":
        if not document:
            document.append({})
        if not rest:
            document[0] = value
            return
        document[0] = {**copy.deepcopy(NEIGHBOURS.get(shape.short, {})), **document[0]}
        placed(shape, document[0], tuple(rest), value)
        return
    key = step.replace("*", "c" if "apparmor" in step else "2Mi")
    if not rest:
        document[key] = value
        return
    field = shape.names.get(step)
    following = shape if field is None else type_named(field.type) or shape
    if rest[0] == "[*]":
        document.setdefault(key, [])
    elif key not in document:
        plain = field is None or field.form == "%"
        document[key] = {} if plain else copy.deepcopy(NEIGHBOURS.get(following.short, {}))
    placed(following, document[key], tuple(rest), value)


def pod(spec: dict[str, Any], metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """A pod around a spec."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **(metadata or {})}, "spec": spec}


def wrapped(kind: str, one: dict[str, Any]) -> dict[str, Any]:
    """A workload whose template is a pod."""
    metadata = {**one["metadata"], "labels": {**one["metadata"].get("labels", {}), "app": "x"}}
    metadata.pop("name", None)
    spec = copy.deepcopy(one["spec"])
    body: dict[str, Any] = {"template": {"metadata": metadata, "spec": spec}}
    if kind in ("Job", "CronJob"):
        spec.setdefault("restartPolicy", "Never")
    else:
        body["selector"] = {"matchLabels": {"app": "x"}}
    if kind == "StatefulSet":
        body["serviceName"] = "s"
    if kind == "CronJob":
        body = {"schedule": "@daily", "jobTemplate": {"spec": body}}
    return {"apiVersion": _KINDS[kind].api_version, "kind": kind, "metadata": {"name": "w"}, "spec": body}


def create(document: dict[str, Any], level: str = "") -> Call:
    """The dry run that would make an object."""
    resource: Resource = _KINDS[document["kind"]]
    path = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    path += f"/namespaces/NAMESPACE{level}/{resource.plural}" if resource.namespaced else f"/{resource.plural}"
    return Call("POST", f"{path}?dryRun=All", document)


def of_fields() -> Iterator[Call]:
    """Requests for the fields that rules look at."""
    for setting in settings():
        if setting.kind != "Pod":
            document = other(setting.kind)
            placed(_root(setting.kind), document, setting.steps, setting.value)
            yield create(document)
            continue
        for system, base in OPERATING_SYSTEMS.items():
            one = windows_pod(base)
            placed(_root("Pod"), one, setting.steps, setting.value)
            complete(one["spec"])
            yield create(one)
            inner = setting.steps[:2] in (("spec", "ephemeralContainers"), ("spec", "initContainers"))
            if system == "linux" or inner or setting.number >= SEVERAL:
                continue
            yield from (create(wrapped(kind, one)) for kind in WORKLOADS)
            if setting.number == 0:
                yield from (create(one, level) for level in LEVELS if level)
                yield create(wrapped("Deployment", one), "-warned")


def windows_pod(base: dict[str, Any]) -> dict[str, Any]:
    """The smallest pod that goes to an operating system."""
    return pod({"containers": [dict(_CONTAINER)], **copy.deepcopy(base)})


def complete(spec: dict[str, Any]) -> None:
    """What the API server wants beside a field: volumes for mounts, names of containers."""
    names = {volume.get("name") for volume in spec.get("volumes", [])}
    for kind in ("initContainers", "ephemeralContainers"):
        for number, container in enumerate(spec.get(kind, [])):
            container |= {"name": f"{kind[0]}{number}", "image": container.get("image", _CONTAINER["image"])}
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(kind, []):
            for mount in (*container.get("volumeMounts", []), *container.get("volumeDevices", [])):
                if mount.get("name") and mount["name"] not in names:
                    names.add(mount["name"])
                    spec.setdefault("volumes", []).append({"name": mount["name"], "emptyDir": {}})


def other(kind: str) -> dict[str, Any]:
    """The smallest object of another kind."""
    document = {"apiVersion": _KINDS[kind].api_version, "kind": kind, "metadata": {"name": "o"}}
    return {**document, **copy.deepcopy(NEIGHBOURS[kind])}


def of_cases() -> Iterator[Call]:
    """Requests from the manifests that trigger a rule and those that do not."""
    for case in CASES.values():
        for given in (case.bad, *case.good):
            for document in given if isinstance(given, list) else [given]:
                if not isinstance(document, dict) or document.get("kind") not in _KINDS:
                    continue
                if document["apiVersion"] != _KINDS[document["kind"]].api_version:
                    continue
                document = json.loads(json.dumps(document))
                document["metadata"].pop("namespace", None)
                yield create(document)
                if document["kind"] == "Pod" and given is case.bad:
                    yield create(document, "-restricted")
                    yield from (create(wrapped(kind, document)) for kind in WORKLOADS)


def requests() -> list[Call]:
    """All of them, each once."""
    found: dict[str, Call] = {}
    for call in (*of_fields(), *of_cases()):
        found.setdefault(f"{call.path} {json.dumps(call.body, sort_keys=True)}", call)
    return list(found.values())
