"""The generic registry: what every kind has in common when it is created, read, replaced, patched and deleted.

Everything but watching is synchronous, so one turn of the event loop is one transaction and no write can be
lost between reading an object and storing it. Objects handed in belong to the registry; objects handed out
are shared and must not be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from winready_sandbox.api import deletion, paging, patching, strategy
from winready_sandbox.api.defaults import apply_defaults
from winready_sandbox.api.deletion import DeleteOptions
from winready_sandbox.api.errors import (
    ApiError,
    FieldError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    method_not_allowed,
    not_found,
    unprocessable,
)
from winready_sandbox.api.identity import ADMIN, User
from winready_sandbox.api.objects import Object, fresh, generated_name, ordered, timestamp
from winready_sandbox.api.paging import Listing, ListOptions
from winready_sandbox.api.patches.apply import track_update
from winready_sandbox.api.patches.managers import only_times_differ
from winready_sandbox.api.resources import Resource, ResourceTable
from winready_sandbox.api.selectors import FieldClause, field_clauses, label_requirements, predicate
from winready_sandbox.api.shapes import conform
from winready_sandbox.api.store import EVERYTHING, Bucket, Entry, Event, Store, Topic, Watch
from winready_sandbox.api.validation import validate
from winready_sandbox.api.validation.parts import pod_part
from winready_sandbox.chance import unique


@dataclass(frozen=True)
class Write:
    """Who writes, in which way."""

    user: User = ADMIN
    manager: str = "unknown"
    dry_run: bool = False
    force: bool = False
    fields: str = ""
    """What becomes of fields that a kind does not have: Ignore, Warn or Strict; empty trusts the writer's shapes."""
    warnings: list[str] = field(default_factory=list)
    """What the writer should be told although the write succeeds."""


@dataclass
class Admission:
    """A write on its way in; hooks may change ``obj`` or raise ``ApiError``."""

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    obj: Object
    old: Object | None
    user: User
    dry_run: bool
    warnings: list[str] = field(default_factory=list)
    """What the writer is told although nobody refuses."""


@dataclass(frozen=True)
class Call:
    """A create that stores no object of its own: a review, a binding, an eviction, a token request."""

    resource: Resource
    subresource: str
    namespace: str
    name: str
    body: Object
    write: Write


Hook = Callable[[Admission], None]
Action = Callable[[Call], Object]
Committed = Callable[[Resource, Entry, bool], None]


