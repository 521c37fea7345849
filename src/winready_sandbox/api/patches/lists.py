"""The one table of how lists and maps of the built-in kinds merge.

A field is found by the name of the field that holds it and its own name (``containers`` > ``env``): in the built-in
kinds that pair is enough, which saves a whole schema. What is not in the table is replaced as a whole (lists) or merged
key by key (maps). Strategic merge and server-side apply disagree in places (strategic merge knows one key per list), so
each entry carries both readings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Parent = str
Rules = Mapping[tuple[Parent, str], "ListRule"]


class ListRule(NamedTuple):
    """How one list merges."""

    merge_key: str = ""  # strategic merge: the key that tells items apart
    keys: tuple[str, ...] = ()  # server-side apply: the keys that tell items apart
    scalars: bool = False  # a set of plain values
    whole_items: bool = False  # items have one owner, not one per field

    @property
    def granular(self) -> bool:
        """Whether server-side apply tells the items apart at all."""
        return self.scalars or bool(self.keys)


def _by(key: str, *more: str, whole_items: bool = False) -> ListRule:
    return ListRule(key, (key, *more), whole_items=whole_items)


_SET = ListRule(scalars=True)
_METADATA: dict[tuple[Parent, str], ListRule] = {
    ("metadata", "finalizers"): _SET,
    ("metadata", "ownerReferences"): _by("uid", whole_items=True),
}
_CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
_BUILT_IN: dict[tuple[Parent, str], ListRule] = {
    **_METADATA,
    **{("spec", containers): _by("name") for containers in _CONTAINER_LISTS},
    **{(containers, "env"): _by("name") for containers in _CONTAINER_LISTS},
    **{(containers, "ports"): _by("containerPort", "protocol") for containers in _CONTAINER_LISTS},
    **{(containers, "volumeMounts"): _by("mountPath") for containers in _CONTAINER_LISTS},
    **{(containers, "volumeDevices"): _by("devicePath") for containers in _CONTAINER_LISTS},
    ("resources", "claims"): ListRule(keys=("name",)),
    ("spec", "volumes"): _by("name"),
    ("spec", "hostAliases"): _by("ip"),
    ("spec", "imagePullSecrets"): _by("name", whole_items=True),
    ("spec", "schedulingGates"): _by("name"),
    ("spec", "resourceClaims"): _by("name"),
    ("spec", "topologySpreadConstraints"): _by("topologyKey", "whenUnsatisfiable"),
    ("status", "podIPs"): _by("ip"),
    ("status", "hostIPs"): ListRule("ip"),
    ("status", "resourceClaimStatuses"): _by("name"),
    ("status", "conditions"): _by("type"),
    ("status", "addresses"): _by("type"),  # of a Node
    ("spec", "podCIDRs"): _SET,
    ("spec", "ports"): _by("port", "protocol"),  # of a Service
    ("", "secrets"): _by("name", whole_items=True),  # of a ServiceAccount
    ("", "imagePullSecrets"): ListRule(),
    ("", "webhooks"): _by("name"),
    ("webhooks", "matchConditions"): _by("name"),
    ("spec", "drivers"): _by("name"),  # of a CSINode
    ("spec", "volumeLifecycleModes"): ListRule(keys=(), scalars=True),
}
_JOB = {**_BUILT_IN, ("status", "conditions"): ListRule("type")}

# Maps with one owner: selectors and references mean nothing in halves.
_WHOLE_MAPS = frozenset(
    {
        "selector",
        "labelSelector",
        "podSelector",
        "namespaceSelector",
        "objectSelector",
        "nodeSelector",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "roleRef",
        "scopeSelector",
        "secretKeyRef",
        "configMapKeyRef",
        "fieldRef",
        "resourceFieldRef",
        "fileKeyRef",
        "secretRef",
        "scaleTargetRef",
        "dataSource",
        "involvedObject",
        "regarding",
        "related",
    }
)


def rules_of(obj: Mapping[str, Any]) -> Rules:
    """The rules for an object of this kind; of custom resources only the metadata is known."""
    group = str(obj.get("apiVersion", "v1")).rpartition("/")[0]
    if "." in group and not group.endswith(".k8s.io"):
        return _METADATA
    return _JOB if obj.get("kind") == "Job" else _BUILT_IN


def is_whole_map(field: str) -> bool:
    """Whether a map with this name has one owner as a whole."""
    return field in _WHOLE_MAPS
