"""What ``--try`` starts of a workload: its own pod template, and copies of what it refers to.

Nothing that outlives the run is touched: claims become empty folders, the account is one without rights, and nobody is
preempted. What was changed is said, since the pod is then not quite the one that the workload would have.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from winready.cluster.client import Client
from winready.cluster.errors import ApiError
from winready.cluster.resources import CONFIG_MAPS, SECRETS, Resource
from winready.engine.trying import Attempt
from winready.engine.workloads import Workload
from winready.features.manifests import Manifests
from winready.lint.fields import CONTAINER_LISTS
from winready.lint.objects import Object, Pod, dig, items, mapping

RESOURCES: Mapping[str, Resource] = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}
EMPTIED = ("persistentVolumeClaim", "ephemeral", "csi")
"""Volumes that would outlive the run, or belong to somebody."""

Reference = tuple[str, str, bool]
"""A kind, a name, and whether the pod starts without it."""


async def copy_live(client: Client, manifests: Manifests) -> None:
    """Read what live workloads refer to, and nothing else; what may not be read is missing then."""
    for placed in manifests.windows:
        namespace = placed.pod.object.namespace
        for kind, name, _ in references(placed.pod):
            if (kind, namespace, name) in manifests.referred:
                continue
            try:
                found = await client.find(RESOURCES[kind], name, namespace)
            except ApiError:
                continue
            if found is not None:
                value = {"apiVersion": "v1", "kind": kind, **found}
                document = placed.pod.object.document
                manifests.referred[kind, namespace, name] = Object("live", document, (), value, namespace)


def attempts(manifests: Manifests, workloads: Sequence[Workload]) -> list[Attempt]:
    """What to start of each workload."""
    return [_attempt(manifests, placed.pod, each) for placed, each in zip(manifests.windows, workloads, strict=True)]


def _attempt(manifests: Manifests, pod: Pod, workload: Workload) -> Attempt:
    objects: list[tuple[Resource, dict[str, Any]]] = []
    missing: list[str] = []
    secrets: list[str] = []
    for kind, name, optional in references(pod):
        found = manifests.referred.get((kind, pod.object.namespace, name))
        if found is not None:
            objects.append((RESOURCES[kind], _copied(found)))
            secrets += _values(found.value) if kind == "Secret" else ()
        elif not optional:
            missing.append(f"{kind} {name}")
    template, changed = _template(pod)
    return Attempt(workload, template, tuple(objects), tuple(missing), tuple(changed), tuple(secrets))


def references(pod: Pod) -> list[Reference]:
    """The ConfigMaps and Secrets that a pod cannot start without, or would use."""
    found: dict[tuple[str, str], bool] = {}
    for kind, source, name in _sources(pod):
        if isinstance(named := dig(source, name), str) and named:
            optional = dig(source, "optional") is True
            found[kind, named] = found.get((kind, named), True) and optional
    return [(kind, name, optional) for (kind, name), optional in found.items()]


def _sources(pod: Pod) -> Iterator[tuple[str, Any, str]]:
    for container in pod.containers:
        for variable in items(container.value, "env"):
            yield "ConfigMap", dig(variable, "valueFrom", "configMapKeyRef"), "name"
            yield "Secret", dig(variable, "valueFrom", "secretKeyRef"), "name"
        for source in items(container.value, "envFrom"):
            yield "ConfigMap", dig(source, "configMapRef"), "name"
            yield "Secret", dig(source, "secretRef"), "name"
    for volume in items(pod.spec, "volumes"):
        yield "ConfigMap", dig(volume, "configMap"), "name"
        yield "Secret", dig(volume, "secret"), "secretName"
        for source in items(volume, "projected", "sources"):
            yield "ConfigMap", dig(source, "configMap"), "name"
            yield "Secret", dig(source, "secret"), "name"
    for secret in items(pod.spec, "imagePullSecrets"):
        # The kubelet goes on without one; whether the image can be had then is what the pull tells.
        yield "Secret", {**mapping(secret), "optional": True}, "name"


def _copied(object: Object) -> dict[str, Any]:
    content = {
        name: object.value[name] for name in ("data", "binaryData", "stringData", "type") if name in object.value
    }
    return {"metadata": {"name": object.name}, **deepcopy(content)}


def _values(secret: Mapping[str, Any]) -> Iterator[str]:
    """The values of a Secret in every form in which something might repeat them."""
    plain = [str(value) for value in mapping(secret, "stringData").values()]
    for value in mapping(secret, "data").values():
        yield str(value)
        try:
            plain.append(base64.b64decode(str(value)).decode())
        except ValueError:
            continue
    for value in plain:
        for line in {value, *value.splitlines()}:
            yield line
            yield json.dumps(line)[1:-1]
            yield base64.b64encode(line.encode()).decode()


def _template(pod: Pod) -> tuple[dict[str, Any], list[str]]:
    """The template as it is started, and how it differs from what the workload has."""
    template: dict[str, Any] = _plain(pod.template)
    spec, changed = template["spec"], list[str]()
    claims = [str(dig(each, "metadata", "name")) for each in items(pod.object.value, "spec", "volumeClaimTemplates")]
    volumes = [*(spec.get("volumes") or []), *({"name": name, EMPTIED[0]: {}} for name in claims)]
    for volume in volumes:
        for source in EMPTIED:
            if volume.pop(source, None) is not None:
                volume["emptyDir"] = {}
                changed.append(f"volume {volume.get('name')} is an empty folder")
    if volumes:
        spec["volumes"] = volumes
    for name in ("nodeName", "priorityClassName", "priority", "preemptionPolicy"):
        if spec.pop(name, None) is not None:
            changed.append(f"without {name}")
    account = spec.pop("serviceAccountName", None) or spec.pop("serviceAccount", None)
    if account not in (None, "default"):
        changed.append(f"as the account default, which has no rights, instead of {account}")
    else:
        spec["automountServiceAccountToken"] = False
    for containers in CONTAINER_LISTS:
        for container in spec.get(containers) or []:
            for port in container.get("ports") or []:
                if not pod.host_process and port.pop("hostPort", None) is not None:
                    changed.append(f"without hostPort {port.get('containerPort')}")
    spec.pop("ephemeralContainers", None)
    return template, changed


def _plain(value: Any) -> Any:
    """Plain dicts and lists, apart from the ones that know where they stood."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