@dataclass
class Registry:
    """All objects of one cluster behind the verbs of the API."""

    resources: ResourceTable = field(default_factory=ResourceTable)
    store: Store = field(default_factory=Store)
    admission: list[Hook] = field(default_factory=list)
    validating: list[Hook] = field(default_factory=list)
    """Asked about what is complete and valid, last of all; they change nothing."""
    actions: dict[tuple[str, str, str], Action] = field(default_factory=dict)
    """What answers a create of (group, plural, subresource) that stores nothing of its own."""
    committed: list[Committed] = field(default_factory=list)
    """Called after each write with the kind, the entry and whether it is gone."""

    def bucket(self, resource: Resource) -> Bucket:
        """Where the objects of a kind are."""
        return self.store.bucket(resource.storage)

    def key(self, resource: Resource, name: str, namespace: str) -> tuple[str, str]:
        """The key of an object; cluster-scoped ones have no namespace."""
        return (namespace if resource.namespaced else "", name)

    # Reading

    def get(self, resource: Resource, name: str, namespace: str = "") -> Entry:
        """One object, or 404."""
        entry = self.bucket(resource).get(self.key(resource, name, namespace))
        if entry is None:
            raise not_found(resource.plural, resource.group, name)
        return entry

    def list(self, resource: Resource, namespace: str = "", options: ListOptions | None = None) -> Listing:
        """The selected objects, in pages if wanted, at the current or an older version."""
        options = options or ListOptions()
        clauses = field_clauses(options.fields, resource)
        matches = predicate(label_requirements(options.labels), clauses)
        where = namespace if resource.namespaced else ""
        return paging.page(self.bucket(resource), self.store.version, _topic(clauses), where, matches, options)

    def watch(
        self, resource: Resource, namespace: str = "", *, since: str = "", labels: str = "", fields: str = ""
    ) -> Watch:
        """The changes after a version; without one, the present objects come first as ADDED."""
        bucket = self.bucket(resource)
        clauses = field_clauses(fields, resource)
        matches = predicate(label_requirements(labels), clauses)
        where = namespace if resource.namespaced else ""
        topic = _topic(clauses)
        if since in ("", "0"):
            backlog = [Event("ADDED", e.version, e, None) for e in bucket.select(topic, where)]
        else:
            backlog = bucket.since(paging.version_number(since))
        if topic == EVERYTHING and where:
            topic = ("metadata.namespace", where)
        return Watch(bucket, topic=topic, namespace=where, matches=matches, backlog=backlog)

    # Writing

    def create(
        self, resource: Resource, obj: Object, namespace: str = "", write: Write | None = None, *, applied: bool = False
    ) -> Entry:
        """Store a new object."""
        write = write or Write()
        _check_type(resource, obj)
        obj = self._conformed(resource, obj, write)
        metadata = obj["metadata"]
        namespace = _namespace(resource, metadata, namespace)
        if metadata.get("resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = generated_name(metadata["generateName"])
        name = metadata.get("name", "")
        if resource.namespaced:
            self._check_namespace(resource, namespace, name)
        key = self.key(resource, name, namespace)
        existing = self.bucket(resource).get(key) if name else None
        if existing is not None:
            error = already_exists(resource.plural, resource.group, name)
            if "deletionTimestamp" in existing.obj["metadata"]:
                error.message = f"object is being deleted: {error.message}"
            raise error
        metadata.pop("resourceVersion", None)
        metadata["uid"] = unique()
        metadata["creationTimestamp"] = timestamp()
        apply_defaults(resource.kind, resource.group, obj)
        if not applied:
            metadata["managedFields"] = _creators(resource, obj, write.manager)
        strategy.prepare_create(resource, obj)
        admission = Admission(
            "CREATE", resource, "", namespace, name, obj, None, write.user, write.dry_run, write.warnings
        )
        self._admit(admission)
        self._validate(resource, obj, None)
        for hook in self.validating:
            hook(admission)
        obj = ordered(strategy.settled(resource, obj))
        if write.dry_run:
            return Entry(key, obj, self.store.version)
        return self._commit(resource, key, obj)

    def update(self, resource: Resource, obj: Object, *, name: str = "", namespace: str = "", subresource: str = "",
               write: Write | None = None) -> Entry:  # fmt: skip
        """Replace an object, or the part of it that a subresource stands for."""
        write = write or Write()
        _check_type(resource, obj)
        obj = self._conformed(resource, obj, write)
        metadata = obj["metadata"]
        namespace = _namespace(resource, metadata, namespace)
        if name and metadata.setdefault("name", name):
            _check_name(obj, name)
        found = self.bucket(resource).get(self.key(resource, metadata["name"], namespace))
        if found is None and resource.storage in strategy.CREATED_BY_UPDATE and not subresource:
            return self.create(resource, obj, namespace, write)
        entry = found or self.get(resource, metadata["name"], namespace)
        if not resource.unconditional_update and not metadata.get("resourceVersion"):
            error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise unprocessable(resource.plural, resource.group, metadata["name"], [error])
        return self.replace(resource, entry, obj, subresource, write)

    def replace(
        self, resource: Resource, entry: Entry, new: Object, subresource: str, write: Write, *, applied: bool = False
    ) -> Entry:
        """Store what remains of a write after everything that may not change is put back."""
        old, sent = entry.obj, new["metadata"]
        name = entry.key[1]
        if sent.get("resourceVersion") not in (None, "", old["metadata"]["resourceVersion"]):
            raise conflict(resource.plural, resource.group, name)
        if sent.get("uid") not in (None, "", old["metadata"]["uid"]):
            path = "/".join(filter(None, ("/registry", resource.plural, *entry.key)))
            detail = f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: "
            detail += f"Precondition failed: UID in precondition: {sent['uid']}, UID in object meta: "
            raise conflict(resource.plural, resource.group, name, detail + old["metadata"]["uid"])
        if not subresource:
            apply_defaults(resource.kind, resource.group, new)
        obj = strategy.prepare_update(resource, new, old, subresource)
        obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        admission = Admission(
            "UPDATE", resource, subresource, entry.key[0], name, obj, old, write.user, write.dry_run, write.warnings
        )
        self._admit(admission)
        if not subresource:
            self._validate(resource, obj, old)
        elif subresource in strategy.POD_PARTS:
            self._refuse(resource, obj, pod_part(subresource, obj, old, self.resources.minor))
        for hook in self.validating:
            hook(admission)
        obj = strategy.settled(resource, obj)
        if not applied:
            obj = track_update(old, obj, write.manager, "Update", subresource)
        if obj == old or (applied and only_times_differ(obj, old)):
            return entry
        return self.put(resource, entry, obj, write)

    def put(self, resource: Resource, entry: Entry, obj: Object, write: Write, subresource: str | None = None) -> Entry:
        """Store a finished new state; what was only waiting for this state to go is gone with it."""
        if subresource is not None:
            obj = track_update(
                entry.obj, {**obj, "metadata": dict(obj["metadata"])}, write.manager, "Update", subresource
            )
        obj = ordered(obj)
        if write.dry_run:
            return Entry(entry.key, obj, entry.version)
        entry = self._commit(resource, entry.key, obj)
        return self._remove(resource, entry.key) if deletion.finished(resource, obj) else entry

    def patch(self, resource: Resource, name: str, patch: Any, namespace: str = "", *, kind: str,
              subresource: str = "", write: Write | None = None) -> Entry:  # fmt: skip
        """Change an object by a ``json``, ``merge``, ``strategic`` or ``apply`` patch; apply also creates."""
        write = write or Write()
        entry = self.bucket(resource).get(self.key(resource, name, namespace))
        if kind != "apply":
            entry = entry or self.get(resource, name, namespace)
            wanted = patching.patched(resource, entry.obj, patch, kind)
            wanted = self._decoded(resource, _unshared(wanted, subresource), write, subresource)
            _check_name(wanted, name)
            _check_uid(resource, wanted, entry.obj)
            return self.replace(resource, entry, wanted, subresource, write)
        if entry is None and subresource:
            raise not_found(resource.plural, resource.group, name)
        live = None if entry is None else entry.obj
        wanted = patching.applied(
            resource, live, patch, name, write.manager, force=write.force, subresource=subresource
        )
        if entry is None:
            return self.create(resource, wanted, namespace, write, applied=True)
        wanted = self._conformed(resource, _unshared(wanted, subresource), write, subresource)
        return self.replace(resource, entry, wanted, subresource, write, applied=True)

    def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions | None = None,
        write: Write | None = None,
    ) -> tuple[Entry, bool]:  # fmt: skip
        """Delete an object; the answer is its last state and whether it is gone already."""
        options, write = options or DeleteOptions(), write or Write()
        entry = self.get(resource, name, namespace)
        deletion.check_preconditions(resource, entry.obj, options)
        for hook in self.admission:
            hook(Admission("DELETE", resource, "", entry.key[0], name, {}, entry.obj, write.user, options.dry_run))
        left = deletion.marked(resource, entry.obj, options)
        if options.dry_run:
            return entry, left is None
        if left is None:
            last = deletion.last_state(resource, entry.obj)
            return self._remove(resource, entry.key, last), True
        if left == entry.obj:
            return entry, False
        return self._commit(resource, entry.key, left), False

    def delete_collection(
        self, resource: Resource, namespace: str, options: ListOptions, how: DeleteOptions, write: Write | None = None
    ) -> Listing:
        """Delete everything selected."""
        listing = self.list(resource, namespace, options)
        entries = [self.delete(resource, entry.key[1], entry.key[0], how, write)[0] for entry in listing.entries]
        return replace(listing, entries=entries, version=self.store.version)

    def act(self, call: Call) -> Object:
        """Answer a create that stores nothing of its own."""
        action = self.actions.get((call.resource.group, call.resource.plural, call.subresource))
        if action is None:
            raise method_not_allowed()
        return action(call)

    def _commit(self, resource: Resource, key: tuple[str, str], obj: Object) -> Entry:
        entry = self.store.write(resource.storage, key, obj)
        for notify in self.committed:
            notify(resource, entry, False)
        return entry

    def _remove(self, resource: Resource, key: tuple[str, str], last: Object | None = None) -> Entry:
        entry = self.store.remove(resource.storage, key, last)
        for notify in self.committed:
            notify(resource, entry, True)
        return entry

    # Rules of every write

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        entry = self.store.bucket(("", "namespaces")).get(("", namespace))
        if entry is None:
            raise not_found("namespaces", "", namespace)
        if "deletionTimestamp" in entry.obj["metadata"]:
            error = forbidden(
                resource.plural,
                resource.group,
                name,
                f"unable to create new content in namespace {namespace} because it is being terminated",
            )
            message = f"namespace {namespace} is being terminated"
            error.details["causes"] = [
                {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
            ]
            raise error

    def _validate(self, resource: Resource, obj: Object, old: Object | None) -> None:
        self._refuse(resource, obj, validate(resource.kind, resource.group, obj, old, self.resources.minor))

    def _refuse(self, resource: Resource, obj: Object, errors: Sequence[FieldError]) -> None:
        if errors:
            raise unprocessable(resource.kind, resource.group, obj["metadata"].get("name", ""), errors)

    def _admit(self, admission: Admission) -> None:
        for hook in self.admission:
            hook(admission)

    def _conformed(self, resource: Resource, obj: Object, write: Write, subresource: str = "") -> Object:
        """The object in the shape of its kind: 400 for values of a wrong type; unknown fields as the writer asked."""
        if not write.fields:
            return obj
        whole = subresource != "status"
        checked: Object = obj if whole else {key: obj[key] for key in obj if key in ("metadata", "status")}
        shaped, unknown = conform(resource.api_version, resource.kind, checked, self.resources.minor)
        if unknown and write.fields == "Strict":
            listed = ", ".join(f'unknown field "{path}"' for path in unknown)
            raise bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
                f"strict decoding error: {listed}"
            )
        if write.fields == "Warn":
            write.warnings.extend(f'unknown field "{path}"' for path in unknown)
        return shaped if whole else {**obj, **shaped}

    def _decoded(self, resource: Resource, obj: Object, write: Write, subresource: str) -> Object:
        """What a patch leads to; values of a wrong type are the patch's fault then."""
        try:
            return self._conformed(resource, obj, write, subresource)
        except ApiError as error:
            if error.code != 400:
                raise
            raise unprocessable("", "", "", [invalid("patch", obj, error.message)]) from None


