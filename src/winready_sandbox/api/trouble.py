"""Trouble that an API server can be given: slow answers, refusals, resets, lost history, a meddling webhook.

Only outsiders suffer from it. Nodes and controllers have patience of their own, and their trouble
would be another fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from aiohttp import web

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.identity import NODES, User
from winready_sandbox.api.registry import Admission
from winready_sandbox.api.server import Disturbance


@dataclass
class ApiDefects:
    """Ways in which the API server can be broken; shares are of all calls, evenly spread."""

    delay: float = 0.0
    """Wall seconds added to every answer."""
    too_many: float = 0.0
    """Share answered with 429."""
    errors: float = 0.0
    """Share answered with 500."""
    resets: float = 0.0
    """Share whose connection is dropped."""
    expiry: float = 0.0
    """Share after which the history for watches is gone."""
    strips_pod_os: bool = False
    """New pods lose ``spec.os``."""


@dataclass
class Trouble:
    """Decides for each call what goes wrong with it."""

    insiders: frozenset[str] = frozenset()
    defects: ApiDefects = field(default_factory=ApiDefects)
    _calls: int = 0

    def __call__(self, request: web.Request, user: User) -> Disturbance | None:
        defects = self.defects
        if user.name in self.insiders or NODES in user.groups or defects == ApiDefects():
            return None
        self._calls += 1
        if self._due(defects.too_many):
            error = ApiError(
                429, "TooManyRequests", "the server has received too many requests", {"retryAfterSeconds": 1}
            )
            error.headers["Retry-After"] = "1"
            return Disturbance(error=error)
        if self._due(defects.errors):
            return Disturbance(
                error=ApiError(500, "InternalError", "Internal error occurred: etcdserver: leader changed")
            )
        if self._due(defects.resets):
            return Disturbance(reset=True)
        if self._due(defects.expiry):
            return Disturbance(expire_history=True)
        return Disturbance(delay=defects.delay) if defects.delay else None

    def _due(self, share: float) -> bool:
        return int(self._calls * share) > int((self._calls - 1) * share)

    def meddle(self, admission: Admission) -> None:
        """The webhook that rewrites pods on their way in."""
        if (
            self.defects.strips_pod_os
            and admission.resource.storage == ("", "pods")
            and admission.operation == "CREATE"
        ):
            (admission.obj.get("spec") or {}).pop("os", None)
