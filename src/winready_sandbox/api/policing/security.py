"""Pod Security: which pods a namespace takes, by the level that it states, or else by that of the cluster.

The controls that concern ordinary and HostProcess pods are here, not all of the standard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from winready_sandbox.api.errors import forbidden
from winready_sandbox.api.objects import Object
from winready_sandbox.api.registry import Admission, Registry

LABEL = "pod-security.kubernetes.io/enforce"
EXEMPT = ("kube-system",)
"""What administrators leave out when they set a level for the cluster."""
LEVELS = ("privileged", "baseline", "restricted")
_VOLUMES = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
    "image",
)


class PodSecurity:
    """Admission of new pods by the level of their namespace."""

    def __init__(self, registry: Registry, default: str) -> None:
        self._namespaces = registry.bucket(registry.resources.find("namespaces"))
        self._default = default

    def validate(self, admission: Admission) -> None:
        """Refuse a pod that asks for more than its namespace allows."""
        if admission.operation != "CREATE" or admission.resource.storage != ("", "pods"):
            return
        entry = self._namespaces.get(("", admission.namespace))
        labels = (entry.obj["metadata"].get("labels") or {}) if entry else {}
        level = labels.get(LABEL, "privileged" if admission.namespace in EXEMPT else self._default)
        if level not in LEVELS[1:]:
            return
        violations = list(_baseline(admission.obj["spec"]))
        if level == "restricted":
            violations += _restricted(admission.obj["spec"])
        if violations:
            words = ", ".join(text for _, text in sorted(violations))
            version = labels.get(f"{LABEL}-version", "latest")
            raise forbidden("pods", "", admission.name, f'violates PodSecurity "{level}:{version}": {words}')


def _baseline(spec: Object) -> Iterator[tuple[str, str]]:
    """The name by which a control is sorted, and its words."""
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    if shared:
        yield "hostNamespaces", f"host namespaces ({', '.join(shared)})"
    paths = [volume["name"] for volume in spec.get("volumes") or () if "hostPath" in volume]
    if paths:
        yield "hostPathVolumes", f"hostPath volumes ({_named('volume', paths)})"
    ports = [
        (each["name"], port["hostPort"])
        for each in _all(spec)
        for port in each.get("ports") or ()
        if port.get("hostPort")
    ]
    if ports and not spec.get("hostNetwork"):
        names, numbers = list(dict.fromkeys(name for name, _ in ports)), sorted({str(port) for _, port in ports})
        some = "hostPorts" if len(numbers) > 1 else "hostPort"
        verb = "use" if len(names) > 1 else "uses"
        yield "hostPorts", f"hostPort ({_named('container', names)} {verb} {some} {', '.join(numbers)})"
    who = _subjects(spec, lambda context: bool((context.get("windowsOptions") or {}).get("hostProcess")))
    if who:
        yield "windowsHostProcess", f"hostProcess ({who} must not set securityContext.windowsOptions.hostProcess=true)"
    privileged = [each["name"] for each in _all(spec) if (each.get("securityContext") or {}).get("privileged")]
    if privileged:
        words = f"{_named('container', privileged)} must not set securityContext.privileged=true"
        yield "privileged", f"privileged ({words})"


def _restricted(spec: Object) -> Iterator[tuple[str, str]]:
    contexts = {each["name"]: each.get("securityContext") or {} for each in _all(spec)}
    pod = spec.get("securityContext") or {}
    windows = (spec.get("os") or {}).get("name") == "windows"
    if not windows:
        lax = [name for name, context in contexts.items() if context.get("allowPrivilegeEscalation") is not False]
        if lax:
            words = f"{_named('container', lax)} must set securityContext.allowPrivilegeEscalation=false"
            yield "allowPrivilegeEscalation", f"allowPrivilegeEscalation != false ({words})"
        lax = [
            name for name, each in contexts.items() if "ALL" not in ((each.get("capabilities") or {}).get("drop") or ())
        ]
        if lax:
            words = f'{_named("container", lax)} must set securityContext.capabilities.drop=["ALL"]'
            yield "capabilities_restricted", f"unrestricted capabilities ({words})"
    kinds = {volume["name"]: next((key for key in volume if key != "name"), "") for volume in spec.get("volumes") or ()}
    wrong = {name: kind for name, kind in kinds.items() if kind not in _VOLUMES}
    if wrong:
        verb, types = ("use", "types") if len(wrong) > 1 else ("uses", "type")
        listed = ", ".join(f'"{kind}"' for kind in sorted(set(wrong.values())))
        words = f"{_named('volume', list(wrong))} {verb} restricted volume {types} {listed}"
        yield "restrictedVolumes", f"restricted volume types ({words})"
    if pod.get("runAsNonRoot") is not True:
        lax = [name for name, context in contexts.items() if context.get("runAsNonRoot") is not True]
        if lax:
            words = f"pod or {_named('container', lax)} must set securityContext.runAsNonRoot=true"
            yield "runAsNonRoot", f"runAsNonRoot != true ({words})"
    if not windows and not _confined(pod):
        lax = [name for name, context in contexts.items() if not _confined(context)]
        if lax:
            types = 'to "RuntimeDefault" or "Localhost"'
            words = f"pod or {_named('container', lax)} must set securityContext.seccompProfile.type {types}"
            yield "seccompProfile_restricted", f"seccompProfile ({words})"


def _confined(context: Object) -> bool:
    return (context.get("seccompProfile") or {}).get("type") in ("RuntimeDefault", "Localhost")


def _all(spec: Object) -> list[Object]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _subjects(spec: Object, holds: Callable[[Object], bool]) -> str:
    """The pod and containers whose security context says something, in one phrase."""
    who = ["pod"] if holds(spec.get("securityContext") or {}) else []
    names = [each["name"] for each in _all(spec) if holds(each.get("securityContext") or {})]
    return " and ".join([*who, *([_named("container", names)] if names else [])])


def _named(what: str, names: list[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in names)
    return f"{what}s {listed}" if len(names) > 1 else f"{what} {listed}"
