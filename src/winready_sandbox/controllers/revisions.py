"""The history of StatefulSets and DaemonSets: each template they ever had, as a ControllerRevision."""

from __future__ import annotations

from winready_sandbox.api.objects import Object, fresh
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import (
    key_of,
    labels_of,
    orphan_namespaces,
    owner_reference,
    owner_uids,
    template_hash,
)
from winready_sandbox.controllers.pods import claim

HASH = "controller-revision-hash"


class Revisions:
    """Keeps the revisions of one kind of workload."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        informer = controller.informers.of("controllerrevisions")
        informer.add_index("owner", owner_uids)
        informer.add_index("orphans", orphan_namespaces)
        informer.add_handler(controller.enqueue_owner)

    def history(self, owner: Object) -> list[Object]:
        """The owner's revisions, oldest first."""
        return sorted(claim(self.controller, owner, "controllerrevisions"), key=lambda entry: int(entry["revision"]))

    def update(self, owner: Object) -> tuple[Object, list[Object]]:
        """The revision of the present template, made or moved to the end if need be; and all revisions."""
        history = self.history(owner)
        data = _data(owner)
        latest = int(history[-1]["revision"]) if history else 0
        found = next((entry for entry in history if entry["data"] == data), None)
        if found is not None:
            if int(found["revision"]) != latest:
                namespace, name = key_of(found)
                patch = {"revision": latest + 1}
                found = self.controller.informers.patch("controllerrevisions", name, patch, namespace)
            return found, self.history(owner)
        found = self._create(owner, data, latest + 1)
        return found, self.history(owner)

    def _create(self, owner: Object, data: Object, number: int) -> Object:
        namespace, name = key_of(owner)
        suffix = template_hash(data["spec"]["template"], (owner.get("status") or {}).get("collisionCount"))
        template_labels = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
        revision: Object = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{name}-{suffix}",
                "namespace": namespace,
                "labels": {**template_labels, HASH: self.hash_text(name, suffix)},
                "annotations": _copied(owner),
                "ownerReferences": [owner_reference(self.controller.api_version, self.controller.kind, owner)],
            },
            "data": data,
            "revision": number,
        }
        return self.controller.informers.create("controllerrevisions", revision, namespace)

    def hash_text(self, name: str, suffix: str) -> str:
        """What pods are labelled with: StatefulSets use the revision's whole name, DaemonSets its hash."""
        return f"{name}-{suffix}" if self.controller.kind == "StatefulSet" else suffix

    def prune(self, owner: Object, history: list[Object], live: set[str]) -> None:
        """Drop old revisions that nothing runs any more, beyond the history limit."""
        limit = owner["spec"].get("revisionHistoryLimit", 10)
        idle = [entry for entry in history if labels_of(entry).get(HASH) not in live]
        for entry in idle[: max(0, len(idle) - limit)]:
            self.controller.informers.delete("controllerrevisions", entry)


def _data(owner: Object) -> Object:
    return {"spec": {"template": {**fresh(owner["spec"]["template"]), "$patch": "replace"}}}


def _copied(owner: Object) -> dict[str, str]:
    annotations = owner["metadata"].get("annotations") or {}
    return {
        key: value for key, value in annotations.items() if key != "kubectl.kubernetes.io/last-applied-configuration"
    }


def template_of(revision: Object) -> Object:
    """The pod template that a revision holds."""
    return {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}
