"""Resource quotas: how much of what a namespace may have, counted in what it has.

Quotas with scopes count nothing here.
"""

from __future__ import annotations

from fractions import Fraction

from winready_sandbox.api.errors import forbidden, qualified
from winready_sandbox.api.objects import Object
from winready_sandbox.api.policing.limits import amount_text
from winready_sandbox.api.registry import Admission, Registry
from winready_sandbox.api.resources import Resource
from winready_sandbox.api.store import Entry
from winready_sandbox.quantity import canonical, parse

Usage = dict[str, Fraction]
_SHORT = (
    "pods",
    "services",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
)
"""Kinds that a quota counts by their plain name."""
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_OVER = ("Succeeded", "Failed")


class Quotas:
    """Admission of new objects by the quotas of their namespace."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._resource = registry.resources.find("resourcequotas")
        self._bucket = registry.bucket(self._resource)

    def validate(self, admission: Admission) -> None:
        """Refuse what does not fit any more, and pods that do not say how much they need of what is counted."""
        if admission.operation != "CREATE" or admission.subresource or not len(self._bucket):
            return
        resource = admission.resource
        asked = _usage(resource, admission.obj)
        for quota in self._quotas(admission.namespace):
            hard = quota["spec"].get("hard") or {}
            if resource.storage == ("", "pods") and (silent := _silent(admission.obj, hard)):
                detail = f"failed quota: {quota['metadata']['name']}: must specify {silent}"
                raise forbidden(resource.plural, resource.group, admission.name, detail)
            concerned = sorted(name for name in hard if asked.get(name))
            if not concerned:
                continue
            used = self._used(admission.namespace, hard)
            over = [name for name in concerned if used[name] + asked[name] > parse(hard[name])]
            if over:
                lists = (
                    f"requested: {_listed(over, asked)}",
                    f"used: {_listed(over, used)}",
                    "limited: " + ",".join(f"{name}={canonical(hard[name])}" for name in over),
                )
                detail = f"exceeded quota: {quota['metadata']['name']}, {', '.join(lists)}"
                raise forbidden(resource.plural, resource.group, admission.name, detail)

    def committed(self, resource: Resource, entry: Entry, gone: bool) -> None:
        """Keep the status of the quotas of a namespace as things come and go in it."""
        if not len(self._bucket) or (resource.storage == ("", "resourcequotas") and gone):
            return
        asked = _usage(resource, entry.obj)
        for quota in self._quotas(entry.key[0]):
            hard = quota["spec"].get("hard") or {}
            if resource.storage != ("", "resourcequotas") and not set(hard) & set(asked):
                continue
            used = {name: amount_text(name, amount) for name, amount in self._used(entry.key[0], hard).items()}
            status = {"hard": {name: canonical(value) for name, value in hard.items()}, "used": used}
            if quota.get("status") != status:
                name = quota["metadata"]["name"]
                patch = {"status": status}
                self._registry.patch(self._resource, name, patch, entry.key[0], kind="merge", subresource="status")

    def _quotas(self, namespace: str) -> list[Object]:
        found = [entry.obj for entry in self._bucket.select(namespace=namespace)] if namespace else []
        return [quota for quota in found if not quota["spec"].get("scopes") and not quota["spec"].get("scopeSelector")]

    def _used(self, namespace: str, hard: Object) -> Usage:
        used = dict.fromkeys(hard, Fraction(0))
        for resource in self._registry.resources:
            if not resource.namespaced or not set(_usage(resource, {})) & set(hard):
                continue
            for entry in self._registry.bucket(resource).select(namespace=namespace):
                for name, amount in _usage(resource, entry.obj).items():
                    if name in used:
                        used[name] += amount
        return used


def _usage(resource: Resource, obj: Object) -> Usage:
    """What an object counts for; of an empty one, everything that such objects could count for."""
    if resource.storage == ("", "pods") and (obj.get("status") or {}).get("phase") in _OVER:
        return {}
    usage = {f"count/{qualified(resource.plural, resource.group)}": Fraction(1)}
    if not resource.group and resource.plural in _SHORT:
        usage[resource.plural] = Fraction(1)
    if resource.storage == ("", "pods"):
        usage |= _compute(obj)
    if resource.storage == ("", "services"):
        spec = obj.get("spec") or {}
        exposed = spec.get("type") in ("NodePort", "LoadBalancer")
        usage["services.nodeports"] = Fraction(len(spec.get("ports") or ()) if exposed else 0)
        usage["services.loadbalancers"] = Fraction(spec.get("type") == "LoadBalancer")
    return usage


def _compute(pod: Object) -> Usage:
    usage = {f"{prefix}{name}": Fraction(0) for name in _COMPUTE for prefix in ("requests.", "limits.", "")}
    for container in (pod.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        for what in ("requests", "limits"):
            for name, value in (resources.get(what) or {}).items():
                if name in _COMPUTE:
                    usage[f"{what}.{name}"] += parse(value)
                    if what == "requests":
                        usage[name] += parse(value)
    return usage


def _silent(pod: Object, hard: Object) -> str:
    """What containers of a pod do not say although a quota counts it."""
    lacking = []
    for counted in sorted(hard):
        what, _, name = counted.rpartition(".")
        what = what or "requests"
        if name not in ("cpu", "memory") or what not in ("requests", "limits"):
            continue
        silent = [
            container["name"]
            for container in pod["spec"].get("containers") or ()
            if name not in ((container.get("resources") or {}).get(what) or {})
        ]
        if silent:
            lacking.append(f"{counted} for: {','.join(sorted(silent))}")
    return "; ".join(lacking)


def _listed(names: list[str], amounts: Usage) -> str:
    return ",".join(f"{name}={amount_text(name, amounts[name])}" for name in names)
