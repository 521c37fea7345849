"""Authentication: client certificates, bearer tokens and impersonation, in the order a real server tries them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from multidict import CIMultiDict, CIMultiDictProxy

from winready_sandbox.api.errors import bad_request, unauthorized
from winready_sandbox.api.identity import (
    ANONYMOUS,
    AUTHENTICATED,
    SERVICE_ACCOUNT_PREFIX,
    UNAUTHENTICATED,
    User,
    service_account_user,
)
from winready_sandbox.api.rbac import Authorizer, Request
from winready_sandbox.api.tokens import TokenError, TokenIssuer

Headers = CIMultiDict[str] | CIMultiDictProxy[str]
EXTRA_HEADER = "impersonate-extra-"


class Authenticator:
    """Tells who a request is from."""

    def __init__(self, issuer: TokenIssuer, static_tokens: Mapping[str, User] | None = None) -> None:
        self._issuer = issuer
        self._static = dict(static_tokens or {})

    def add_token(self, token: str, user: User) -> None:
        """Accept one more bearer token."""
        self._static[token] = user

    def user(self, headers: Headers, peer_certificate: Mapping[str, Any] | None) -> User:
        """The user of a request; without credentials the anonymous one, with wrong ones ``ApiError`` 401.

        ``peer_certificate`` is what ``ssl.SSLSocket.getpeercert()`` gives, which is empty for a client without one.
        """
        if peer_certificate:
            return certificate_user(peer_certificate)
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return ANONYMOUS
        try:
            return self.token_user(token.strip())[0]
        except TokenError:
            raise unauthorized() from None

    def token_user(self, token: str, audiences: list[str] | None = None) -> tuple[User, list[str]]:
        """Whom a bearer token stands for and for which audiences; ``TokenError`` if nobody."""
        user = self._static.get(token)
        if user is None:
            return self._issuer.user(token, audiences)
        good_for = [a for a in audiences or self._issuer.audiences if a in self._issuer.audiences]
        if not good_for:
            raise TokenError(f"token audiences {self._issuer.audiences} is invalid for {audiences}")
        return _authenticated(user), good_for


def certificate_user(certificate: Mapping[str, Any]) -> User:
    """The user in a verified client certificate: common name and organizations."""
    pairs = [pair for relative_name in certificate["subject"] for pair in relative_name]
    names = [value for key, value in pairs if key == "commonName"]
    if not names:
        raise unauthorized()
    groups = tuple(value for key, value in pairs if key == "organizationName")
    return _authenticated(User(names[0], groups))


def impersonated(user: User, headers: Headers, authorizer: Authorizer) -> User:
    """The user that a request acts as, when it asks to act as another and may."""
    name = headers.get("Impersonate-User", "")
    groups = headers.getall("Impersonate-Group", [])
    uid = headers.get("Impersonate-Uid", "")
    extra: dict[str, list[str]] = {}
    for key, value in headers.items():
        if key.lower().startswith(EXTRA_HEADER):
            extra.setdefault(unquote(key[len(EXTRA_HEADER) :].lower()), []).append(value)
    if not name:
        if groups or uid or extra:
            raise bad_request("requested impersonation of a group, UID or extra without impersonating a user")
        return user
    if name.startswith(SERVICE_ACCOUNT_PREFIX) and name.count(":") == 3:
        namespace, account = name.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
        wishes = [Request("impersonate", resource="serviceaccounts", namespace=namespace, name=account)]
        target = service_account_user(namespace, account)
    else:
        wishes = [Request("impersonate", resource="users", name=name)]
        target = User(name)
    wishes += [Request("impersonate", resource="groups", name=group) for group in groups]
    authentication = "authentication.k8s.io"
    if uid:
        wishes.append(Request("impersonate", group=authentication, resource="uids", name=uid))
    for key, values in extra.items():
        wishes += [
            Request("impersonate", group=authentication, resource="userextras", subresource=key, name=value)
            for value in values
        ]
    for wish in wishes:
        authorizer.require(user, wish)
    acting = User(name, tuple(groups) or target.groups, uid, extra)
    return acting if name == ANONYMOUS.name else _authenticated(acting)


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)
