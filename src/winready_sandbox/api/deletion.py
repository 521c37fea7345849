"""How objects go: grace periods, finalizers and propagation decide whether a delete marks or removes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winready_sandbox.api.errors import ApiError, bad_request, conflict, invalid, not_supported, wrong_options
from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.api.resources import Resource

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True)
class DeleteOptions:
    """What a client says about a delete."""

    grace: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str | None = None
    dry_run: bool = False

    @classmethod
    def read(cls, body: Object | None, query: Any) -> DeleteOptions:
        """From a ``DeleteOptions`` body and the query, which says the same for clients that send no body."""
        body = body or {}
        if body.get("kind", "DeleteOptions") != "DeleteOptions":
            raise bad_request(
                f'{body["kind"]} in version "{body.get("apiVersion")}" cannot be handled as DeleteOptions'
            )
        conditions = body.get("preconditions") or {}
        grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
        orphan = body.get("orphanDependents", query.get("orphanDependents"))
        propagation = body.get("propagationPolicy") or query.get("propagationPolicy")
        if orphan is not None and propagation:
            text = "orphanDependents and deletionPropagation cannot be both set"
            raise wrong_options("DeleteOptions", invalid("propagationPolicy", propagation, text))
        if orphan is not None:
            propagation = "Orphan" if str(orphan).lower() in ("true", "1") else "Background"
        if propagation not in (None, "Background", "Foreground", "Orphan"):
            policies = ["Foreground", "Background", "Orphan", "nil"]
            raise wrong_options("DeleteOptions", not_supported("propagationPolicy", propagation, policies))
        try:
            seconds = None if grace is None else int(grace)
        except (TypeError, ValueError):
            raise bad_request(f'gracePeriodSeconds must be a whole number of seconds, not "{grace}"') from None
        dry_run = bool(body.get("dryRun") or query.get("dryRun"))
        return cls(seconds, conditions.get("uid"), conditions.get("resourceVersion"), propagation, dry_run)


def check_preconditions(resource: Resource, obj: Object, options: DeleteOptions) -> None:
    """409 when the object is not the one that the client means."""
    metadata = obj["metadata"]
    for what, wanted, actual in (
        ("UID", options.uid, metadata["uid"]),
        ("ResourceVersion", options.version, metadata["resourceVersion"]),
    ):
        if wanted is not None and wanted != actual:
            raise _unmet(resource, metadata["name"], what, wanted, actual)


def _unmet(resource: Resource, name: str, what: str, wanted: str, actual: str) -> ApiError:
    detail = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({actual}). "
    detail += "The object might have been deleted and then recreated"
    if what == "ResourceVersion":
        detail = detail.replace("deleted and then recreated", "modified")
    return conflict(resource.kind, resource.group, name, detail)


def grace_period(resource: Resource, obj: Object, wanted: int | None) -> int:
    """Seconds until an object may go: only pods on a node that still run have any."""
    if resource.storage != ("", "pods"):
        return 0
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    grace = spec.get("terminationGracePeriodSeconds", 30) if wanted is None else wanted
    return 1 if grace < 0 else int(grace)


def finalizers_after(obj: Object, propagation: str | None) -> list[str]:
    """The finalizers that a propagation policy leaves on an object."""
    finalizers = list(obj["metadata"].get("finalizers") or [])
    if propagation is None:
        return finalizers
    finalizers = [each for each in finalizers if each not in (FOREGROUND, ORPHAN)]
    if propagation == "Foreground":
        finalizers.append(FOREGROUND)
    elif propagation == "Orphan":
        finalizers.append(ORPHAN)
    return finalizers


def marked(resource: Resource, obj: Object, options: DeleteOptions) -> Object | None:
    """The object as a delete leaves it: still there but on its way out, or None when it is gone at once."""
    metadata = dict(obj["metadata"])
    finalizers = finalizers_after(obj, options.propagation)
    grace = grace_period(resource, obj, options.grace)
    namespace = resource.storage == ("", "namespaces")
    waits = bool(finalizers) or (namespace and bool((obj.get("spec") or {}).get("finalizers")))
    if grace == 0 and not waits:
        return None
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
    pending = metadata.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" not in metadata or (pending is not None and grace < pending):
        metadata["deletionTimestamp"] = timestamp(grace)
        if not namespace:
            metadata["deletionGracePeriodSeconds"] = grace
        if resource.generation:
            metadata["generation"] = metadata.get("generation", 0) + 1
    result = {**obj, "metadata": metadata}
    if namespace:
        result["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return result


def last_state(resource: Resource, obj: Object) -> Object:
    """What is left to show of an object that goes now: a pod's says that its time was up."""
    metadata = dict(obj["metadata"])
    if resource.storage == ("", "pods"):
        if "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = timestamp()
            metadata["generation"] = metadata.get("generation", 0) + 1
        metadata["deletionGracePeriodSeconds"] = 0
    return {**obj, "metadata": metadata}


def finished(resource: Resource, obj: Object) -> bool:
    """Whether an object on its way out has nothing left to wait for."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if resource.storage == ("", "namespaces"):
        return not (obj.get("spec") or {}).get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds")
