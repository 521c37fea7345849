"""Namespaces that empty themselves before they go, and say what they still wait for."""

from __future__ import annotations

from collections import Counter

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object
from winready_sandbox.api.resources import Resource
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import Key, deleting, uid_of, with_condition

FAILURES = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
}
LATER = 5.0
"""Cluster seconds until a namespace that waits is looked at again, though any deletion in it is noticed at once."""


class NamespaceController(Controller):
    """Empties namespaces on their way out."""

    name = "namespace-controller"
    kind = "Namespace"
    api_version = "v1"
    resource = "namespaces"

    def watch(self) -> None:
        """Follow namespaces, and every deletion in those that are on their way out."""
        self.namespaces = self.informers.of("namespaces")
        self.everything = self.context.everything
        self.everything.add_watcher(self._anything_changed)
        self.namespaces.add_handler(self._namespace_changed)

    def _namespace_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and deleting(new):
            self.enqueue(old, new)

    def _anything_changed(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        if new is not None or old is None or not resource.namespaced:
            return
        name = old["metadata"].get("namespace", "")
        namespace = self.namespaces.get(("", name))
        if namespace is not None and deleting(namespace):
            self.queue.add(("", name))

    def sync(self, key: Key) -> None:
        """Delete what is left; when nothing is, let the namespace go."""
        namespace = self.namespaces.get(key)
        if namespace is None or not deleting(namespace) or not namespace["spec"].get("finalizers"):
            return
        kinds, finalizers = self._empty(key[1])
        namespace = self._report(namespace, kinds, finalizers)
        if kinds:
            self.queue.add_after(key, LATER)
            return
        left = [entry for entry in namespace["spec"]["finalizers"] if entry != "kubernetes"]
        self.informers.update(
            "namespaces", {**namespace, "spec": {**namespace["spec"], "finalizers": left}}, "finalize"
        )

    def _empty(self, name: str) -> tuple[Counter[str], Counter[str]]:
        """Delete everything; what remains, by kind and by finalizer."""
        kinds: Counter[str] = Counter()
        finalizers: Counter[str] = Counter()
        for resource in list(self.everything.resources()):
            if not resource.namespaced:
                continue
            items, _ = self.context.client.list(resource.qualified, name)
            for obj in items:
                if not deleting(obj):
                    self.informers.delete(resource.qualified, obj, propagation="Background")
            for obj in self.context.client.list(resource.qualified, name)[0] if items else ():
                kinds[resource.qualified] += 1
                finalizers.update(obj["metadata"].get("finalizers") or ())
        return kinds, finalizers

    def _report(self, namespace: Object, kinds: Counter[str], finalizers: Counter[str]) -> Object:
        status = namespace.get("status") or {}
        conditions = status.get("conditions") or []
        for kind, (reason, message) in FAILURES.items():
            conditions = with_condition(conditions, kind, "False", reason=reason, message=message)
        remaining = ", ".join(f"{kind} has {count} resource instances" for kind, count in sorted(kinds.items()))
        waiting = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        conditions = _remaining(
            conditions,
            "NamespaceContentRemaining",
            ("SomeResourcesRemain", f"Some resources are remaining: {remaining}") if kinds else None,
            ("ContentRemoved", "All content successfully removed"),
        )
        conditions = _remaining(
            conditions,
            "NamespaceFinalizersRemaining",
            ("SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {waiting}")
            if finalizers
            else None,
            ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
        )
        fresh = {**status, "phase": "Terminating", "conditions": conditions}
        try:
            return self.write_status(namespace, fresh)
        except ApiError as error:
            if error.code != 409:
                raise
            latest = self.context.client.get("namespaces", namespace["metadata"]["name"])
            return latest if uid_of(latest) == uid_of(namespace) else namespace


def _remaining(
    conditions: list[Object], kind: str, problem: tuple[str, str] | None, fine: tuple[str, str]
) -> list[Object]:
    reason, message = problem or fine
    return with_condition(conditions, kind, "True" if problem else "False", reason=reason, message=message)
