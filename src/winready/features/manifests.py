"""Reading manifests: the workloads for Windows in them, and the objects that concern each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from winready.cluster.settings import RUN_LABEL
from winready.lint.context import Facts, Profile
from winready.lint.files import Input, InputError, Inputs
from winready.lint.objects import Object, Pod, dig, everything, known, mapping, pod_of, selects, template_path
from winready.lint.target import Target, decide
from winready.spec import yamlfile
from winready.spec.yamlfile import Map, Path, YamlError

RELATED = (
    "Service",
    "NetworkPolicy",
    "HorizontalPodAutoscaler",
    "ResourceQuota",
    "LimitRange",
    "PersistentVolumeClaim",
)
"""Kinds that concern workloads of their namespace."""
REFERRED = ("ConfigMap", "Secret", "ServiceAccount")
"""Kinds that pods refer to by name."""


class ManifestError(Exception):
    """An input that cannot be used; the message says where, and what is wrong."""


@dataclass(frozen=True)
class Placed:
    """A workload, and where it goes."""

    pod: Pod
    target: Target


@dataclass
class Manifests:
    """Everything in the inputs that workloads for Windows may have to do with."""

    profile: Profile
    inputs: list[Input] = field(default_factory=list)
    windows: list[Placed] = field(default_factory=list)
    others: list[Placed] = field(default_factory=list)
    related: dict[str, list[Object]] = field(default_factory=dict)
    referred: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    """ConfigMaps, Secrets and accounts by kind, namespace and name."""
    ignored: Counter[str] = field(default_factory=Counter)
    empty: list[str] = field(default_factory=list)
    """Workloads without containers, such as patches of an overlay, with their places."""
    notices: list[str] = field(default_factory=list)

    def concerning(self, placed: Placed) -> list[Object]:
        """The objects that concern a workload, in the order of their kinds."""
        near = self._by_namespace.get(placed.pod.object.namespace, ())
        return [each for each in near if concerns(each, placed.pod)]

    def behind(self, service: tuple[str, str]) -> set[str]:
        """The systems of the workloads behind a service, by its namespace and name; empty where it is not known."""
        if service not in self._behind:
            named, sides = self.service(service), {"windows": self.windows, "linux": self.others}
            self._behind[service] = {
                side for side, all in sides.items() if named and any(concerns(named, one.pod) for one in all)
            }
        return self._behind[service]

    def service(self, named: tuple[str, str]) -> Object | None:
        """The service of this namespace and name, if the manifests hold it."""
        near = self._by_namespace.get(named[0], ())
        return next((each for each in near if each.kind == "Service" and each.name == named[1]), None)

    @cached_property
    def _by_namespace(self) -> dict[str, list[Object]]:
        found: dict[str, list[Object]] = {}
        for kind in RELATED:
            for each in self.related.get(kind, ()):
                found.setdefault(each.namespace, []).append(each)
        return found

    @cached_property
    def _behind(self) -> dict[tuple[str, str], set[str]]:
        return {}

    @property
    def seen(self) -> str:
        """What was found instead of a workload for Windows."""
        other = sum(map(len, self.related.values())) + len(self.referred) + self.ignored.total()
        counted = ((len(self.others), "workload", " not for Windows"), (other, "other object", ""))
        parts = [f"{number} {what}{'' if number == 1 else 's'}{more}" for number, what, more in counted if number]
        parts += [f"what has no containers ({', '.join(self.empty)})"] if self.empty else []
        return " and ".join(parts) or "no object of Kubernetes at all"


def read(paths: Sequence[str], profile: Profile, live: Iterable[Input] = ()) -> Manifests:
    """Read files, folders, standard input (``-``) and what a cluster gave; raises `ManifestError`."""
    inputs = Inputs(paths, (), list(live))
    found = Manifests(profile)
    facts = Facts(profile)
    objects: list[Object] = []
    for batch in inputs:
        for one in batch:
            # Read once: standard input has no second time, and what is judged is what was read.
            content = _content(one)
            found.inputs.append(Input(one.path, one.found, content))
            if one.found and (b"kind" not in content or b"apiVersion" not in content):
                continue
            objects += _objects(one.path, content, profile.namespace)
    found.notices += [notice.replace("winready lint -", "winready run --for -") for notice in inputs.notices]
    for object in objects:
        facts.learn(object)
    for object in objects:
        _file(found, facts, object)
    if found.ignored:
        kinds = ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(found.ignored.items()))
        found.notices.append(f"nothing is known about what these rely on: {kinds}")
    if found.empty:
        found.notices.append(f"passed over, since there are no containers: {', '.join(found.empty)}")
    return found


def _content(one: Input) -> bytes:
    try:
        return one.read()
    except InputError as error:
        raise ManifestError(f"{one.path} cannot be read: {error}") from None


def _objects(path: str, content: bytes, namespace: str) -> list[Object]:
    objects: list[Object] = []
    try:
        text = yamlfile.decode(content)
        for document in yamlfile.read(text):
            if isinstance(document, YamlError):
                raise document
            objects += everything(path, document, namespace)
    except YamlError as error:
        hint = "; a Helm template must be rendered first" if b"{{" in content else ""
        raise ManifestError(f"{path}:{error.line}:{error.column}: {error.problem}{hint}") from None
    return objects


def _file(found: Manifests, facts: Facts, object: Object) -> None:
    """Put an object where it is looked for."""
    if RUN_LABEL in mapping(object.value, "metadata", "labels"):
        return  # what a run of ours has on the cluster is nobody's workload
    if object.kind in REFERRED and str(object.value["apiVersion"]) == "v1":
        found.referred[object.kind, object.namespace, object.name] = object
    elif not known(object):
        found.ignored[object.kind] += 1
    elif template_path(object.value) is not None:
        pod = pod_of(object)
        if pod is None or not pod.containers:
            found.empty.append(f"{object.kind} {object.name} at {object.file}:{line_of(object)}")
            return
        target = decide(pod, facts)
        (found.windows if target.windows else found.others).append(Placed(pod, target))
    elif object.kind in RELATED:
        found.related.setdefault(object.kind, []).append(object)


def line_of(object: Object, path: Path = ()) -> int:
    """The line of an object, or of a field of it."""
    document = object.document
    if not path and isinstance(object.value, Map):
        return document.text.position(object.value.start)[0]
    return document.text.position(document.nearest((*object.path, *path)).key)[0]


def concerns(object: Object, pod: Pod) -> bool:
    """Whether an object has to do with the pods of a workload."""
    owner, spec = pod.object, mapping(object.value, "spec")
    if object.namespace != owner.namespace:
        return False
    match object.kind:
        case "Service":
            selector = mapping(spec, "selector")
            return bool(selector) and selects({"matchLabels": selector}, pod.labels)
        case "NetworkPolicy":
            return selects(spec.get("podSelector"), pod.labels)
        case "HorizontalPodAutoscaler":
            target = mapping(spec, "scaleTargetRef")
            return (target.get("kind"), target.get("name")) == (owner.kind, owner.name)
        case "PersistentVolumeClaim":
            return object.name in _claims(pod.spec)
    return True


def _claims(spec: Mapping[str, Any]) -> set[str]:
    volumes = spec.get("volumes")
    found = [dig(volume, "persistentVolumeClaim", "claimName") for volume in volumes or () if volume]
    return {str(name) for name in found if name}
