"""Custom resources: a definition adds a row to the table of kinds, and the generic path serves it."""

from __future__ import annotations

from winready_sandbox.api.errors import FieldError, invalid, required, unprocessable
from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.api.registry import Admission, Registry
from winready_sandbox.api.resources import SCALE, STATUS, Resource
from winready_sandbox.api.store import Entry

DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")


def install(registry: Registry) -> None:
    """Serve custom resources as soon as they are defined."""
    definitions = Definitions(registry)
    registry.admission.append(definitions.admit)
    registry.committed.append(definitions.serve)


class Definitions:
    """Keeps the table of kinds in step with the stored definitions."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._served: dict[str, list[Resource]] = {}

    def admit(self, admission: Admission) -> None:
        """Check a definition and accept its names."""
        if admission.resource.storage != DEFINITIONS or admission.operation == "DELETE" or admission.subresource:
            return
        obj = admission.obj
        errors = _errors(admission.name, obj.get("spec") or {})
        if errors:
            raise unprocessable("CustomResourceDefinition", DEFINITIONS[0], admission.name, errors)
        names = obj["spec"]["names"]
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
        obj["spec"].setdefault("conversion", {"strategy": "None"})
        if admission.operation == "CREATE":
            obj["status"] = _accepted(obj["spec"])

    def serve(self, resource: Resource, entry: Entry, gone: bool) -> None:
        """Follow a definition that was written or deleted."""
        if resource.storage != DEFINITIONS:
            return
        name = entry.key[1]
        for served in self._served.pop(name, []):
            self._registry.resources.remove(served)
            if gone:
                for instance in self._registry.bucket(served).select():
                    self._registry.store.remove(served.storage, instance.key)
        if not gone:
            self._served[name] = _resources(entry.obj["spec"])
            for served in self._served[name]:
                self._registry.resources.add(served)


def _resources(spec: Object) -> list[Resource]:
    names = spec["names"]
    found = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        paths = version.get("subresources") or {}
        found.append(
            Resource(
                spec["group"],
                version["name"],
                names["kind"],
                names["plural"],
                spec["scope"] == "Namespaced",
                tuple(names.get("shortNames") or ()),
                tuple(names.get("categories") or ()),
                subresources=tuple(path for path in (SCALE, STATUS) if path.name in paths),
                singular=names["singular"],
                generation="all",
                unconditional_update=False,
                custom=True,
                columns=tuple(version.get("additionalPrinterColumns") or ()),
            )
        )
    return found


def _errors(name: str, spec: Object) -> list[FieldError]:
    names = spec.get("names") or {}
    errors = [
        required(f"spec.{field}")
        for field, value in (
            ("group", spec.get("group")),
            ("scope", spec.get("scope")),
            ("names.plural", names.get("plural")),
            ("names.kind", names.get("kind")),
            ("versions", spec.get("versions")),
        )
        if not value
    ]
    if errors:
        return errors
    if name != f"{names['plural']}.{spec['group']}":
        errors.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if sum(bool(version.get("storage")) for version in spec["versions"]) != 1:
        errors.append(
            FieldError("spec.versions", "Invalid value: must have exactly one version marked as storage version")
        )
    for index, version in enumerate(spec["versions"]):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            errors.append(required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required"))
    return errors


def _accepted(spec: Object) -> Object:
    now = timestamp()
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    return {
        "conditions": [
            {
                "lastTransitionTime": now,
                "message": "no conflicts found",
                "reason": "NoConflicts",
                "status": "True",
                "type": "NamesAccepted",
            },
            {
                "lastTransitionTime": now,
                "message": "the initial names have been accepted",
                "reason": "InitialNamesAccepted",
                "status": "True",
                "type": "Established",
            },
        ],
        "acceptedNames": dict(spec["names"]),
        "storedVersions": [stored],
    }
