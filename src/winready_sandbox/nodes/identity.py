"""Who a Windows container is: the user that it asks for, and the account that it has in a domain."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from winready_sandbox.machine import users
from winready_sandbox.machine.domain import CredentialSpec, Domain
from winready_sandbox.machine.users import UnknownUser
from winready_sandbox.nodes.environment import ConfigError

if TYPE_CHECKING:
    from winready_sandbox.nodes.defects import RuntimeDefects

Object = dict[str, Any]


def windows_options(pod: Object, container: Object | None = None) -> Object:
    """The Windows security options in force: the container's over the pod's."""
    options = dict((pod["spec"].get("securityContext") or {}).get("windowsOptions") or {})
    if container is not None:
        options |= (container.get("securityContext") or {}).get("windowsOptions") or {}
    return options


def is_first(pod: Object, container: Object) -> bool:
    """Whether this is the first of the pod's containers."""
    return bool(container["name"] == pod["spec"]["containers"][0]["name"])


def named_user(pod: Object, container: Object | None, defects: RuntimeDefects) -> str:
    """The user that an ordinary pod, or a container of it, is run as by name; empty for the image's own."""
    of_pod = windows_options(pod).get("runAsUserName") or ""
    named = str(windows_options(pod, container).get("runAsUserName") or "")
    if defects.user_name_of_pod_wins and of_pod:
        named = str(of_pod)
    if defects.user_name_in_first_container and container is not None and not is_first(pod, container):
        named = ""
    if defects.ignores_user_name or (defects.unknown_user_ignored and named and not _known(named)):
        return ""
    return named


def _known(user: str) -> bool:
    try:
        users.windows_identity(user)
    except UnknownUser:
        return False
    return True


def credentials(
    pod: Object, container: Object, domain: Domain | None, defects: RuntimeDefects
) -> CredentialSpec | None:
    """What a container is to a domain, if it is anything; raises `ConfigError`."""
    text = windows_options(pod, container).get("gmsaCredentialSpec")
    if not text and defects.credential_spec_for_all and domain is not None:
        return CredentialSpec(domain.name, domain.netbios, domain.accounts[0])
    if not text or defects.credential_spec_ignored:
        return None
    if defects.credential_spec_in_first_container and not is_first(pod, container):
        return None
    try:
        spec = CredentialSpec.parse(json.loads(text))
    except ValueError as error:
        raise ConfigError(f"invalid GMSA credential spec: {error}") from None
    if defects.credential_spec_of_another and domain is not None:
        return replace(spec, account=next(name for name in domain.accounts if name != spec.account))
    return spec
