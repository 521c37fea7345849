"""Rules about users, gMSA and Pod Security."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from winready.lint.context import Facts
from winready.lint.objects import Container, Pod, dig
from winready.lint.rules import Hit, pod_check
from winready.lint.target import Target
from winready.spec.yamlfile import Path

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS = re.compile(r"(?:[a-zA-Z0-9][a-zA-Z0-9-]*\.)*[a-zA-Z0-9][a-zA-Z0-9-]*")
_USER_FORBIDDEN = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_KNOWN_USERS = frozenset({"containeruser", "containeradministrator"})
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")


def options(pod: Pod, name: str) -> Iterator[tuple[Path, Any]]:
    """A field of windowsOptions wherever it is set, on the pod and on containers."""
    value = dig(pod.spec, "securityContext", "windowsOptions", name)
    if value is not None:
        yield ("spec", "securityContext", "windowsOptions", name), value
    for container in pod.containers:
        if "securityContext" in container.value:
            value = dig(container.value, "securityContext", "windowsOptions", name)
            if value is not None:
                yield (*container.path, "securityContext", "windowsOptions", name), value


@pod_check("sc-run-as-non-root")
def run_as_non_root(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.host_process:
        return
    seen: set[Path] = set()
    for container in pod.containers:
        if pod.option(container, "runAsNonRoot") is not True:
            continue
        user = pod.option(container, "windowsOptions", "runAsUserName")
        path = _context_path(container, "runAsNonRoot")
        if user is None:
            if path not in seen:
                yield Hit(path)
        elif str(user).lower() == "containeradministrator":
            yield Hit(path, "runAsNonRoot forbids the ContainerAdministrator that runAsUserName asks for", "error")
        seen.add(path)


def _context_path(container: Container, name: str) -> Path:
    own = dig(container.value, "securityContext", name)
    return (*container.path, "securityContext", name) if own is not None else ("spec", "securityContext", name)


@pod_check("win-run-as-user-name")
def run_as_user_name(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    for path, value in options(pod, "runAsUserName"):
        if problem := user_name_problem(str(value)):
            yield Hit(path, f"runAsUserName {value!r}: {problem}")


def user_name_problem(value: str) -> str:
    """Why the API server would refuse this account name, or nothing."""
    if not value:
        return "it is empty"
    if _CONTROL.search(value):
        return "it contains a control character"
    if value.count("\\") > 1:
        return "it contains more than one backslash"
    domain, separator, user = value.rpartition("\\")
    if separator and (len(domain) >= 256 or not (_NETBIOS.fullmatch(domain) or _DNS.fullmatch(domain))):
        return f"{domain!r} is no domain or computer name"
    if not user or len(user) > 104 or not user.strip(". "):
        return "the user must have 1 to 104 characters and not only dots and spaces"
    if match := _USER_FORBIDDEN.search(user):
        return f"a user name cannot contain {match[0]}"
    return ""


@pod_check("win-run-as-user-name-unknown")
def run_as_user_name_unknown(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.host_process:
        return
    for path, value in options(pod, "runAsUserName"):
        name = str(value).lower()
        if name not in _KNOWN_USERS and not name.startswith("nt authority\\") and not user_name_problem(str(value)):
            yield Hit(path, f"the image must have a user {value}")


@pod_check("gmsa-field-limits")
def gmsa_field_limits(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    for path, value in options(pod, "gmsaCredentialSpecName"):
        if not _SUBDOMAIN.fullmatch(str(value)) or len(str(value)) > 253:
            yield Hit(path, f"{value!r} is not a valid object name")
    for path, value in options(pod, "gmsaCredentialSpec"):
        size = len(str(value).encode())
        if not 0 < size <= 64 * 1024:
            yield Hit(path, f"the inline credential spec has {size} bytes")


def is_object_name(name: str) -> bool:
    """Whether an object may be called so."""
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


@pod_check("psa-restricted-needs-os")
def restricted_needs_os(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if facts.level(pod.object.namespace) == "restricted" and not _linux_fields(pod):
        yield Hit(target.path, f"namespace {pod.object.namespace} is restricted, and the pod does not declare Windows")


def _linux_fields(pod: Pod) -> bool:
    """Whether every container has what the restricted level asks of Linux pods."""
    return all(
        pod.option(container, "seccompProfile", "type") in ("RuntimeDefault", "Localhost")
        and dig(container.value, "securityContext", "allowPrivilegeEscalation") is False
        and "ALL" in (dig(container.value, "securityContext", "capabilities", "drop") or [])
        for container in pod.containers
    )


@pod_check("psa-run-as-non-root")
def restricted_run_as_non_root(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if facts.level(pod.object.namespace) != "restricted":
        return
    for container in pod.containers:
        if pod.option(container, "runAsNonRoot") is not True:
            where = f"namespace {pod.object.namespace} is restricted"
            yield Hit(
                _context_path(container, "runAsNonRoot"), f"{where}, and {container.name} lacks runAsNonRoot: true"
            )
            return


@pod_check("psa-host-process")
def restricted_host_process(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    level = facts.level(pod.object.namespace)
    if level not in ("baseline", "restricted"):
        return
    for path, value in options(pod, "hostProcess"):
        if value is True:
            yield Hit(
                path, f"namespace {pod.object.namespace} enforces the level {level}, which allows no HostProcess pod"
            )
            return
