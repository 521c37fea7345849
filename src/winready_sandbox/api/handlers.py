"""Requests for resources: from the parts of a URL, a query and a body to one call of the registry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from aiohttp import web

from winready_sandbox.api import strategy, watching
from winready_sandbox.api.conversion import fields_to_stored, patch_to_stored, to_stored
from winready_sandbox.api.deletion import DeleteOptions
from winready_sandbox.api.errors import (
    ApiError,
    forbidden_field,
    method_not_allowed,
    no_such_path,
    not_supported,
    required,
    too_long,
    wrong_options,
)
from winready_sandbox.api.identity import User
from winready_sandbox.api.negotiate import is_true, number, patch_kind, read_body, read_data, wanted
from winready_sandbox.api.objects import Object
from winready_sandbox.api.paging import ListOptions
from winready_sandbox.api.paths import Target
from winready_sandbox.api.registry import Call, Registry, Write
from winready_sandbox.api.represent import Representation, answer, encode, warn
from winready_sandbox.api.resources import Resource
from winready_sandbox.api.scale import patch_scale, read_scale, write_scale
from winready_sandbox.api.store import Entry

CONNECTIONS = ("attach", "exec", "log", "portforward", "proxy")
"""Subresources that a node answers, not the registry."""


@dataclass(frozen=True)
class Asked:
    """One request for a resource."""

    request: web.Request
    target: Target
    resource: Resource
    user: User
    verb: str
    stored: Resource

    @property
    def query(self) -> dict[str, str]:
        """The query, the first value of each name."""
        return {key: self.request.query[key] for key in self.request.query}

    @property
    def shown(self) -> Representation:
        """The form that the client wants."""
        accept = wanted(self.request.headers.get("Accept", ""))
        return Representation(self.resource, accept, self.request.query.get("includeObject") or "Metadata")

    def write(self) -> Write:
        """How the client writes."""
        query = self.request.query
        options = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
        kind = options.get(self.verb, "DeleteOptions")
        if (dry := query.get("dryRun", "")) not in ("", "All"):
            raise wrong_options(kind, not_supported("dryRun", [dry], ["All"]))
        if len(query.get("fieldManager", "")) > LONGEST_MANAGER:
            raise wrong_options(kind, too_long("fieldManager", LONGEST_MANAGER))
        agent = self.request.headers.get("User-Agent", "").partition("/")[0]
        manager = query.get("fieldManager") or agent or "unknown"
        fields = query.get("fieldValidation") or "Warn"
        if fields not in ("Ignore", "Warn", "Strict"):
            raise wrong_options(kind, not_supported("fieldValidation", fields, ["", "Ignore", "Strict", "Warn"]))
        return Write(self.user, manager, dry_run=dry == "All", force=is_true(query.get("force")), fields=fields)

    def options(self) -> ListOptions:
        """What the client says about a list."""
        query = self.request.query
        number(query, "timeoutSeconds")
        return ListOptions(
            query.get("labelSelector", ""),
            fields_to_stored(self.resource, query.get("fieldSelector", "")),
            number(query, "limit"),
            query.get("continue", ""),
            query.get("resourceVersion", ""),
            query.get("resourceVersionMatch", ""),
        )

    async def body(self) -> Object:
        """The object that the client sent."""
        return read_body(await self.request.read(), self.request.headers.get("Content-Type", ""))


LONGEST_MANAGER = 128
Handler = Callable[[Asked], Awaitable[web.StreamResponse]]


class Handlers:
    """The verbs of the API over HTTP."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._by_verb: dict[str, Handler] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def check(self, target: Target, verb: str) -> Resource:
        """The resource that a path means; 404 or 405 when it does not serve that."""
        resource = self._registry.resources.by_path(target.group, target.version, target.plural)
        if resource is None or (target.namespace and not resource.namespaced and target.plural != "namespaces"):
            raise no_such_path()
        allowed: tuple[str, ...] = resource.verbs
        if target.subresource:
            path = resource.subresource(target.subresource)
            if path is None:
                raise no_such_path()
            allowed = path.verbs
        misplaced = verb == "create" and bool(target.name) is not bool(target.subresource)
        if verb not in allowed or misplaced or (verb in ("update", "patch") and not target.name):
            raise method_not_allowed()
        return resource

    async def handle(self, asked: Asked) -> web.StreamResponse:
        """Answer a request that was let in."""
        return await self._by_verb[asked.verb](asked)

    async def _get(self, asked: Asked) -> web.StreamResponse:
        target = asked.target
        if target.subresource == "scale":
            return answer(encode(read_scale(self._registry, asked.resource, target.name, target.namespace)))
        entry = self._registry.get(asked.stored, target.name, target.namespace)
        return self._one(asked, entry)

    async def _list(self, asked: Asked) -> web.StreamResponse:
        listing = self._registry.list(asked.stored, asked.target.namespace, asked.options())
        return answer(asked.shown.many(listing), content_type=asked.shown.content_type)

    async def _watch(self, asked: Asked) -> web.StreamResponse:
        query, shown, options = asked.request.query, asked.shown, asked.options()
        fields = options.fields
        if asked.target.name:
            fields = f"metadata.name={asked.target.name}" + (f",{fields}" if fields else "")
        initial = is_true(query.get("sendInitialEvents"))
        if query.get("sendInitialEvents") and options.match != "NotOlderThan":
            detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise wrong_options("ListOptions", forbidden_field("resourceVersionMatch", detail))
        since = "" if initial else options.version
        if query.get("sendInitialEvents") and not initial and since in ("", "0"):
            since = str(self._registry.store.version)
        try:
            watch = self._registry.watch(
                asked.stored, asked.target.namespace, since=since, labels=options.labels, fields=fields
            )
        except ApiError as error:
            if error.code != 410:
                raise
            return await watching.stream_error(asked.request, error)
        bookmarks = is_true(query.get("allowWatchBookmarks"))
        return await watching.stream(
            asked.request,
            watch,
            self._registry.store,
            shown,
            timeout=number(query, "timeoutSeconds"),
            bookmarks=bookmarks,
            initial_end=initial and bookmarks,
        )

    async def _create(self, asked: Asked) -> web.StreamResponse:
        target, write = asked.target, asked.write()
        body = await asked.body()
        if target.subresource or asked.resource.virtual:
            call = Call(asked.resource, target.subresource, target.namespace, target.name, body, write)
            return answer(encode(self._registry.act(call)), 201)
        body = to_stored(asked.resource, body)
        with _told(write):
            entry = self._registry.create(asked.stored, body, target.namespace, write)
        return _warned(self._one(asked, entry, 201), write)

    async def _update(self, asked: Asked) -> web.StreamResponse:
        target, write = asked.target, asked.write()
        body = await asked.body()
        if target.subresource == "scale":
            scaled = write_scale(self._registry, asked.resource, target.name, target.namespace, body, write)
            return answer(encode(scaled))
        created = self._is_new(asked)
        with _told(write):
            entry = self._registry.update(
                asked.stored,
                to_stored(asked.resource, body),
                name=target.name,
                namespace=target.namespace,
                subresource=target.subresource,
                write=write,
            )
        return _warned(self._one(asked, entry, 201 if created else 200), write)

    async def _patch(self, asked: Asked) -> web.StreamResponse:
        target, write = asked.target, asked.write()
        content_type = asked.request.headers.get("Content-Type", "")
        kind = patch_kind(content_type)
        if kind == "apply" and not asked.request.query.get("fieldManager"):
            raise wrong_options("PatchOptions", required("fieldManager", "is required for apply patch"))
        patch = read_data(await asked.request.read(), "application/yaml" if kind == "apply" else "application/json")
        if isinstance(patch, dict):
            patch = patch_to_stored(asked.resource, patch)
        if target.subresource == "scale":
            scaled = patch_scale(self._registry, asked.resource, target.name, target.namespace, patch, kind, write)
            return answer(encode(scaled))
        created = self._is_new(asked)
        with _told(write):
            entry = self._registry.patch(
                asked.stored,
                target.name,
                patch,
                target.namespace,
                kind=kind,
                subresource=target.subresource,
                write=write,
            )
        return _warned(self._one(asked, entry, 201 if created else 200), write)

    async def _delete(self, asked: Asked) -> web.StreamResponse:
        target, resource = asked.target, asked.resource
        how = await self._delete_options(asked)
        entry, gone = self._registry.delete(asked.stored, target.name, target.namespace, how, asked.write())
        if not gone or resource.storage in strategy.RETURNS_DELETED_OBJECT:
            return self._one(asked, entry)
        details = {"name": target.name, "group": resource.group, "kind": resource.plural}
        details["uid"] = entry.obj["metadata"]["uid"]
        return answer(encode(success({key: value for key, value in details.items() if value})))

    async def _delete_collection(self, asked: Asked) -> web.StreamResponse:
        how = await self._delete_options(asked)
        namespace = asked.target.namespace
        listing = self._registry.delete_collection(asked.stored, namespace, asked.options(), how, asked.write())
        return answer(asked.shown.many(listing), content_type=asked.shown.content_type)

    async def _delete_options(self, asked: Asked) -> DeleteOptions:
        data = await asked.request.read()
        body = read_body(data, asked.request.headers.get("Content-Type", "")) if data.strip() else None
        return DeleteOptions.read(body, asked.request.query)

    def _is_new(self, asked: Asked) -> bool:
        key = self._registry.key(asked.stored, asked.target.name, asked.target.namespace)
        return self._registry.bucket(asked.stored).get(key) is None

    def _one(self, asked: Asked, entry: Entry, status: int = 200) -> web.Response:
        shown = asked.shown
        return answer(shown.one(entry), status, shown.content_type)


@contextmanager
def _told(write: Write) -> Iterator[None]:
    """A refusal comes with what its reader should be told, too."""
    try:
        yield
    except ApiError as error:
        error.warnings = write.warnings
        raise


def _warned(response: web.Response, write: Write) -> web.Response:
    """The response with what its reader should be told, as ``kubectl`` shows it."""
    warn(response, write.warnings)
    return response


def success(details: Object) -> Object:
    """The Status of a delete that is done."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
