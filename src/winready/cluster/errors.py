"""Trouble on the way to a cluster: a small hierarchy, so that callers catch the narrow class.

Nothing here says that a cluster is not ready. What is wrong with the cluster is a failure
(`winready.cluster.failures`); what is wrong with us, or with the way to it, is an error.
"""

from __future__ import annotations

import re
from typing import Any

from winready.cluster.refusals import Refusal, read_refusal

_RIGHT = re.compile(r"cannot \w+ (resource|path) ")
"""How the API server says that a right is missing; what else is forbidden was refused by something else."""

ANONYMOUS = '"system:anonymous"'
"""What the API server calls who did not say who he is."""


class ClusterError(Exception):
    """Something kept us from talking to the cluster; ``remedy`` says what to do about it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class ConfigError(ClusterError):
    """The way to the cluster is described wrongly: kubeconfig, context, credentials plug-in."""


class ConnectionFailed(ClusterError):
    """No API server answered: refused, reset, not resolved, certificate not trusted."""


class DeadlineExceeded(ClusterError):
    """The call did not end within its deadline."""


class ExecFailed(ClusterError):
    """The exec stream broke, or the runtime could not start the command; there is no exit code to judge."""


class NotStarted(ExecFailed):
    """The command was never started; to try it again cannot do anything twice."""


class ApiError(ClusterError):
    """The API server answered with a failure ``Status``."""

    def __init__(self, code: int, status: dict[str, Any]) -> None:
        super().__init__(str(status.get("message") or f"the API server answered {code}"))
        self.code = code
        self.status = status
        self.reason = str(status.get("reason") or "")
        self.unsure = False
        """An earlier attempt of the same call may have taken effect without our seeing it."""

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The field errors of a 422, the conflicts of a server-side apply."""
        causes: list[dict[str, Any]] = (self.status.get("details") or {}).get("causes") or []
        return causes


class Unauthorized(ApiError):
    """401: the credentials are not accepted (any more)."""

    def __init__(self, code: int, status: dict[str, Any]) -> None:
        super().__init__(code, status)
        self.message = f"the API server does not accept the credentials ({self.message}); they may have expired"
        self.remedy = "log in again, or renew the credentials in the kubeconfig"


class Forbidden(ApiError):
    """403: a right is missing, or something that does not name itself refuses."""

    def __init__(self, code: int, status: dict[str, Any]) -> None:
        super().__init__(code, status)
        self.remedy = "look for what in the cluster refuses this: an admission control that does not name itself"
        if ANONYMOUS in self.message:
            self.remedy = "the kubeconfig names no credentials for this user: log in, or name a token or a certificate"
        elif not self.message or _RIGHT.search(self.message):
            self.remedy = "'winready rbac' prints the least rights that a run needs"


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409: a stale write, an unmet precondition, a field owned by somebody else."""


class AlreadyExists(Conflict):
    """409 on create."""


class Expired(ApiError):
    """410: history that the server no longer keeps."""


class Invalid(ApiError):
    """422: the server refuses the object."""


class ServerTrouble(ApiError):
    """429 or 5xx that did not pass within the deadline."""


class Refused(ApiError):
    """An admission control does not let an object in, whoever asks: a quota, a limit range, a webhook, a policy."""

    def __init__(self, code: int, status: dict[str, Any], refusal: Refusal) -> None:
        super().__init__(code, status)
        self.refusal = refusal
        self.remedy = refusal.next_step


class WebhookAway(Refused, ServerTrouble):
    """500 because a webhook does not answer: it may come back while we wait, and it is not the API server's fault."""


def api_error(code: int, status: dict[str, Any]) -> ApiError:
    """The narrow class for an HTTP status."""
    if code == 409:
        return (AlreadyExists if status.get("reason") == "AlreadyExists" else Conflict)(code, status)
    if refusal := read_refusal(str(status.get("message") or "")):
        return (WebhookAway if code >= 500 else Refused)(code, status, refusal)
    narrow = {401: Unauthorized, 403: Forbidden, 404: NotFound, 410: Expired, 422: Invalid}
    if code == 429 or code >= 500:
        return ServerTrouble(code, status)
    return narrow.get(code, ApiError)(code, status)
