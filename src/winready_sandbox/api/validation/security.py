"""Security contexts of pods and containers, and the annotations that came before them."""

from __future__ import annotations

import re

from winready_sandbox.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
    too_long,
)
from winready_sandbox.api.gates import on
from winready_sandbox.api.pod_defaults import APPARMOR
from winready_sandbox.api.validation.formats import Errors
from winready_sandbox.api.validation.projections import relative_path
from winready_sandbox.api.validation.reading import Object, children, containers_of, items, section
from winready_sandbox.api.validation.windows import windows_options

_MAX_ID = 2**31 - 1
_SYSCTL = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_LONGEST = 253
_PROFILES = ["Localhost", "RuntimeDefault", "Unconfined"]
_MIRROR, _DELETION_COST = "kubernetes.io/config.mirror", "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP_POD, _SECCOMP = "seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/"
_LONGEST_PROFILE = 4095


def pod_security(spec: Object, path: str, minor: int) -> Errors:
    """The security context of a pod."""
    security = section(spec, "securityContext")
    here = f"{path}.securityContext"
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from user_id(security.get(name), f"{here}.{name}")
    for i, group in enumerate(items(security, "supplementalGroups")):
        yield from user_id(group, f"{here}.supplementalGroups[{i}]")
    if spec.get("shareProcessNamespace") is True and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{here}.shareProcessNamespace", True, detail)
    yield from _sysctls(spec, f"{here}.sysctls")
    policy = security.get("fsGroupChangePolicy")
    if policy not in (None, "OnRootMismatch", "Always"):
        yield not_supported(f"{here}.fsGroupChangePolicy", policy, ["Always", "OnRootMismatch"])
    yield from seccomp(security, here)
    yield from windows_options(security, here)
    yield from app_armor(security, here)
    groups = security.get("supplementalGroupsPolicy")
    if groups not in (None, "Merge", "Strict"):
        yield not_supported(f"{here}.supplementalGroupsPolicy", groups, ["Merge", "Strict"])
    change = security.get("seLinuxChangePolicy")
    allowed = ["MountOption", "Recursive"] if on("SELinuxMount", minor) else ["Recursive"]
    if change is not None and change not in allowed:
        yield not_supported(f"{here}.seLinuxChangePolicy", change, allowed)


