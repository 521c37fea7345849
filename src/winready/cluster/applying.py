"""Objects of ours on a cluster: put there by server-side apply, compared with what the API server makes of them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from winready.cluster.client import Client, Object
from winready.cluster.errors import ApiError, ClusterError, Conflict
from winready.cluster.resources import Resource

COUNTER = "deprecated.daemonset.template.generation"
"""The annotation in which the API server counts the templates of a DaemonSet."""
SERVERS_OWN = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid")
Change = Literal["created", "changed", "unchanged", "removed", "kept"]


@dataclass(frozen=True)
class Difference:
    """What an apply would do, or did, to one object."""

    change: Change
    title: str
    """``DaemonSet winready-node/flannel``."""
    lines: tuple[str, ...] = ()
    """How it differs, as ``diff -u`` shows it; of an object that is kept, what keeps it."""


class Applier:
    """Applies objects of some kinds in the name of one field manager."""

    def __init__(self, client: Client, kinds: Mapping[str, Resource], manager: str) -> None:
        self.client = client
        self.kinds = kinds
        self.manager = manager

    async def apply(self, wanted: Sequence[Object], *, force: bool = False) -> list[Difference]:
        """Make the cluster have these objects; one that fits is not written."""
        done = []
        for obj in wanted:
            before = await self.find(obj)
            after = await self.patch(obj, force=force)
            change: Change = "created"
            if before is not None:
                # Versions also rise when a controller writes the status meanwhile.
                change = "unchanged" if _said(before) == _said(after) else "changed"
            done.append(Difference(change, title(obj)))
        return done

    async def differences(self, wanted: Sequence[Object], *, force: bool = False) -> list[Difference]:
        """What an apply would change, asked of the API server itself; nothing is changed."""
        found = []
        absent: set[str] = set()
        for obj in wanted:
            before = await self.find(obj)
            if obj["metadata"].get("namespace") in absent:
                # Nothing can be tried out in a namespace that is not there yet.
                found.append(Difference("created", title(obj), _diff({}, obj)))
                continue
            after = await self.patch(obj, force=force, dry_run=True)
            if before is None:
                absent |= {obj["metadata"]["name"]} if obj["kind"] == "Namespace" else set()
                found.append(Difference("created", title(obj), _diff({}, obj)))
            else:
                lines = _diff(_said(before), _said(after))
                found.append(Difference("changed" if lines else "unchanged", title(obj), lines))
        return found

    async def find(self, obj: Object) -> Object | None:
        """The object as it is on the cluster."""
        return await self.client.find(
            self.kinds[obj["kind"]], obj["metadata"]["name"], obj["metadata"].get("namespace")
        )

    async def patch(self, obj: Object, *, force: bool, dry_run: bool = False) -> Object:
        """Apply one object; whatever refuses it is told with its title."""
        metadata = obj["metadata"]
        try:
            return await self.client.patch(
                self.kinds[obj["kind"]], metadata["name"], obj, metadata.get("namespace"), kind="apply",
                force=force, manager=self.manager, dry_run=dry_run,
            )  # fmt: skip
        except Conflict as error:
            others = "; ".join(str(cause.get("message")) for cause in error.causes[:3]) or error.message
            raise ClusterError(
                f"{title(obj)} was changed by somebody else: {others}", "--force takes these fields over"
            ) from None
        except ApiError as error:
            # The same narrow class goes on: who calls tells rights from refusals.
            error.message = f"{title(obj)}: {error.message}"
            raise


def title(obj: Object) -> str:
    """An object as people call it."""
    metadata = obj["metadata"]
    space = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj['kind']} {space}{metadata['name']}"


def removal(obj: Object) -> Difference:
    """What the removal of an object is, told beforehand."""
    return Difference("removed", title(obj), _diff(_said(obj), {}))


def manifest(found: Sequence[Object]) -> str:
    """Objects as YAML that people read: no anchors, and texts of several lines as they are."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Plain.add_representer(str, text)
    return str(yaml.dump_all(found, Dumper=Plain, sort_keys=False, width=1000, explicit_start=True))


def _said(obj: Object) -> Object:
    """An object without what the API server writes itself."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in SERVERS_OWN}
    if COUNTER in metadata.get("annotations", {}):
        metadata["annotations"] = {key: text for key, text in metadata["annotations"].items() if key != COUNTER}
    rest = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    return {"apiVersion": rest.pop("apiVersion"), "kind": rest.pop("kind"), "metadata": metadata, **rest}


def _diff(before: Object, after: Object) -> tuple[str, ...]:
    if before == after:
        return ()
    old = manifest([before]).splitlines() if before else []
    new = manifest([after]).splitlines() if after else []
    return tuple(difflib.unified_diff(old, new, "on the cluster", "wanted", lineterm="", n=2))
