"""How simulated components talk to an API server, whichever one it is: HTTP, JSON, nothing else.

The virtual kubelets and the network model stand where real agents stand, so they use the Kubernetes API as
outsiders. This client shares no code with the one that winready itself uses: one mistake must not hide in both.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec

from winready_sandbox.wire import Accept, WireConnector
from winready_sandbox.wire_http import Answer, WireClient

Object = dict[str, Any]
PatchKind = Literal["merge", "strategic", "json", "apply"]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED", "SYNCED"]

_PATCH_TYPES: dict[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_GROUPS = {
    "leases": "coordination.k8s.io/v1",
    "endpointslices": "discovery.k8s.io/v1",
    "networkpolicies": "networking.k8s.io/v1",
    "deployments": "apps/v1",
    "daemonsets": "apps/v1",
    "replicasets": "apps/v1",
    "statefulsets": "apps/v1",
    "jobs": "batch/v1",
    "csidrivers": "storage.k8s.io/v1",
    "csinodes": "storage.k8s.io/v1",
    "storageclasses": "storage.k8s.io/v1",
    "runtimeclasses": "node.k8s.io/v1",
    "clusterroles": "rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "rbac.authorization.k8s.io/v1",
    "roles": "rbac.authorization.k8s.io/v1",
    "rolebindings": "rbac.authorization.k8s.io/v1",
    "tokenreviews": "authentication.k8s.io/v1",
    "subjectaccessreviews": "authorization.k8s.io/v1",
}
_PAGE = 500
_BUSY_TRIES = 5
_BACKOFF = (0.05, 5.0)


class ApiFailure(Exception):
    """The API server answered that it would not do it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message or reason or str(code))
        self.code = code
        self.reason = reason


class NotFound(ApiFailure):
    """404."""


class Conflict(ApiFailure):
    """409: a stale write, an unmet precondition, or a name that is taken."""


class Gone(ApiFailure):
    """410: the history asked for is no longer kept."""


class ApiUnreachable(Exception):
    """No answer from the API server."""


_FAILURES: dict[int, type[ApiFailure]] = {404: NotFound, 409: Conflict, 410: Gone}


class Change(NamedTuple):
    """One step of a watch; ``SYNCED`` (with an empty object) says that the first listing is through."""

    type: ChangeType
    object: Object


@dataclass(frozen=True)
class Access:
    """Where an API server is and which authority vouches for it."""

    server: str
    ca: str = ""
    """The authority's certificate in PEM; needed for https."""
    certificate: tuple[str, str] | None = None
    """Paths of a client certificate and its key."""


class Transport:
    """The connections to one API server, shared by every component of a process."""

    def __init__(self, access: Access, inside: Accept | None = None) -> None:
        """``inside``: the way to an API server of this process."""
        self.server = access.server.rstrip("/")
        self._inside = inside
        self._tls: ssl.SSLContext | bool = True
        if self.server.startswith("https:"):
            self._tls = ssl.create_default_context(cadata=access.ca)
            if access.certificate:
                self._tls.load_cert_chain(*access.certificate)
        self._session: aiohttp.ClientSession | None = None
        self._wires = WireClient(inside, urlsplit(self.server).netloc) if inside is not None else None

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Answer:
        """One request and its whole answer."""
        if self._wires is not None:
            return await self._wires.request(method, path, headers, body, timeout)
        limit = aiohttp.ClientTimeout(total=timeout)
        url = self.server + path
        async with self.session.request(method, url, data=body, headers=headers, timeout=limit) as response:
            raw = await response.read()
        return Answer(response.status, {name.lower(): value for name, value in response.headers.items()}, raw)

    @property
    def session(self) -> aiohttp.ClientSession:
        """The session, made on first use because it belongs to the running loop."""
        if self._session is None:
            connector = (
                aiohttp.TCPConnector(limit=0, ssl=self._tls, keepalive_timeout=30)
                if self._inside is None
                else WireConnector(self._inside)
            )
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)
        return self._session

    async def close(self) -> None:
        """Hang up."""
        if self._wires is not None:
            self._wires.close()
        if self._session is not None:
            await self._session.close()
            self._session = None


