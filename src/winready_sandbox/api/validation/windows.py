"""What a pod's operating system forbids, and the options that only Windows has.

The rules are those of the API server, not of Windows: it refuses what it can know for sure from ``spec.os``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from winready_sandbox.api.errors import forbidden_field, invalid, not_supported, required
from winready_sandbox.api.validation.formats import Errors, at, dns_subdomain
from winready_sandbox.api.validation.reading import Object, containers_of, section

_NOT_FOR_WINDOWS = "cannot be set for a windows pod"
# In the order in which the API server looks at them; a leading dot marks a field of the pod's own spec.
_POD_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    ".hostUsers",
    ".hostPID",
    ".hostIPC",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    ".shareProcessNamespace",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_SET_WHEN_TRUE = frozenset({".hostPID", ".hostIPC", "sysctls"})

_GMSA_LIMIT_KIB = 64
_DOMAIN_LIMIT = 256
_USER_LIMIT = 104
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')


def operating_system(spec: Object, path: str, minor: int) -> Errors:
    """The rules of ``spec.os``, which servers before 1.24 drop."""
    if minor < 24 or not isinstance(spec.get("os"), dict):
        return
    name = spec["os"].get("name")
    if not name:
        yield required(f"{path}.os.name")
    elif name == "linux":
        yield from _linux(spec, path)
    elif name == "windows":
        yield from _windows(spec, path)
    else:
        yield not_supported(f"{path}.os", name, ["linux", "windows"])


def _linux(spec: Object, path: str) -> Errors:
    detail = "windows options cannot be set for a linux pod"
    holders = [(spec, path), *containers_of(spec, path)]
    for holder, here in holders:
        if section(holder, "securityContext").get("windowsOptions") is not None:
            yield forbidden_field(f"{here}.securityContext.windowsOptions", detail)


def _windows(spec: Object, path: str) -> Errors:
    security = section(spec, "securityContext")
    for field in _POD_FIELDS:
        own = field.startswith(".")
        name = field.removeprefix(".")
        value = (spec if own else security).get(name)
        if value if field in _SET_WHEN_TRUE else value is not None:
            yield forbidden_field(f"{path}.{name}" if own else f"{path}.securityContext.{name}", _NOT_FOR_WINDOWS)
    for container, here in containers_of(spec, path):
        security = section(container, "securityContext")
        for name in _CONTAINER_FIELDS:
            if security.get(name) is not None:
                yield forbidden_field(f"{here}.securityContext.{name}", _NOT_FOR_WINDOWS)


def windows_options(security: Object, path: str) -> Errors:
    """``windowsOptions`` of a pod or a container."""
    options = section(security, "windowsOptions")
    here = f"{path}.windowsOptions"
    name = options.get("gmsaCredentialSpecName")
    if name is not None:
        yield from at(f"{here}.gmsaCredentialSpecName", name, dns_subdomain(str(name)))
    spec = options.get("gmsaCredentialSpec")
    if spec is not None:
        yield from at(f"{here}.gmsaCredentialSpec", spec, _credential_spec(str(spec)))
    user = options.get("runAsUserName")
    if user is not None:
        yield from at(f"{here}.runAsUserName", user, user_name(str(user)))


def _credential_spec(value: str) -> Iterator[str]:
    if not value:
        yield "gmsaCredentialSpec cannot be an empty string"
    elif len(value.encode()) > _GMSA_LIMIT_KIB * 1024:
        yield f"gmsaCredentialSpec size must be under {_GMSA_LIMIT_KIB} KiB"


def user_name(value: str) -> Iterator[str]:
    r"""``USER`` or ``DOMAIN\USER``."""
    if not value:
        yield "runAsUserName cannot be an empty string"
        return
    if re.search(r"[\x00-\x1f\x7f]", value):
        yield "runAsUserName cannot contain control characters"
        return
    if value.count("\\") > 1:
        yield "runAsUserName cannot contain more than one backslash"
        return
    domain, backslash, user = value.rpartition("\\")
    if len(domain) >= _DOMAIN_LIMIT:
        yield f"runAsUserName's Domain length must be under {_DOMAIN_LIMIT} characters"
    if backslash and not (_NETBIOS.fullmatch(domain) or _DOMAIN.fullmatch(domain)):
        yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "runAsUserName's User cannot be empty"
    elif len(user) > _USER_LIMIT:
        yield f"runAsUserName's User length must not be longer than {_USER_LIMIT} characters"
    if re.fullmatch(r"[. ]+", user):
        yield "runAsUserName's User cannot contain only periods or spaces"
    if re.search(r'["/\\:;|=,+*?<>@\[\]]', user):
        yield "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


def host_process(spec: Object, path: str) -> Errors:
    """HostProcess containers: all or none, and only on the host's network."""
    of_pod = _host_process(spec)
    count = chosen = 0
    for container, here in containers_of(spec, path):
        count += 1
        own = _host_process(container)
        if of_pod is not None and own is not None and own != of_pod:
            detail = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            yield invalid(f"{here}.securityContext.windowsOptions.hostProcess", own, detail)
        chosen += bool(own if own is not None else of_pod)
    if not chosen:
        return
    if chosen != count:
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, "", detail)
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(f"{path}.hostNetwork", False, detail)


def _host_process(holder: Object) -> bool | None:
    value = section(section(holder, "securityContext"), "windowsOptions").get("hostProcess")
    return value if isinstance(value, bool) else None
