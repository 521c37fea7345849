"""What an operator decides about a run: where pods may go, where images come from, what outside names to ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from winready.cluster.directory import ActiveDirectory
from winready.cluster.timing import Timing

RUN_LABEL = "winready.io/run"
RUN_ID = re.compile(r"\d{6}-\d{6}-[0-9a-f]{4}")
"""What the id of a run looks like."""
HOST_FOLDER = "C:\\winready"
"""Where checks keep files on Windows nodes, each run in a folder of its own."""
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
PAUSE = "registry.k8s.io/pause:3.10.2"
EXTERNAL_NAMES = ("registry.k8s.io", "www.microsoft.com", "github.com")
_TOLERATION = re.compile(r"(?P<key>[^=:]+)(?:=(?P<value>[^:]*))?(?::(?P<effect>\w+))?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True)
class Settings:
    """Everything a check needs to know besides the cluster itself."""

    run_id: str
    timing: Timing = field(default_factory=Timing)
    image_registry: str = ""
    tolerations: tuple[dict[str, Any], ...] = ()
    air_gapped: bool = False
    allow_downtime: bool = False
    """A reboot may take away the last replica of somebody else's workload."""
    external_names: tuple[str, ...] = EXTERNAL_NAMES
    active_directory: ActiveDirectory | None = None
    """The domain that pods can log on to, if the operator named one."""
    takes_over: str = ""
    """The id of a run that ended early, if this one goes on in its place: what it left is nobody's service."""
    namespace_prefix: str = ""
    """How the names of namespaces begin that an administrator prepared; empty when the run makes its own."""

    def image(self, reference: str) -> str:
        """An image, from the operator's own registry where one is given."""
        if not self.image_registry:
            return reference
        return f"{self.image_registry.rstrip('/')}/{reference.partition('/')[2]}"

    def namespace(self, suffix: str) -> str:
        """The name of a namespace of the run."""
        return prepared_namespace(self.namespace_prefix or f"winready-{self.run_id}", suffix)

    def labels(self, **more: str) -> dict[str, str]:
        """The labels of everything that the run creates."""
        return {RUN_LABEL: self.run_id, "app.kubernetes.io/managed-by": "winready", **more}


def prepared_namespace(prefix: str, suffix: str) -> str:
    """The name of a namespace that was prepared for runs."""
    return f"{prefix}-{suffix}"


def parse_namespace_prefix(text: str) -> str:
    """Read ``--namespace-prefix``; names of namespaces have at most 63 characters, and ours add a few."""
    if text and not _PREFIX.fullmatch(text):
        raise ValueError(
            f"{text!r} cannot begin the name of a namespace; write lower-case letters, digits and dashes, at most 50"
        )
    return text


def parse_toleration(text: str) -> dict[str, Any]:
    """Read ``--tolerate KEY[=VALUE][:EFFECT]``."""
    match = _TOLERATION.fullmatch(text)
    if match is None or (match["effect"] and match["effect"] not in _EFFECTS):
        raise ValueError(f"{text!r} is not a toleration; write KEY[=VALUE][:EFFECT], such as os=windows:NoSchedule")
    toleration: dict[str, Any] = {"key": match["key"], "operator": "Exists"}
    if match["value"] is not None:
        toleration |= {"operator": "Equal", "value": match["value"]}
    if match["effect"]:
        toleration["effect"] = match["effect"]
    return toleration