class ApiClient:
    """The API as one identity sees it; resources are named by plural (``pods``, ``leases``)."""

    def __init__(self, transport: Transport, *, token: str = "", agent: str = "winready-sandbox") -> None:
        self._transport = transport
        self._headers = {"Accept": "application/json", "User-Agent": agent}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    @staticmethod
    def path(resource: str, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """The URL path of a resource or of one object."""
        group = _GROUPS.get(resource)
        parts = ["/apis", group] if group else ["/api/v1"]
        if namespace:
            parts += ["namespaces", quote(namespace)]
        parts.append(resource)
        if name:
            parts.append(quote(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
    ) -> Any:
        """One request; waits and tries again while the server says that it is busy."""
        target = path + (f"?{urlencode(query)}" if query else "")
        headers = self._headers if body is None else {**self._headers, "Content-Type": content_type}
        data = None if body is None else msgspec.json.encode(body)
        for attempt in range(_BUSY_TRIES):
            try:
                status, told, raw = await self._transport.ask(method, target, headers, data, timeout)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise ApiUnreachable(f"{method} {path}: {error or type(error).__name__}") from error
            if status < 400:
                return msgspec.json.decode(raw) if raw[:1] in (b"{", b"[") else raw.decode()
            if status not in (429, 503) or attempt == _BUSY_TRIES - 1:
                break
            await asyncio.sleep(_retry_after(told) or 0.1 * 2**attempt)
        raise _failure(status, raw)

    async def get(self, resource: str, name: str, namespace: str = "") -> Object:
        """One object."""
        obj: Object = await self.request("GET", self.path(resource, name, namespace))
        return obj

    async def list(
        self, resource: str, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[list[Object], str]:
        """All objects of a selection, and the resource version of the listing."""
        query = {"limit": str(_PAGE), **_selectors(labels, fields)}
        items: list[Object] = []
        while True:
            page = await self.request("GET", self.path(resource, namespace=namespace), query=query)
            items += page.get("items") or []
            metadata = page.get("metadata", {})
            if not metadata.get("continue"):
                return items, metadata.get("resourceVersion", "")
            query["continue"] = metadata["continue"]

    async def create(self, resource: str, obj: Object, namespace: str = "", *, subresource: str = "") -> Object:
        """Create an object, or POST to a subresource of the object with that name."""
        name = obj["metadata"]["name"] if subresource else ""
        path = self.path(resource, name, namespace, subresource)
        created: Object = await self.request("POST", path, body=obj)
        return created

    async def update(self, resource: str, obj: Object, *, subresource: str = "") -> Object:
        """Replace an object; its resource version, when there, guards against stale writes."""
        metadata = obj["metadata"]
        path = self.path(resource, metadata["name"], metadata.get("namespace", ""), subresource)
        updated: Object = await self.request("PUT", path, body=obj)
        return updated

    async def patch(
        self,
        resource: str,
        name: str,
        patch: object,
        namespace: str = "",
        *,
        subresource: str = "",
        kind: PatchKind = "merge",
    ) -> Object:
        """Change an object in place."""
        query = {"fieldManager": self._headers["User-Agent"], "force": "true"} if kind == "apply" else None
        path = self.path(resource, name, namespace, subresource)
        patched: Object = await self.request("PATCH", path, body=patch, query=query, content_type=_PATCH_TYPES[kind])
        return patched

    async def delete(
        self, resource: str, name: str, namespace: str = "", *, grace: int | None = None, uid: str = ""
    ) -> None:
        """Delete an object, if asked only the one with that UID."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid:
            options["preconditions"] = {"uid": uid}
        await self.request("DELETE", self.path(resource, name, namespace), body=options)

    async def watch(
        self, resource: str, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Change, None]:
        """Every change of a selection for as long as the caller listens.

        Lists first; after an outage or an expired history it lists again and tells the differences, so that
        the caller sees each object appear once and disappear once whatever happened in between. An object that
        disappeared unseen is told with its name and UID only.
        """
        known: dict[tuple[str, str], _Seen] = {}
        version, pause, synced = "", _BACKOFF[0], False
        while True:
            try:
                if not version:
                    items, version = await self.list(resource, namespace, labels=labels, fields=fields)
                    for change in _differences(known, items):
                        yield change
                    if not synced:
                        synced = True
                        yield Change("SYNCED", {})
                query = {
                    "watch": "true",
                    "allowWatchBookmarks": "true",
                    "resourceVersion": version,
                    "timeoutSeconds": str(random.randint(300, 600)),
                    **_selectors(labels, fields),
                }
                async for kind, obj in self._events(self.path(resource, namespace=namespace), query):
                    pause = _BACKOFF[0]
                    version = obj["metadata"]["resourceVersion"]
                    if kind == "BOOKMARK":
                        continue
                    key = _key(obj)
                    if kind == "DELETED":
                        known.pop(key, None)
                    else:
                        known[key] = _Seen.of(obj)
                    yield Change(kind, obj)
            except Gone:
                version = ""
            except (ApiUnreachable, ApiFailure):
                version = "" if not synced else version
                await asyncio.sleep(pause * random.uniform(0.8, 1.2))
                pause = min(pause * 2, _BACKOFF[1])

    async def _events(self, path: str, query: Mapping[str, str]) -> AsyncIterator[tuple[Any, Object]]:
        url = f"{self._transport.server}{path}?{urlencode(query)}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        try:
            async with self._transport.session.get(url, headers=self._headers, timeout=timeout) as response:
                if response.status >= 400:
                    raise _failure(response.status, await response.read())
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        if not line:
                            continue
                        event = msgspec.json.decode(line)
                        if event["type"] == "ERROR":
                            raise _failure(event["object"].get("code", 500), line, event["object"])
                        yield event["type"], event["object"]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachable(f"watch {path}: {error or type(error).__name__}") from error


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class _Seen(NamedTuple):
    """What a watch keeps of an object, to tell the differences after a new listing."""

    uid: str
    version: str

    @classmethod
    def of(cls, obj: Object) -> _Seen:
        return cls(obj["metadata"].get("uid", ""), obj["metadata"]["resourceVersion"])

    def gone(self, key: tuple[str, str]) -> Change:
        """That it has disappeared; its last state went unseen."""
        metadata = {"name": key[1], "uid": self.uid} | ({"namespace": key[0]} if key[0] else {})
        return Change("DELETED", {"metadata": metadata})


def _differences(known: dict[tuple[str, str], _Seen], items: list[Object]) -> list[Change]:
    """Bring ``known`` to what was listed and tell what that changes."""
    listed = {_key(obj): obj for obj in items}
    changes = [known.pop(key).gone(key) for key in list(known) if key not in listed]
    for key, obj in listed.items():
        old, new = known.get(key), _Seen.of(obj)
        known[key] = new
        if old is not None and old.uid != new.uid:
            changes += [old.gone(key), Change("ADDED", obj)]
        elif old is None:
            changes.append(Change("ADDED", obj))
        elif old.version != new.version:
            changes.append(Change("MODIFIED", obj))
    return changes


def _selectors(labels: str, fields: str) -> dict[str, str]:
    query = {"labelSelector": labels} if labels else {}
    return {**query, "fieldSelector": fields} if fields else query


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        return float(headers.get("retry-after", ""))
    except ValueError:
        return 0.0


def _failure(code: int, raw: bytes, status: Object | None = None) -> ApiFailure:
    if status is None:
        try:
            decoded = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            decoded = None
        status = decoded if isinstance(decoded, dict) else {"message": raw[:200].decode(errors="replace")}
    return _FAILURES.get(code, ApiFailure)(code, str(status.get("reason", "")), str(status.get("message", "")))
