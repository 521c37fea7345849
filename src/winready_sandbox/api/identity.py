"""Who makes a request: users, the groups everybody is in, and how service accounts are named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

MASTERS = "system:masters"
NODES = "system:nodes"
NODE_PREFIX = "system:node:"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
SERVICE_ACCOUNTS = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


@dataclass(frozen=True)
class User:
    """An identity with its groups."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict, hash=False)

    def info(self) -> dict[str, Any]:
        """This user as the API's ``UserInfo``."""
        info: dict[str, Any] = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = self.extra
        return info


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
ADMIN = User("kubernetes-admin", (MASTERS, AUTHENTICATED))
"""The user of the kubeconfig that a sandbox hands out, and of its own bootstrap writes."""


def service_account_user(namespace: str, name: str, uid: str = "", extra: dict[str, list[str]] | None = None) -> User:
    """The user that a service account's token stands for."""
    groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED)
    return User(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}", groups, uid, extra or {})


class Objects(Protocol):
    """Read access to the stored objects; the in-process client has it."""

    def get(self, resource: str, name: str, namespace: str = "") -> dict[str, Any]:
        """One object, or ``ApiError`` 404."""

    def list(self, resource: str, namespace: str = "") -> tuple[list[dict[str, Any]], str]:
        """All objects of a kind and the resource version of the list."""
