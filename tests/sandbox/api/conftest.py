"""A running API server and a plain HTTP client for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from winready_sandbox.api.assembly import new_registry
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.registry import Registry
from winready_sandbox.api.server import ApiServer

Object = dict[str, Any]


@dataclass
class Answer:
    """Status, headers and body of a response."""

    code: int
    headers: Any
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def message(self) -> str:
        return str(self.body["message"])


class Http:
    """Requests as a client on the wire sends them."""

    def __init__(self, session: aiohttp.ClientSession, registry: Registry, server: ApiServer, url: str) -> None:
        self._session = session
        self.registry = registry
        self.server = server
        self.url = url
        self.local = LocalClient(registry)

    async def request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json",
                      accept: str = "application/json", **query: Any) -> Answer:  # fmt: skip
        data = body if isinstance(body, str | bytes | None) else json.dumps(body)
        headers = {"Content-Type": content_type, "Accept": accept}
        params = {key.rstrip("_"): str(value) for key, value in query.items()}
        async with self._session.request(method, path, data=data, headers=headers, params=params) as response:
            return Answer(response.status, response.headers, await response.text())

    async def get(self, path: str, **query: Any) -> Answer:
        return await self.request("GET", path, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.request("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.request("PUT", path, body, **query)

    async def patch(self, path: str, body: Any, kind: str = "merge", **query: Any) -> Answer:
        media = "application/apply-patch+yaml" if kind == "apply" else f"application/{kind}-patch+json"
        return await self.request("PATCH", path, body, content_type=media, **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return await self.request("DELETE", path, body, **query)

    async def watch(self, path: str, **query: Any) -> Watching:
        accept = query.pop("accept", "application/json")
        params = {"watch": "true", **{key: str(value) for key, value in query.items()}}
        response = await self._session.get(path, params=params, headers={"Accept": accept})
        return Watching(response)


class Watching:
    """An open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> Object:
        async with asyncio.timeout(60):
            line = await self.response.content.readline()
        assert line, "the watch ended"
        event: Object = json.loads(line)
        return event

    async def ended(self) -> bool:
        async with asyncio.timeout(60):
            return await self.response.content.readline() == b""

    def close(self) -> None:
        self.response.close()


@pytest.fixture
def registry() -> Registry:
    registry = new_registry()
    for name in ("default", "other"):
        LocalClient(registry).create("namespaces", {"metadata": {"name": name}})
    return registry


@pytest.fixture
async def http(registry: Registry) -> AsyncIterator[Http]:
    server = ApiServer(registry)
    url = f"http://127.0.0.1:{await server.start()}"
    async with aiohttp.ClientSession(url) as session:
        yield Http(session, registry, server, url)
    await server.stop()


def pod(name: str = "p", node: str = "", **labels: str) -> Object:
    """A pod with one container."""
    spec: Object = {"containers": [{"name": "c", "image": "example/c:1"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def config(name: str = "c", **data: str) -> Object:
    """A config map."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
