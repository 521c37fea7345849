"""Garbage collection: objects whose owners are gone go too, or are orphaned first, as the delete asked for."""

from __future__ import annotations

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object
from winready_sandbox.api.resources import Resource
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import Key, deleting, key_of, uid_of

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class GarbageCollector(Controller):
    """Keeps the graph of owners and dependents, by uid; its queue's keys are uids."""

    name = "garbage-collector-controller"

    def watch(self) -> None:
        """Follow everything."""
        self._objects: dict[str, tuple[Resource, Key]] = {}
        self._dependents: dict[str, set[str]] = {}
        self.everything = self.context.everything
        self.everything.add_watcher(self._changed)

    def _changed(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        before, after = _owners(old), _owners(new)
        for owner in before - after:
            self._dependents.get(owner, set()).discard(uid_of(old or {}))
            self._look_again(owner)
        if new is None:
            if old is not None:
                self._gone(uid_of(old))
            return
        uid = uid_of(new)
        self._objects[uid] = (resource, key_of(new))
        for owner in after:
            self._dependents.setdefault(owner, set()).add(uid)
        if any(owner not in self._objects for owner in after) or (deleting(new) and _held(new)):
            self.queue.add(("", uid))
        elif deleting(new) and not (old is not None and deleting(old)):
            for owner in after:
                self._look_again(owner)

    def _gone(self, uid: str) -> None:
        self._objects.pop(uid, None)
        for dependent in self._dependents.pop(uid, set()):
            self.queue.add(("", dependent))

    def _look_again(self, owner: str) -> None:
        """An owner that waits for its dependents may have one less."""
        if owner in self._objects:
            obj = self._object(owner)
            if obj is not None and deleting(obj):
                self.queue.add(("", owner))

    def _object(self, uid: str) -> Object | None:
        known = self._objects.get(uid)
        obj = self.informers.of(known[0].qualified).get(known[1]) if known else None
        return obj if obj is not None and uid_of(obj) == uid else None

    def sync(self, key: Key) -> None:
        """Judge one object."""
        uid = key[1]
        obj = self._object(uid)
        if obj is None:
            return
        resource = self._objects[uid][0]
        if deleting(obj):
            if ORPHAN in _finalizers(obj):
                self._orphan(resource, obj)
            elif FOREGROUND in _finalizers(obj):
                self._foreground(resource, obj)
            return
        references = obj["metadata"].get("ownerReferences") or []
        if references:
            self._collect(resource, obj, references)

    def _collect(self, resource: Resource, obj: Object, references: list[Object]) -> None:
        """Delete an object that no owner holds any more; forget owners that are gone while others remain."""
        states = {reference["uid"]: self._state(reference, obj) for reference in references}
        held = [reference for reference in references if states[reference["uid"]] == "alive"]
        waiting = [reference for reference in references if states[reference["uid"]] == "waiting"]
        if held:
            if len(held) < len(references):
                self._reown(resource, obj, held)
            return
        blocks = any(reference.get("blockOwnerDeletion") for reference in waiting)
        has_dependents = bool(self._dependents.get(uid_of(obj)))
        how = "Foreground" if waiting and blocks and has_dependents else "Background"
        self.informers.delete(resource.qualified, obj, propagation=how if not _held(obj) else None)

    def _state(self, reference: Object, obj: Object) -> str:
        """Of an owner: alive, gone, or waiting for its dependents to go first."""
        owner = self._object(reference["uid"])
        if owner is None and not self._exists(reference, obj):
            return "gone"
        if owner is not None and deleting(owner) and FOREGROUND in _finalizers(owner):
            return "waiting"
        return "alive"

    def _exists(self, reference: Object, obj: Object) -> bool:
        """Ask the API itself: an owner may be newer than what was seen so far. A kind not served may come back."""
        resource = self.context.resources.by_kind(reference["apiVersion"], reference["kind"])
        if resource is None:
            return True
        namespace = obj["metadata"].get("namespace", "") if resource.namespaced else ""
        try:
            found = self.context.client.get(resource.qualified, reference["name"], namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return uid_of(found) == str(reference["uid"])

    def _foreground(self, resource: Resource, obj: Object) -> None:
        """Take the dependents first; the owner goes when none is left that blocks it."""
        blocking = False
        for uid in list(self._dependents.get(uid_of(obj), ())):
            dependent = self._object(uid)
            if dependent is None:
                continue
            reference = next(r for r in dependent["metadata"]["ownerReferences"] if r["uid"] == uid_of(obj))
            blocking = blocking or bool(reference.get("blockOwnerDeletion"))
            if not deleting(dependent):
                self.queue.add(("", uid))
        if not blocking:
            self._release(resource, obj, FOREGROUND)

    def _orphan(self, resource: Resource, obj: Object) -> None:
        """Let the dependents live on without this owner."""
        for uid in list(self._dependents.get(uid_of(obj), ())):
            dependent = self._object(uid)
            if dependent is not None:
                left = [r for r in dependent["metadata"]["ownerReferences"] if r["uid"] != uid_of(obj)]
                self._reown(self._objects[uid][0], dependent, left)
        self._release(resource, obj, ORPHAN)

    def _reown(self, resource: Resource, obj: Object, references: list[Object]) -> None:
        namespace, name = key_of(obj)
        patch = {"metadata": {"uid": uid_of(obj), "ownerReferences": references or None}}
        self.informers.patch(resource.qualified, name, patch, namespace)

    def _release(self, resource: Resource, obj: Object, finalizer: str) -> None:
        namespace, name = key_of(obj)
        left = [entry for entry in _finalizers(obj) if entry != finalizer]
        patch = {"metadata": {"uid": uid_of(obj), "finalizers": left or None}}
        try:
            self.informers.patch(resource.qualified, name, patch, namespace)
        except ApiError as error:
            if error.code != 404:
                raise


def _owners(obj: Object | None) -> set[str]:
    return {reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()} if obj else set()


def _finalizers(obj: Object) -> list[str]:
    return list(obj["metadata"].get("finalizers") or [])


def _held(obj: Object) -> bool:
    """Whether the object waits for the collector."""
    return any(entry in (FOREGROUND, ORPHAN) for entry in _finalizers(obj))
