"""What Cluster API's controllers ask and are answered: discovery and the nine lifecycle hooks.

``cluster.status`` is never sent, so nothing here looks at it. Fields that we do not know are nobody's mistake; a body
that is no such request is refused by a ``Failure``, which the controllers show and repeat.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import msgspec

from winready.cluster.client import Object
from winready.spec.versions import Version

VERSION = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
DISCOVERY = "Discovery"
TIMEOUT = 5
"""Seconds that a controller waits for an answer; it has one within a second."""
CREATED = "AfterControlPlaneInitialized"
UPGRADE, WORKERS, DELETE = "BeforeClusterUpgrade", "AfterWorkersUpgrade", "BeforeClusterDelete"
HOOKS = (
    "BeforeClusterCreate", CREATED, UPGRADE, "BeforeControlPlaneUpgrade", "AfterControlPlaneUpgrade",
    "BeforeWorkersUpgrade", WORKERS, "AfterClusterUpgrade", DELETE,
)  # fmt: skip
HOLDING = (UPGRADE, WORKERS)
FailurePolicy = Literal["Fail", "Ignore"]
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,198}[a-z0-9])?")
_SPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_UID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{0,63}")
_PLAIN = re.compile(r"[0-9A-Za-z.+-]{1,80}")
"""Versions become part of a key."""


class WrongRequest(Exception):
    """A body that no controller of Cluster API sends; the message says why."""


class _Metadata(msgspec.Struct):
    name: str
    namespace: str
    uid: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = msgspec.field(default=None, name="deletionTimestamp")


class _Cluster(msgspec.Struct):
    metadata: _Metadata


class _Request(msgspec.Struct, rename="camel"):
    kind: str
    cluster: _Cluster
    api_version: str = ""
    settings: dict[str, str] | None = None
    from_kubernetes_version: str = ""
    to_kubernetes_version: str = ""
    kubernetes_version: str = ""


@dataclass(frozen=True)
class Named:
    """A cluster, and no other one that had its name before."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def key(self) -> str:
        """Where its facts are."""
        return f"{self.namespace}/{self.name}/{self.uid}"


@dataclass(frozen=True)
class Call:
    """One question of a controller."""

    hook: str
    cluster: Named
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    step: str = ""
    """What a run has to be about, to count for this question; each has a run of its own."""
    deleted: float | None = None
    """When somebody wanted the cluster gone."""


def read(hook: str, body: bytes) -> Call:
    """The question in a body; raises `WrongRequest`."""
    try:
        found = msgspec.json.decode(body, type=_Request)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WrongRequest(f"the body is no {hook}Request: {str(error)[:200]}") from None
    except RecursionError:
        raise WrongRequest(f"the body is no {hook}Request: it is nested too deeply") from None
    if found.kind != f"{hook}Request" or found.api_version not in ("", VERSION):
        said = f"{found.api_version} {found.kind}".strip()[:100]
        raise WrongRequest(f"the body is a {said!r}, not a {VERSION} {hook}Request")
    data = found.cluster.metadata
    for value, pattern, what in (
        (data.namespace, _SPACE, "namespace"), (data.name, _NAME, "name"), (data.uid, _UID, "uid")
    ):  # fmt: skip
        if not pattern.fullmatch(value):
            raise WrongRequest(f"{value[:80]!r} cannot be the {what} of a cluster")
    return Call(
        hook,
        Named(data.namespace, data.name, data.uid),
        data.labels or {},
        data.annotations or {},
        found.settings or {},
        _step(hook, found),
        _moment(data.deletion_timestamp),
    )


def _step(hook: str, found: _Request) -> str:
    # By versions and not by the generation: whoever changes something else of a cluster need not wait once more.
    if hook == CREATED:
        return "created"
    if hook == UPGRADE:
        return f"upgrade_{_version(found.from_kubernetes_version)}_{_version(found.to_kubernetes_version)}"
    return f"workers_{_version(found.kubernetes_version)}" if hook == WORKERS else ""


def _moment(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


def _version(text: str) -> str:
    try:
        Version.parse(text if _PLAIN.fullmatch(text) else "")
    except ValueError:
        raise WrongRequest(f"{text[:80]!r} is no Kubernetes version") from None
    return text


def title(step: str) -> str:
    """A step in words."""
    kind, _, versions = step.partition("_")
    if kind == "upgrade":
        return "before the upgrade from {} to {}".format(*versions.split("_", 1))
    return f"after the workers' upgrade to {versions}" if kind == "workers" else "after its control plane came up"


def path(hook: str) -> str:
    """Where controllers ask."""
    if hook == DISCOVERY:
        return f"/{VERSION}/discovery"
    return f"/{VERSION}/{hook.lower()}/{handler(hook)}"


def handler(hook: str) -> str:
    """The name under which an ExtensionConfig shows a handler."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", hook).lower()


def discovered(failure_policy: FailurePolicy = "Fail") -> Object:
    """Which hooks are answered. Only those that hold may stop anything while nobody answers."""
    return response(DISCOVERY, handlers=[
        {
            "name": handler(hook),
            "requestHook": {"apiVersion": VERSION, "hook": hook},
            "timeoutSeconds": TIMEOUT,
            "failurePolicy": failure_policy if hook in HOLDING else "Ignore",
        }
        for hook in HOOKS
    ])  # fmt: skip


def response(hook: str, message: str = "", retry: int = 0, *, failed: bool = False, **more: Any) -> Object:
    """An answer."""
    found: Object = {"apiVersion": VERSION, "kind": f"{hook}Response", "status": "Failure" if failed else "Success"}
    if hook not in (DISCOVERY, CREATED):
        found["retryAfterSeconds"] = retry
    return {**found, "message": message, **more}
