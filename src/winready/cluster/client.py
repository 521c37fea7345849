"""The verbs of the Kubernetes API over plain dicts: thin, async, with a deadline on every call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, cast

from winready.cluster.errors import AlreadyExists, Conflict, Expired, Forbidden, NotFound
from winready.cluster.execution import Execution, execute
from winready.cluster.kubeconfig import Target
from winready.cluster.resources import NODES, PODS, Resource
from winready.cluster.transport import Expected, Transport
from winready.cluster.watch import Event, follow

if TYPE_CHECKING:
    import aiohttp

Object = dict[str, Any]
Objects = list[Object]
Command = list[str]
PAGE = 500
EXPIRED = 10
"""How often a list is begun again whose snapshot was lost."""
EXECS_AT_ONCE = 48
"""Commands under way at the same time: each is a connection through the API server to a kubelet and a new process."""
FIELD_MANAGER = "winready"
PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
PatchKind = Literal["json", "merge", "strategic", "apply"]


class Client:
    """One cluster, one user."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._exec_gate = asyncio.Semaphore(EXECS_AT_ONCE)

    @property
    def patience(self) -> float:
        """Wall seconds after which a call is given up, unless it says otherwise."""
        return self.transport.patience

    def limit_execs(self, at_once: int) -> None:
        """Run fewer commands at the same time."""
        self._exec_gate = asyncio.Semaphore(at_once)

    @classmethod
    @asynccontextmanager
    async def connect(cls, target: Target, connector: aiohttp.BaseConnector | None = None) -> AsyncIterator[Client]:
        """Open the connection to a target and close it at the end; ``connector`` replaces TCP."""
        async with Transport(target, connector) as transport:
            yield cls(transport)

    async def version(self) -> dict[str, str]:
        """What the API server says of itself at ``/version``."""
        answer = await self.transport.call("GET", "/version", expected=_says_version)
        return cast(dict[str, str], answer.body)

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """One object; raises `NotFound`."""
        answer = await self.transport.call("GET", resource.path(namespace, name), expected=_object(resource, name))
        return cast(Object, answer.body)

    async def find(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        """One object, or None."""
        try:
            return await self.get(resource, name, namespace)
        except NotFound:
            return None

    async def list(
        self, resource: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> Objects:
        """All objects of a kind, page by page."""
        items, _ = await self.list_versioned(resource, namespace, labels=labels, fields=fields)
        return items

    async def list_versioned(
        self, resource: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> tuple[Objects, str]:
        """All objects of a kind and the resource version to watch from."""
        query = {"limit": str(PAGE), **selection(labels, fields)}
        items: Objects = []
        expired = 0
        while True:
            try:
                answer = await self.transport.call(
                    "GET", resource.path(namespace), query=query, expected=_list_of(resource)
                )
            except Expired:
                expired += 1
                if expired > EXPIRED:
                    raise
                if "continue" in query:
                    # The snapshot behind the page token is gone: begin again, in one piece.
                    query = selection(labels, fields)
                    items = []
                else:
                    await asyncio.sleep(min(0.1 * 2**expired, 5.0))
                continue
            # Items of a list leave out what the list says for all of them.
            items += [
                {"apiVersion": resource.api_version, "kind": resource.kind, **item}
                for item in answer.body.get("items") or []
            ]
            metadata = answer.body.get("metadata") or {}
            if not metadata.get("continue"):
                return items, str(metadata.get("resourceVersion") or "")
            query["continue"] = metadata["continue"]

    async def create(
        self, resource: Resource, obj: Object, namespace: str | None = None, *, dry_run: bool = False
    ) -> Object:
        """Create an object. If a lost answer hid that it was created, the object itself is returned."""
        query = {"fieldManager": FIELD_MANAGER, **({"dryRun": "All"} if dry_run else {})}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        name = (obj.get("metadata") or {}).get("name")
        try:
            answer = await self.transport.call(
                "POST", resource.path(namespace), query=query, body=body, expected=_object(resource, name)
            )
        except AlreadyExists as error:
            if not error.unsure or not name:
                raise
            try:
                made = await self.find(resource, name, namespace)
            except Forbidden:
                # Nobody reads a secret only to see that it is there.
                return body
            if made is None or not _made_of(made, obj):
                raise
            return made
        return cast(Object, answer.body)

    async def replace(self, resource: Resource, obj: Object, *, subresource: str | None = None) -> Object:
        """Write a whole object back; raises `Conflict` when it was changed meanwhile."""
        metadata = obj["metadata"]
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        query, expected = {"fieldManager": FIELD_MANAGER}, _object(resource, metadata["name"])
        answer = await self.transport.call("PUT", path, query=query, body=obj, expected=expected)
        return cast(Object, answer.body)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        kind: PatchKind = "merge",
        subresource: str | None = None,
        force: bool = False,
        manager: str = FIELD_MANAGER,
        dry_run: bool = False,
    ) -> Object:
        """Change part of an object; ``kind="apply"`` is server-side apply, in the name of ``manager``."""
        query = {"fieldManager": manager, **({"force": "true"} if force else {})}
        query |= {"dryRun": "All"} if dry_run else {}
        path = resource.path(namespace, name, subresource)
        answer = await self.transport.call(
            "PATCH", path, query=query, body=patch, content_type=PATCH_TYPES[kind], expected=_object(resource, name)
        )
        return cast(Object, answer.body)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace: int | None = None,
        uid: str | None = None,
        propagation: str = "Background",
    ) -> bool:
        """Ask for deletion. False when there is no such object (or, with ``uid``, no longer that one)."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        try:
            await self.transport.call("DELETE", resource.path(namespace, name), body=options, expected=_removal)
        except NotFound:
            return False
        except Conflict:
            if uid is None:
                raise
            return False
        return True

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
    ) -> AsyncIterator[Event]:
        """Every object there is, then every change, without end: lost connections and 410 are mended inside."""
        return follow(self, resource, namespace, selection(labels, fields))

    async def exec(
        self,
        namespace: str,
        pod: str,
        container: str,
        command: Command,
        *,
        deadline: float,
        stdin: bytes | None = None,
        beside: bool = False,
    ) -> Execution:
        """Run a command in a container: exit code and both streams. ``deadline`` is in wall seconds.

        One that lasts ``beside`` others does not count among those that run at once.
        """
        path = PODS.path(namespace, pod, "exec")
        async with nullcontext() if beside else self._exec_gate:
            return await execute(self.transport, path, container, command, deadline=deadline, stdin=stdin)

    async def logs(self, namespace: str, pod: str, container: str, *, tail: int = 500, previous: bool = False) -> str:
        """The last lines that a container wrote."""
        query = {"container": container, "tailLines": str(tail), **({"previous": "true"} if previous else {})}
        answer = await self.transport.call("GET", PODS.path(namespace, pod, "log"), query=query, media="text/plain")
        return cast(bytes, answer.body).decode("utf-8", errors="replace")

    async def node_proxy(self, node: str, path: str, *, key: str) -> Object:
        """A kubelet's own endpoint, such as ``stats/summary``, through the API server; its document has a ``key``."""
        path = NODES.path(None, node, f"proxy/{path}")
        answer = await self.transport.call("GET", path, expected=lambda body: _has(body, key))
        return cast(Object, answer.body)


def selection(labels: str, fields: str) -> dict[str, str]:
    """The query of a label and a field selector."""
    query = {}
    if labels:
        query["labelSelector"] = labels
    if fields:
        query["fieldSelector"] = fields
    return query


def is_discovery(body: Any) -> bool:
    """Whether this is what an API server says of one of its groups."""
    return isinstance(body, dict) and body.get("kind") == "APIResourceList"


def _says_version(body: Any) -> bool:
    return isinstance(body, dict) and isinstance(body.get("gitVersion"), str)


def _has(body: Any, key: str) -> bool:
    return isinstance(body, dict) and key in body


def _object(resource: Resource, name: str | None) -> Expected:
    """An object of a kind, of that name if there is one."""

    def fits(body: Any) -> bool:
        if not isinstance(body, dict) or body.get("kind") != resource.kind:
            return False
        metadata = body.get("metadata")
        return name is None or (isinstance(metadata, dict) and metadata.get("name") == name)

    return fits


def _list_of(resource: Resource) -> Expected:
    def fits(body: Any) -> bool:
        if not _has(body, "items") or body.get("kind") not in (None, f"{resource.kind}List"):
            return False
        items = body["items"] or []
        return isinstance(items, list) and all(_has(item, "metadata") for item in items)

    return fits


def _removal(body: Any) -> bool:
    """A removed object, or a word that it is removed."""
    return isinstance(body, dict) and body.get("kind") != "List" and (_has(body, "metadata") or _has(body, "status"))


def _made_of(made: Object, wanted: Object) -> bool:
    """Whether this is what was to be created, and not another object of that name or one that is going."""
    labels = (wanted["metadata"].get("labels") or {}).items()
    return labels <= (made["metadata"].get("labels") or {}).items() and not made["metadata"].get("deletionTimestamp")
