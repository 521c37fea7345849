"""Pods as workload controllers handle them: made from templates, adopted and released by labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object, fresh
from winready_sandbox.controllers.objects import (
    controller_reference,
    deleting,
    key_of,
    labels_of,
    owner_reference,
    uid_of,
)
from winready_sandbox.controllers.selecting import label_selector

if TYPE_CHECKING:
    from winready_sandbox.controllers.controller import Controller


def selects(owner: Object, obj: Object) -> bool:
    """Whether a workload's selector matches an object's labels."""
    return label_selector(owner["spec"].get("selector"))(labels_of(obj))


def claim(
    controller: Controller, owner: Object, resource: str, may_adopt: Callable[[Object], bool] = lambda obj: True
) -> list[Object]:
    """What the owner manages: its own that still match, and matching orphans, which it adopts; others it releases."""
    informer = controller.informers.of(resource)
    matches = label_selector(owner["spec"].get("selector"))
    claimed = []
    for obj in informer.by("owner", uid_of(owner)):
        if matches(labels_of(obj)):
            claimed.append(obj)
        elif not deleting(owner):
            _reown(
                controller, resource, obj, [r for r in obj["metadata"]["ownerReferences"] if r["uid"] != uid_of(owner)]
            )
    if deleting(owner):
        return claimed
    reference = owner_reference(controller.api_version, controller.kind, owner)
    for obj in informer.by("orphans", owner["metadata"]["namespace"]):
        if not deleting(obj) and matches(labels_of(obj)) and may_adopt(obj):
            adopted = _reown(controller, resource, obj, [*(obj["metadata"].get("ownerReferences") or []), reference])
            if adopted is not None:
                claimed.append(adopted)
    return claimed


def _reown(controller: Controller, resource: str, obj: Object, references: list[Object]) -> Object | None:
    namespace, name = key_of(obj)
    patch = {"metadata": {"uid": uid_of(obj), "ownerReferences": references or None}}
    try:
        return controller.informers.patch(resource, name, patch, namespace)
    except ApiError as error:
        if error.code in (404, 409, 422):
            return None
        raise


def pod_from_template(controller: Controller, owner: Object, template: Object) -> Object:
    """A pod as its owner's template wants it, without a name yet."""
    meta = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": owner["metadata"]["namespace"],
            "labels": dict(meta.get("labels") or {}),
            "annotations": dict(meta.get("annotations") or {}),
            "finalizers": list(meta.get("finalizers") or []),
            "ownerReferences": [owner_reference(controller.api_version, controller.kind, owner)],
        },
        "spec": fresh(template["spec"]),
    }


def create_pod(controller: Controller, owner: Object, pod: Object) -> Object:
    """Create a pod and tell of it, or of why not."""
    try:
        created = controller.informers.create("pods", pod, owner["metadata"]["namespace"])
    except ApiError as error:
        if not terminating(error):
            controller.tell(owner, "FailedCreate", f"Error creating: {error.message}", warning=True)
        raise
    controller.tell(owner, "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")
    return created


def delete_pod(controller: Controller, owner: Object, pod: Object) -> None:
    """Delete a pod and tell of it."""
    controller.informers.delete("pods", pod)
    controller.tell(owner, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")


def terminating(error: ApiError) -> bool:
    """Whether a create failed because the namespace is on its way out: nothing to tell anybody."""
    causes = error.details.get("causes") or ()
    return error.code == 403 and any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def owned_by(obj: Object, owner: Object) -> bool:
    """Whether the owner manages the object."""
    reference = controller_reference(obj)
    return reference is not None and reference["uid"] == uid_of(owner)
