"""The HTTP face of the embedded control plane: who asks, may they, and who answers."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from aiohttp import web
from multidict import CIMultiDictProxy

from winready_sandbox.api import discovery, openapi
from winready_sandbox.api.authn import impersonated
from winready_sandbox.api.conversion import stored_resource
from winready_sandbox.api.errors import ApiError, method_not_allowed
from winready_sandbox.api.handlers import CONNECTIONS, Asked, Handlers
from winready_sandbox.api.identity import ADMIN, User
from winready_sandbox.api.negotiate import is_true
from winready_sandbox.api.objects import Object
from winready_sandbox.api.paths import Target, target, verb
from winready_sandbox.api.rbac import Authorizer, Request
from winready_sandbox.api.registry import Registry
from winready_sandbox.api.represent import answer, encode, warn
from winready_sandbox.versions import release

MAX_BODY = 3 * 1024 * 1024
HEALTH = ("/healthz", "/livez", "/readyz")

log = logging.getLogger(__name__)


class Identifies(Protocol):
    """Tells who a request is from."""

    def user(self, headers: CIMultiDictProxy[str], peer_certificate: Mapping[str, Any] | None) -> User:
        """The user, or ``ApiError`` 401."""


class Connects(Protocol):
    """Passes exec, logs, proxies and their like on to a node."""

    async def connect(self, request: web.Request, target: Target, user: User) -> web.StreamResponse:
        """Answer in the node's name."""


@dataclass(frozen=True)
class Disturbance:
    """What goes wrong with one request."""

    delay: float = 0.0
    error: ApiError | None = None
    reset: bool = False
    expire_history: bool = False


class ApiServer:
    """Serves a registry; without an authenticator everybody is the administrator."""

    def __init__(
        self,
        registry: Registry,
        *,
        authenticator: Identifies | None = None,
        authorizer: Authorizer | None = None,
        nodes: Connects | None = None,
    ) -> None:
        self.registry = registry
        self.nodes = nodes
        self.disturb: Callable[[web.Request, User], Disturbance | None] | None = None
        self.pages: dict[str, Callable[[web.Request], Object]] = {}
        """Further documents by path, such as the keys that service account tokens are signed with."""
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._handlers = Handlers(registry)
        self._runner: web.ServerRunner | None = None

    async def start(self, port: int = 0, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> int:
        """Listen on loopback; the answer is the port."""
        # Every path has the same handler: an application with routes would only cost time.
        server = web.Server(
            cast("Any", self._answer), request_factory=_request, access_log=None, handler_cancellation=True
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=tls, backlog=512)
        await site.start()
        return int(self._runner.addresses[0][1])

    def accept(self) -> asyncio.BaseProtocol:
        """The server's end of a connection inside this process."""
        if self._runner is None or self._runner.server is None:
            raise ConnectionRefusedError("the API server is not up")
        return self._runner.server()

    async def stop(self) -> None:
        """End every watch and close the port."""
        self.registry.store.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            if request.headers.get("Expect", "").lower() == "100-continue":
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                request.writer.output_size = 0
            return await self._serve(request)
        except ApiError as error:
            return _failure(error)
        except web.HTTPRequestEntityTooLarge:
            message = f"Request entity too large: limit is {MAX_BODY}"
            return _failure(ApiError(413, "RequestEntityTooLarge", message))
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            text = f"Internal error occurred: {type(error).__name__} while serving {request.method} {request.path}"
            return _failure(ApiError(500, "InternalError", text))

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        user = self._user(request)
        path = request.path.rstrip("/") or "/"
        found = target(path)
        resource_path = found if found is not None and found.plural else None
        watch = is_true(request.query.get("watch"))
        action = verb(request.method, resource_path, watch) if resource_path else request.method.lower()
        self._authorize(user, action, resource_path, path)
        if self.disturb is not None and (wrong := self.disturb(request, user)) is not None:
            await self._suffer(wrong)
            if wrong.reset and request.transport is not None:
                request.transport.abort()
                return web.Response(status=500)
        if resource_path is None:
            return self._document(request, path)
        if not self.registry.resources.serves(resource_path.group, resource_path.version):
            return _no_page()
        resource = self._handlers.check(resource_path, action)
        if resource_path.subresource in CONNECTIONS:
            if self.nodes is None:
                raise ApiError(503, "ServiceUnavailable", "this control plane has no way to its nodes")
            return await self.nodes.connect(request, resource_path, user)
        stored = stored_resource(self.registry.resources, resource)
        return await self._handlers.handle(Asked(request, resource_path, resource, user, action, stored))

    def _user(self, request: web.Request) -> User:
        if self._authenticator is None:
            return ADMIN
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        user = self._authenticator.user(request.headers, certificate)
        return impersonated(user, request.headers, self._authorizer) if self._authorizer is not None else user

    def _authorize(self, user: User, action: str, found: Target | None, path: str) -> None:
        if self._authorizer is None:
            return
        if found is None:
            wish = Request(action, path=path)
        else:
            wish = Request(action, found.group, found.plural, found.subresource, found.namespace, found.name)
        self._authorizer.require(user, wish)

    async def _suffer(self, wrong: Disturbance) -> None:
        if wrong.delay:
            await asyncio.sleep(wrong.delay)
        if wrong.expire_history:
            self.registry.store.expire_history()
        if wrong.error is not None:
            raise wrong.error

    def _document(self, request: web.Request, path: str) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        if path in HEALTH or path.startswith(tuple(f"{each}/" for each in HEALTH)):
            return web.Response(text="ok")
        if path in ("/api", "/apis"):
            version = discovery.aggregated_version(request.headers.get("Accept", ""))
            if version:
                body = discovery.aggregated(self.registry.resources, version, core=path == "/api")
                return answer(encode(body), content_type=discovery.aggregated_type(version))
        document = self._find_document(request, path)
        if document is None:
            return _no_page()
        return answer(encode(document))

    def _find_document(self, request: web.Request, path: str) -> Object | None:
        table = self.registry.resources
        if path in self.pages:
            return self.pages[path](request)
        if path == "/version":
            return version_info(table.minor)
        if path == "/":
            return {"paths": ["/api", "/api/v1", "/apis", *HEALTH, "/openapi/v2", "/openapi/v3", "/version"]}
        if path == "/api":
            return discovery.legacy_versions(request.host)
        if path == "/apis":
            return discovery.groups(table)
        if path == "/openapi/v2":
            return openapi.swagger(table)
        if path == "/openapi/v3":
            return openapi.paths(table)
        parts = path.strip("/").split("/")
        if parts[:2] == ["openapi", "v3"]:
            found = target("/" + "/".join(parts[2:]))
            return openapi.document(table, found.group, found.version) if found else None
        if parts[0] == "apis" and len(parts) == 2:
            return discovery.group(table, parts[1])
        found = target(path)
        return discovery.resource_list(table, found.group, found.version) if found else None


def version_info(minor: int) -> Object:
    """``/version``."""
    return {
        "major": "1",
        "minor": str(minor),
        "gitVersion": release(minor),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.Request:
    """A request as applications get it, with the limit of the real server."""
    loop = asyncio.get_running_loop()
    return web.Request(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY + 1)


def _no_page() -> web.Response:
    """What the real server says of a path that is none of the API's."""
    return web.Response(status=404, text="404 page not found\n")


def _failure(error: ApiError) -> web.Response:
    response = answer(encode(error.status()), error.code)
    response.headers.update(error.headers)
    warn(response, error.warnings)
    if (seconds := error.details.get("retryAfterSeconds")) is not None:
        response.headers["Retry-After"] = str(seconds)
    return response
