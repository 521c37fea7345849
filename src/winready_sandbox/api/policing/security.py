"""Pod Security: which pods a namespace takes, by the levels that its labels state, or else by those of the cluster.

Levels are enforced on pods. Workloads are only warned of what their pods will meet, and a namespace whose level is
raised of the pods that it already has. What an audit log would hold is nowhere, as there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from winready_sandbox.api.errors import FieldError, forbidden, invalid, unprocessable
from winready_sandbox.api.objects import Object
from winready_sandbox.api.policing.standards import LEVELS, reasons, violations, words
from winready_sandbox.api.registry import Admission, Registry
from winready_sandbox.api.strategy import pod_in
from winready_sandbox.versions import minor_of_label

PREFIX = "pod-security.kubernetes.io/"
EXEMPT = ("kube-system",)
"""What administrators leave out when they set a level for the cluster."""
_MODES = ("enforce", "audit", "warn")
_LATEST = 10**6
_IGNORED = ("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status")
_MOST_PODS = 3000


@dataclass(frozen=True)
class Level:
    """A level as it was in a version."""

    name: str = "privileged"
    minor: int = _LATEST

    def __str__(self) -> str:
        return f"{self.name}:{'latest' if self.minor == _LATEST else f'v1.{self.minor}'}"


@dataclass(frozen=True)
class Policy:
    """The levels of the three modes."""

    enforce: Level = Level()
    audit: Level = Level()
    warn: Level = Level()


@dataclass(frozen=True)
class Configuration:
    """What the administrator of a cluster says: the levels of namespaces without labels, and who is left out."""

    defaults: Policy = field(default_factory=Policy)
    namespaces: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    runtime_classes: tuple[str, ...] = ()

    @classmethod
    def at(cls, level: str) -> Configuration:
        """A cluster that enforces a level everywhere but in its own namespace."""
        if level == "privileged":
            return cls()
        return cls(Policy(enforce=Level(level)), EXEMPT)


class PodSecurity:
    """Admission of pods, workloads and namespaces."""

    def __init__(self, registry: Registry, configuration: Configuration) -> None:
        self._namespaces = registry.bucket(registry.resources.find("namespaces"))
        self._pods = registry.bucket(registry.resources.find("pods"))
        self._configuration = configuration
        self._minor = registry.resources.minor

    def validate(self, admission: Admission) -> None:
        """Refuse a pod that asks for more than its namespace allows, and warn of what would be refused."""
        storage = admission.resource.storage
        if admission.operation not in ("CREATE", "UPDATE"):
            return
        if storage == ("", "namespaces"):
            self._namespace(admission)
        elif storage == ("", "pods"):
            if admission.subresource not in _IGNORED:
                self._pod(admission)
        elif not admission.subresource and (template := pod_in(admission.resource, admission.obj)) is not None:
            policy, _ = self._policy_of(admission)
            if policy.warn.name != "privileged":
                self._warn(admission, policy, template.get("metadata") or {}, template.get("spec") or {})

    def _policy_of(self, admission: Admission) -> tuple[Policy, list[FieldError]]:
        """The levels that hold for a request; none for those who are exempt."""
        configuration = self._configuration
        if admission.namespace in configuration.namespaces or admission.user.name in configuration.users:
            return Policy(), []
        entry = self._namespaces.get(("", admission.namespace))
        return read_policy((entry.obj["metadata"].get("labels") or {}) if entry else {}, configuration.defaults)

    def _pod(self, admission: Admission) -> None:
        policy, _ = self._policy_of(admission)
        spec, metadata = admission.obj["spec"], admission.obj["metadata"]
        if policy.enforce.name == policy.warn.name == "privileged" or not _significant(spec, admission.old):
            return
        if self._exempt(spec):
            return
        found = self._violations(policy.enforce, metadata, spec)
        if found:
            detail = f'violates PodSecurity "{policy.enforce}": {words(found)}'
            raise forbidden("pods", "", admission.name, detail)
        self._warn(admission, policy, metadata, spec)

    def _warn(self, admission: Admission, policy: Policy, metadata: Object, spec: Object) -> None:
        if self._exempt(spec):
            return
        if found := self._violations(policy.warn, metadata, spec):
            admission.warnings.append(f'would violate PodSecurity "{policy.warn}": {words(found)}')

    def _exempt(self, spec: Object) -> bool:
        return spec.get("runtimeClassName") in self._configuration.runtime_classes

    def _violations(self, level: Level, metadata: Object, spec: Object) -> list[tuple[str, str]]:
        if level.name == "privileged":
            return []
        return violations(level.name, min(level.minor, self._minor), metadata, spec)

    def _namespace(self, admission: Admission) -> None:
        if admission.subresource:
            return
        defaults = self._configuration.defaults
        labels = admission.obj["metadata"].get("labels") or {}
        policy, errors = read_policy(labels, defaults)
        before, earlier = policy, errors
        if admission.old is not None:
            before, earlier = read_policy(admission.old["metadata"].get("labels") or {}, defaults)
        if errors and (admission.old is None or errors != earlier):
            raise unprocessable("Namespace", "", admission.name, errors)
        exempt = admission.name in self._configuration.namespaces
        if admission.old is None:
            if exempt:
                self._warn_of_exemption(admission, policy, labels)
            return
        new, old = policy.enforce, before.enforce
        lower = new.minor == old.minor and LEVELS.index(new.name) <= LEVELS.index(old.name)
        if new == old or new.name == "privileged" or lower:
            return
        if exempt:
            self._warn_of_exemption(admission, policy, labels)
        else:
            admission.warnings.extend(self._trouble(admission.name, new))

    def _warn_of_exemption(self, admission: Admission, policy: Policy, labels: Mapping[str, str]) -> None:
        levels = {mode: getattr(policy, mode) for mode in _MODES}
        same = all(
            level == getattr(self._configuration.defaults, mode) or level.name == "privileged"
            for mode, level in levels.items()
        )
        if same:
            return
        told = ", ".join(
            f"{mode}={level}"
            for mode, level in levels.items()
            if level.name != "privileged" and (PREFIX + mode in labels or f"{PREFIX}{mode}-version" in labels)
        )
        who = f'namespace "{admission.name}" is exempt from Pod Security'
        admission.warnings.append(f"{who}, and the policy ({told}) will be ignored")

    def _trouble(self, namespace: str, level: Level) -> Iterator[str]:
        """What is told of the pods that a namespace has, when its level is raised."""
        pods = sorted(
            (entry.obj for entry in self._pods.select(namespace=namespace)),
            key=lambda pod: str(pod["metadata"]["name"]),
        )
        pods = [pod for pod in pods if not self._exempt(pod["spec"])]
        if len(pods) > _MOST_PODS:
            counted = f"the first {_MOST_PODS} of {len(pods)} existing pods"
            yield f"new PodSecurity enforce level only checked against {counted}"
        names: dict[str, list[str]] = {}
        for pod in pods[:_MOST_PODS]:
            if found := self._violations(level, pod["metadata"], pod["spec"]):
                names.setdefault(reasons(found), []).append(pod["metadata"]["name"])
        if names:
            yield f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{level}"'
        yield from sorted(f"{_counted(who)}: {why}" for why, who in names.items())


def _counted(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{names[0]} (and {others} other pod{'s' if others > 1 else ''})"


def _significant(spec: Object, old: Object | None) -> bool:
    """Whether a write of a pod can change what it may do: it is new, or has another image or container."""
    if old is None:
        return True
    before = old["spec"]
    for kind in ("containers", "initContainers"):
        images = [[each.get("image") for each in holder.get(kind) or ()] for holder in (spec, before)]
        if images[0] != images[1]:
            return True
    known = {each["name"]: each.get("image") for each in before.get("ephemeralContainers") or ()}
    return any(
        each["name"] not in known or known[each["name"]] != each.get("image")
        for each in spec.get("ephemeralContainers") or ()
    )


def read_policy(labels: Mapping[str, str], defaults: Policy) -> tuple[Policy, list[FieldError]]:
    """The levels that labels state, over those of the cluster, and what is wrong with the labels."""
    errors: list[FieldError] = []
    levels: dict[str, Level] = {}
    for mode in _MODES:
        default: Level = getattr(defaults, mode)
        name, minor = labels.get(PREFIX + mode, default.name), default.minor
        if name not in LEVELS:
            errors.append(_wrong(labels, mode, f"must be one of {', '.join(LEVELS)}"))
            name = "restricted" if mode == "enforce" else "privileged"
        version = labels.get(f"{PREFIX}{mode}-version")
        if version is not None:
            found = minor_of_label(version)
            minor = _LATEST if found is None else found
            if found is None and version != "latest":
                errors.append(_wrong(labels, f"{mode}-version", 'must be "latest" or "v1.x"'))
        levels[mode] = Level(name, minor)
    enforce, warn = levels["enforce"], levels["warn"]
    stated = labels.get(PREFIX + "enforce") in LEVELS and PREFIX + "warn" not in labels
    if stated and LEVELS.index(enforce.name) > LEVELS.index(warn.name):
        levels["warn"] = Level(enforce.name, warn.minor if f"{PREFIX}warn-version" in labels else enforce.minor)
    return Policy(**levels), errors


def _wrong(labels: Mapping[str, str], name: str, detail: str) -> FieldError:
    return invalid(f"metadata.labels[{PREFIX}{name}]", labels[PREFIX + name], detail)
