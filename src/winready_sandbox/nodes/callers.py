"""Who may call a kubelet: the API server with its certificate, and whoever it vouches for and authorizes."""

from __future__ import annotations

import ssl

from aiohttp import web

from winready_sandbox.apiclient import ApiClient, ApiFailure, ApiUnreachable
from winready_sandbox.wire import INSIDE

_SUBRESOURCES = {"stats": "stats", "metrics": "metrics", "logs": "log", "pods": "pods", "healthz": "healthz"}
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Callers:
    """Decides as a kubelet with webhook authentication and authorization does."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def authorize(self, request: web.Request) -> tuple[int, str] | None:
        """None for a welcome caller, else how to turn it away."""
        transport = request.transport
        if transport is not None and transport.get_extra_info(INSIDE):
            # Only an embedded API server comes this way.
            return None
        secured = transport.get_extra_info("ssl_object") if transport is not None else None
        if isinstance(secured, ssl.SSLObject) and secured.getpeercert():
            return None
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return 401, "Unauthorized"
        try:
            user = await self._user(token)
            if user is None:
                return 401, "Unauthorized"
            return await self._refusal(user, request)
        except (ApiFailure, ApiUnreachable) as error:
            return 500, f"Authorization error: {error}"

    async def _user(self, token: str) -> dict[str, object] | None:
        review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}}
        answer = await self._client.create("tokenreviews", review)
        status = answer.get("status", {})
        return dict(status.get("user") or {}) if status.get("authenticated") else None

    async def _refusal(self, user: dict[str, object], request: web.Request) -> tuple[int, str] | None:
        first = request.path.strip("/").partition("/")[0]
        subresource = _SUBRESOURCES.get(first, "proxy")
        attributes = {"verb": _VERBS.get(request.method, "get"), "resource": "nodes", "subresource": subresource}
        spec = {"user": user.get("username"), "groups": user.get("groups") or [], "resourceAttributes": attributes}
        review = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec}
        answer = await self._client.create("subjectaccessreviews", review)
        if answer.get("status", {}).get("allowed"):
            return None
        words = f"Forbidden (user={user.get('username')}, verb={attributes['verb']}, resource=nodes, "
        return 403, words + f"subresource={subresource})"