def _check_name(obj: Object, name: str) -> None:
    if obj["metadata"].get("name") != name:
        named = obj["metadata"].get("name", "")
        raise bad_request(f"the name of the object ({named}) does not match the name on the URL ({name})")


def _check_uid(resource: Resource, wanted: Object, live: Object) -> None:
    if (uid := wanted["metadata"].get("uid")) not in (None, "", live["metadata"]["uid"]):
        error = invalid("metadata.uid", uid, "field is immutable")
        raise unprocessable(resource.kind, resource.group, live["metadata"]["name"], [error])


def _creators(resource: Resource, obj: Object, manager: str) -> list[Object]:
    """Who owns the fields of a new object: its creator owns what was sent and defaulted, not what admission adds."""
    sent = {key: value for key, value in obj.items() if key != "status" or resource.subresource("status") is None}
    owned: list[Object] = track_update(None, sent, manager)["metadata"].get("managedFields") or []
    return owned


def _unshared(obj: Object, subresource: str) -> Object:
    """A copy where defaults and hooks may change something; writes below an object change only what they bring."""
    return obj if subresource else fresh(obj)


def _topic(clauses: tuple[FieldClause, ...]) -> Topic:
    """The narrowest topic that covers a field selector."""
    exact = {clause.path: clause.value for clause in clauses if clause.equal}
    for path in ("spec.nodeName", "metadata.name"):
        if path in exact:
            return (path, exact[path])
    return EVERYTHING


def _check_type(resource: Resource, obj: Object) -> None:
    """What a body says of itself must be what its path says, and its skeleton must be one."""
    kind, version = obj.setdefault("kind", resource.kind), obj.setdefault("apiVersion", resource.api_version)
    if kind != resource.kind:
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}')
    if version != resource.api_version:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: no kind "{kind}" is registered for version '
            f'"{version}"'
        )
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    metadata = obj["metadata"]
    parts = {"metadata": metadata, "spec": obj.get("spec"), "status": obj.get("status")}
    if isinstance(metadata, dict):
        parts.update((f"metadata.{name}", metadata.get(name)) for name in ("labels", "annotations"))
    for where, part in parts.items():
        if part is not None and not isinstance(part, dict):
            found = "array" if isinstance(part, list) else "string" if isinstance(part, str) else "number"
            raise bad_request(
                f'{kind} in version "{version}" cannot be handled as a {kind}: json: cannot unmarshal {found} into '
                f"field {where} of type object"
            )


def _namespace(resource: Resource, metadata: Object, namespace: str) -> str:
    if not resource.namespaced:
        return ""
    if metadata.setdefault("namespace", namespace or "default") != namespace and namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return str(metadata["namespace"])
