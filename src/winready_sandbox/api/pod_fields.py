"""What becomes of the fields of a pod or a template on its way in, before anybody judges it.

Fields of features that the version has switched off are dropped, unless the stored object uses them. AppArmor
annotations of pods become fields, from when there are fields for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from winready_sandbox.api.gates import FIELDS_SINCE, on
from winready_sandbox.api.objects import Object
from winready_sandbox.api.pod_defaults import APPARMOR
from winready_sandbox.api.pod_resources import children
from winready_sandbox.api.registry import Admission
from winready_sandbox.api.strategy import pod_in

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
Use = Callable[[Object], Iterator[Any]]
"""Where a spec uses a feature."""
Drop = Callable[[Object], None]


class PodFields:
    """What a version does with pods and templates."""

    def __init__(self, minor: int) -> None:
        self._droppers = [(use, drop) for gate, use, drop in _GATED if not on(gate, minor)]
        if not on("ContainerRestartRules", minor) and minor >= FIELDS_SINCE["Container.restartPolicyRules"]:
            self._droppers.append((_restart_rules, _drop_restart_rules))
        self._apparmor = on("AppArmorFields", minor)
        self._annotates = self._apparmor and not on("AppArmorWithoutAnnotations", minor)

    def admit(self, admission: Admission) -> None:
        """Drop what is switched off, and carry annotations into fields."""
        if admission.operation not in ("CREATE", "UPDATE") or admission.subresource not in ("", "ephemeralcontainers"):
            return
        pod = pod_in(admission.resource, admission.obj)
        if pod is None:
            return
        spec = pod.get("spec") or {}
        before = pod_in(admission.resource, admission.old) if admission.old is not None else None
        old = (before or {}).get("spec") or {}
        for use, drop in self._droppers:
            if any(True for _ in use(spec)) and not any(True for _ in use(old)):
                drop(spec)
        if admission.operation == "CREATE" and admission.resource.storage == ("", "pods") and self._apparmor:
            admission.warnings.extend(carry_apparmor(admission.obj))
            if self._annotates:
                annotate_apparmor(admission.obj)


def carry_apparmor(pod: Object) -> Iterator[str]:
    """Set the profiles that annotations name; yields what the writer should know."""
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    spec = pod["spec"]
    if (spec.get("os") or {}).get("name") == "windows" or not any(key.startswith(APPARMOR) for key in annotations):
        return
    shared = (spec.get("securityContext") or {}).get("appArmorProfile")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in children(spec, kind):
            key = f"{APPARMOR}{container.get('name')}"
            own = (container.get("securityContext") or {}).get("appArmorProfile")
            if key not in annotations or own is not None:
                continue
            profile = apparmor_profile(annotations[key])
            if profile is not None and profile != shared:
                container["securityContext"] = {**(container.get("securityContext") or {}), "appArmorProfile": profile}
            if profile is None or profile != shared:
                yield f'metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'


def annotate_apparmor(pod: Object) -> None:
    """Say in annotations what fields say, for nodes that are too old for the fields."""
    spec, metadata = pod["spec"], pod["metadata"]
    if (spec.get("os") or {}).get("name") == "windows":
        return
    shared = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container in _all(spec):
        profile = (container.get("securityContext") or {}).get("appArmorProfile") or shared or {}
        local = f"localhost/{profile.get('localhostProfile')}" if profile.get("localhostProfile") else ""
        known = {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined", "Localhost": local}
        text = known.get(str(profile.get("type")), "")
        key = f"{APPARMOR}{container.get('name')}"
        if text and key not in (metadata.get("annotations") or {}):
            metadata["annotations"] = {**(metadata.get("annotations") or {}), key: text}


def apparmor_profile(annotation: str) -> Object | None:
    """The field that an annotation stands for, if it is a sound one."""
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    name = annotation.removeprefix("localhost/")
    sound = name != annotation and name and name.strip() == name and len(name) <= 4095
    return {"type": "Localhost", "localhostProfile": name} if sound else None


# Where features have their fields, and how they are taken out


def _all(spec: Object) -> Iterator[Object]:
    for kind in _CONTAINERS:
        yield from children(spec, kind)


def _in_spec(name: str) -> tuple[Use, Drop]:
    def use(spec: Object) -> Iterator[Any]:
        if spec.get(name) is not None:
            yield spec[name]

    def drop(spec: Object) -> None:
        spec.pop(name, None)

    return use, drop


def _in_security(name: str) -> tuple[Use, Drop]:
    def use(spec: Object) -> Iterator[Any]:
        if (spec.get("securityContext") or {}).get(name) is not None:
            yield name

    def drop(spec: Object) -> None:
        spec["securityContext"].pop(name, None)

    return use, drop


def _in_containers(name: str, *kinds: str) -> tuple[Use, Drop]:
    def use(spec: Object) -> Iterator[Any]:
        for kind in kinds or _CONTAINERS:
            yield from (container for container in children(spec, kind) if container.get(name) is not None)

    def drop(spec: Object) -> None:
        for container in list(use(spec)):
            container.pop(name, None)

    return use, drop


def _proc_mounts(spec: Object) -> Iterator[Object]:
    for container in _all(spec):
        if (container.get("securityContext") or {}).get("procMount") not in (None, "Default"):
            yield container["securityContext"]


def _default_proc_mounts(spec: Object) -> None:
    for context in list(_proc_mounts(spec)):
        context["procMount"] = "Default"


def _claims(spec: Object) -> Iterator[Any]:
    if spec.get("resourceClaims") is not None:
        yield spec
    yield from (each for each in _all(spec) if (each.get("resources") or {}).get("claims") is not None)


def _drop_claims(spec: Object) -> None:
    spec.pop("resourceClaims", None)
    for container in _all(spec):
        (container.get("resources") or {}).pop("claims", None)


def _projections(name: str) -> tuple[Use, Drop]:
    def use(spec: Object) -> Iterator[Object]:
        for volume in children(spec, "volumes"):
            projected = volume.get("projected")
            yield from (source for source in children(projected or {}, "sources") if source.get(name) is not None)

    def drop(spec: Object) -> None:
        for source in list(use(spec)):
            del source[name]

    return use, drop


def _recursive_mounts(spec: Object) -> Iterator[Object]:
    for container in _all(spec):
        yield from (each for each in children(container, "volumeMounts") if each.get("recursiveReadOnly") is not None)


def _drop_recursive_mounts(spec: Object) -> None:
    for mount in list(_recursive_mounts(spec)):
        del mount["recursiveReadOnly"]


def _file_keys(spec: Object) -> Iterator[Object]:
    for container in _all(spec):
        for variable in children(container, "env"):
            if (variable.get("valueFrom") or {}).get("fileKeyRef") is not None:
                yield variable["valueFrom"]


def _drop_file_keys(spec: Object) -> None:
    for source in list(_file_keys(spec)):
        del source["fileKeyRef"]


def _sleeps(spec: Object) -> Iterator[tuple[Object, str]]:
    for container in _all(spec):
        for name in ("preStop", "postStart"):
            handler = (container.get("lifecycle") or {}).get(name)
            if isinstance(handler, dict) and handler.get("sleep") is not None:
                yield container, name


def _drop_sleeps(spec: Object) -> None:
    for container, name in list(_sleeps(spec)):
        handler = container["lifecycle"][name]
        del handler["sleep"]
        if not handler:
            del container["lifecycle"][name]
        if not container["lifecycle"]:
            del container["lifecycle"]


def _stop_signals(spec: Object) -> Iterator[Object]:
    yield from (each for each in _all(spec) if (each.get("lifecycle") or {}).get("stopSignal") is not None)


def _drop_stop_signals(spec: Object) -> None:
    for container in list(_stop_signals(spec)):
        del container["lifecycle"]["stopSignal"]
        if not container["lifecycle"]:
            del container["lifecycle"]


def _image_volumes(spec: Object) -> Iterator[Object]:
    yield from (volume for volume in children(spec, "volumes") if volume.get("image") is not None)


def _drop_image_volumes(spec: Object) -> None:
    gone = {volume.get("name") for volume in _image_volumes(spec)}
    spec["volumes"] = [volume for volume in children(spec, "volumes") if volume.get("image") is None]
    for container in _all(spec):
        if container.get("volumeMounts"):
            container["volumeMounts"] = [
                mount for mount in children(container, "volumeMounts") if mount.get("name") not in gone
            ]
    for holder, name in ((spec, "volumes"), *((each, "volumeMounts") for each in _all(spec))):
        if not holder.get(name):
            holder.pop(name, None)


def _restart_rules(spec: Object) -> Iterator[Object]:
    for kind in _CONTAINERS:
        for container in children(spec, kind):
            sidecar = kind == "initContainers" and container.get("restartPolicy") == "Always"
            if container.get("restartPolicyRules") or (container.get("restartPolicy") is not None and not sidecar):
                yield container


def _drop_restart_rules(spec: Object) -> None:
    sidecars = [each for each in children(spec, "initContainers") if each.get("restartPolicy") == "Always"]
    for container in list(_restart_rules(spec)):
        container.pop("restartPolicyRules", None)
        if not any(container is each for each in sidecars):
            container.pop("restartPolicy", None)


_GATED: tuple[tuple[str, Use, Drop], ...] = (
    ("UserNamespacesSupport", *_in_spec("hostUsers")),
    ("SupplementalGroupsPolicy", *_in_security("supplementalGroupsPolicy")),
    ("PodLevelResources", *_in_spec("resources")),
    ("ProcMountType", _proc_mounts, _default_proc_mounts),
    ("DynamicResourceAllocation", _claims, _drop_claims),
    ("ClusterTrustBundleProjection", *_projections("clusterTrustBundle")),
    ("PodCertificateRequest", *_projections("podCertificate")),
    ("WorkloadScheduling", *_in_spec("schedulingGroup")),
    ("InPlacePodVerticalScaling", *_in_containers("resizePolicy")),
    ("SidecarContainers", *_in_containers("restartPolicy", "initContainers")),
    ("RecursiveReadOnlyMounts", _recursive_mounts, _drop_recursive_mounts),
    ("HostnameOverride", *_in_spec("hostnameOverride")),
    ("EnvFiles", _file_keys, _drop_file_keys),
    ("PodLifecycleSleepAction", _sleeps, _drop_sleeps),
    ("ImageVolume", _image_volumes, _drop_image_volumes),
    ("SELinuxChangePolicy", *_in_security("seLinuxChangePolicy")),
    ("ContainerStopSignals", _stop_signals, _drop_stop_signals),
)
"""Gates, who uses them, and how that is taken away."""