def _sysctls(spec: Object, path: str) -> Errors:
    names: set[str] = set()
    for i, sysctl in enumerate(children(section(spec, "securityContext"), "sysctls")):
        name, field = str(sysctl.get("name") or ""), f"{path}[{i}].name"
        if not name:
            yield required(field)
        elif len(name) > _SYSCTL_LONGEST or not re.fullmatch(_SYSCTL, name):
            yield invalid(field, name, f"must have at most {_SYSCTL_LONGEST} characters and match regex ^{_SYSCTL}$")
        elif name in names:
            yield duplicate(field, name)
        plain = name.replace("/", ".")
        if spec.get("hostNetwork") and plain.startswith("net."):
            yield invalid(field, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and plain.startswith(("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")):
            yield invalid(field, name, "may not be specified when 'hostIPC' is true")
        names.add(name)


def container_security(security: Object, here: str, host_users: bool) -> Errors:
    """The security context of a container; ``host_users`` says whether its users are those of the host."""
    for name in ("runAsUser", "runAsGroup"):
        yield from user_id(security.get(name), f"{here}.{name}")
    mount = security.get("procMount")
    if mount is not None and mount not in ("Default", "Unmasked"):
        yield not_supported(f"{here}.procMount", mount, ["Default", "Unmasked"])
    if mount == "Unmasked" and host_users:
        yield invalid(f"{here}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from seccomp(security, here)
    if security.get("allowPrivilegeEscalation") is False:
        if security.get("privileged") is True:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(here, security, detail)
        if "CAP_SYS_ADMIN" in items(section(security, "capabilities"), "add"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid(here, security, detail)
    yield from windows_options(security, here)
    yield from app_armor(security, here)


def user_id(value: object, field: str) -> Errors:
    """A user or group of Linux."""
    if isinstance(value, int) and not 0 <= value <= _MAX_ID:
        yield invalid(field, value, f"must be between 0 and {_MAX_ID}, inclusive")


def seccomp(security: Object, here: str) -> Errors:
    """The seccomp profile of a pod or a container."""
    profile = security.get("seccompProfile")
    if not isinstance(profile, dict):
        return
    kind = profile.get("type")
    path = f"{here}.seccompProfile"
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield not_supported(f"{path}.type", kind, _PROFILES)
    local = profile.get("localhostProfile")
    if kind == "Localhost":
        if local is None:
            yield required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
        else:
            yield from relative_path(str(local), f"{path}.localhostProfile")
    elif local is not None:
        shown = {"Type": kind or "", "LocalhostProfile": local}
        yield invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost")


def app_armor(security: Object, here: str) -> Errors:
    """The AppArmor profile of a pod or a container."""
    profile = security.get("appArmorProfile")
    if not isinstance(profile, dict):
        return
    kind, local, field = profile.get("type"), profile.get("localhostProfile"), f"{here}.appArmorProfile"
    if kind == "Localhost":
        where, text = f"{field}.localhostProfile", str(local or "")
        if local is None:
            yield required(where, "must be set when AppArmor type is Localhost")
        elif text.strip() != text:
            yield invalid(where, text, "must not be padded with whitespace")
        elif not text:
            yield required(where, "must be set when AppArmor type is Localhost")
        if len(text) > _LONGEST_PROFILE:
            yield too_long(where, _LONGEST_PROFILE)
    elif kind in _PROFILES:
        if local is not None:
            yield invalid(f"{field}.localhostProfile", local, "can only be set when AppArmor type is Localhost")
    elif not kind:
        yield required(f"{field}.type", "type is required when appArmorProfile is set")
    else:
        yield not_supported(f"{field}.type", kind, _PROFILES)


def known_annotations(metadata: Object, spec: Object, path: str) -> Errors:
    """Annotations that mean something to the API server."""
    given = section(metadata, "annotations")
    if _MIRROR in given and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(f"{path}[{_MIRROR}]", given[_MIRROR], detail)
    cost = given.get(_DELETION_COST)
    if cost is not None and not _is_cost(str(cost)):
        yield invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer")
    for key, value in given.items():
        if key == _SECCOMP_POD or key.startswith(_SECCOMP):
            yield from _seccomp_annotation(str(value), f"{path}.{key}")
    names = {str(container.get("name")) for container, _ in containers_of(spec, "")}
    for key, value in given.items():
        if not key.startswith(APPARMOR):
            continue
        name = key.removeprefix(APPARMOR)
        if name not in names:
            yield invalid(f"{path}[{key}]", name, "container not found")
        if value not in ("", "runtime/default", "unconfined") and not str(value).startswith("localhost/"):
            yield invalid(f"{path}[{key}]", value, f'invalid AppArmor profile name: "{value}"')


def _is_cost(text: str) -> bool:
    plain = re.fullmatch(r"-?(0|[1-9]\d*)", text)
    return plain is not None and text != "-0" and -(2**31) <= int(text) < 2**31


def _seccomp_annotation(value: str, field: str) -> Errors:
    if value in ("runtime/default", "docker/default", "unconfined"):
        return
    if value.startswith("localhost/"):
        yield from relative_path(value.removeprefix("localhost/"), field)
    else:
        yield invalid(field, value, "must be a valid seccomp profile")


def matching_annotations(metadata: Object, spec: Object, path: str) -> Errors:
    """Annotations that say the same as the fields that came after them."""
    given = section(metadata, "annotations")
    if not given:
        return
    shared = section(spec, "securityContext")
    holders = [(shared, f"{path}.securityContext", _SECCOMP_POD)]
    windows = section(spec, "os").get("name") == "windows"
    for container, here in containers_of(spec, path):
        own = section(container, "securityContext")
        holders.append((own, f"{here}.securityContext", f"{_SECCOMP}{container.get('name')}"))
    for context, here, key in holders:
        profile = context.get("seccompProfile")
        if isinstance(profile, dict) and key in given:
            yield from _same("seccomp", profile, str(given[key]), f"{here}.seccompProfile")
    for container, here in containers_of(spec, path):
        own = section(container, "securityContext")
        profile = own.get("appArmorProfile") or shared.get("appArmorProfile")
        key = f"{APPARMOR}{container.get('name')}"
        if isinstance(profile, dict) and key in given and not windows:
            yield from _same("apparmor", profile, str(given[key]), f"{here}.securityContext.appArmorProfile")


def _same(what: str, profile: Object, annotation: str, field: str) -> Errors:
    kind = profile.get("type")
    known: dict[str, tuple[str, ...]] = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default",)}
    wanted = known.get(str(kind))
    if what == "seccomp" and kind == "RuntimeDefault":
        wanted = ("runtime/default", "docker/default")
    wrong: FieldError | None = None
    if (wanted is not None and annotation not in wanted) or (
        kind == "Localhost" and not annotation.startswith("localhost/")
    ):
        wrong = forbidden_field(f"{field}.type", f"{what} type in annotation and field must match")
    elif kind == "Localhost" and annotation.removeprefix("localhost/") != profile.get("localhostProfile"):
        wrong = forbidden_field(f"{field}.localhostProfile", f"{what} profile in annotation and field must match")
    if wrong is not None:
        yield wrong
