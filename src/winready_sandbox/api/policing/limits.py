"""Limit ranges: what containers ask for and get when they say nothing, and the least and the most that they may."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from winready_sandbox.api.errors import forbidden
from winready_sandbox.api.objects import Object
from winready_sandbox.api.registry import Admission, Registry
from winready_sandbox.quantity import canonical, of_bytes, parse

Amounts = dict[str, str]
_SETS = "kubernetes.io/limit-ranger"
_BYTES = ("memory", "ephemeral-storage")


class LimitRanges:
    """Admission of new pods by the limit ranges of their namespace."""

    def __init__(self, registry: Registry) -> None:
        self._bucket = registry.bucket(registry.resources.find("limitranges"))

    def complete(self, admission: Admission) -> None:
        """Give containers the requests and limits that they leave out."""
        told: list[str] = []
        for item in self._items(admission, "Container"):
            for kind, container in _containers(admission.obj):
                told += _fill(kind, container, item)
        if told:
            annotations = admission.obj["metadata"].setdefault("annotations", {})
            annotations[_SETS] = "LimitRanger plugin set: " + "; ".join(dict.fromkeys(told))

    def validate(self, admission: Admission) -> None:
        """Refuse what is outside the bounds."""
        wrong: list[str] = []
        for item in self._items(admission, "Container"):
            for _, container in _containers(admission.obj):
                resources = container.get("resources") or {}
                wrong += _objections(item, "Container", resources.get("requests") or {}, resources.get("limits") or {})
        for item in self._items(admission, "Pod"):
            wrong += _objections(item, "Pod", *_sums(admission.obj))
        if wrong:
            words = list(dict.fromkeys(wrong))
            text = words[0] if len(words) == 1 else f"[{', '.join(words)}]"
            raise forbidden("pods", "", admission.name, text)

    def _items(self, admission: Admission, kind: str) -> Iterator[Object]:
        if admission.operation != "CREATE" or admission.resource.storage != ("", "pods") or not len(self._bucket):
            return
        for entry in self._bucket.select(namespace=admission.namespace):
            yield from (item for item in entry.obj["spec"]["limits"] if item["type"] == kind)


def _containers(pod: Object) -> Iterator[tuple[str, Object]]:
    for container in pod["spec"].get("containers") or ():
        yield "container", container
    for container in pod["spec"].get("initContainers") or ():
        yield "init container", container


def _fill(kind: str, container: Object, item: Object) -> Iterator[str]:
    resources = container.get("resources") or {}
    for what, source in (("requests", "defaultRequest"), ("limits", "default")):
        have: Amounts = resources.get(what) or {}
        missing = {name: value for name, value in (item.get(source) or {}).items() if name not in have}
        if missing:
            resources[what] = {**have, **missing}
            yield f"{', '.join(sorted(missing))} {what[:-1]} for {kind} {container['name']}"
    if resources:
        container["resources"] = resources


def _objections(item: Object, per: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in sorted((item.get("min") or {}).items()):
        words = f"minimum {name} usage per {per} is {canonical(least)}"
        if name not in requests:
            yield f"{words}.  No request is specified"
        elif parse(requests[name]) < parse(least):
            yield f"{words}, but request is {canonical(requests[name])}"
        elif name in limits and parse(limits[name]) < parse(least):
            yield f"{words}, but limit is {canonical(limits[name])}"
    for name, most in sorted((item.get("max") or {}).items()):
        words = f"maximum {name} usage per {per} is {canonical(most)}"
        if name not in limits:
            yield f"{words}.  No limit is specified"
        elif parse(limits[name]) > parse(most):
            yield f"{words}, but limit is {canonical(limits[name])}"
        elif name in requests and parse(requests[name]) > parse(most):
            yield f"{words}, but request is {canonical(requests[name])}"
    for name, most in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        words = f"{name} max limit to request ratio per {per} is {canonical(most)}"
        request, limit = parse(requests.get(name, 0)), parse(limits.get(name, 0))
        if not request or not limit:
            lacking = "request" if not request else "limit"
            yield f"{words}, but no {lacking} is specified or {lacking} is 0"
        elif limit / request > parse(most):
            yield f"{words}, but provided ratio is {float(limit / request):f}"


def _sums(pod: Object) -> tuple[Amounts, Amounts]:
    """What all containers of a pod ask for and may use together."""
    both = []
    for what in ("requests", "limits"):
        total: dict[str, Fraction] = {}
        for container in pod["spec"].get("containers") or ():
            for name, value in ((container.get("resources") or {}).get(what) or {}).items():
                total[name] = total.get(name, Fraction(0)) + parse(value)
        both.append({name: amount_text(name, amount) for name, amount in total.items()})
    return both[0], both[1]


def amount_text(name: str, amount: Fraction) -> str:
    """A sum in the form in which the API server writes it."""
    if name.rpartition(".")[2] in _BYTES and amount.denominator == 1:
        return of_bytes(int(amount))
    return canonical(f"{-(-amount * 1000 // 1)}m")
