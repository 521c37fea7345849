"""Putting the control plane together: a registry with everything that answers for it."""

from __future__ import annotations

from winready_sandbox.api import custom, pods
from winready_sandbox.api.authn import Authenticator
from winready_sandbox.api.escalation import check_grant
from winready_sandbox.api.events import EventSweeper
from winready_sandbox.api.objects import Object
from winready_sandbox.api.rbac import RBAC, Authorizer
from winready_sandbox.api.registry import Admission, Call, Registry
from winready_sandbox.api.resources import ResourceTable
from winready_sandbox.api.reviews import Reviews
from winready_sandbox.api.store import HISTORY, Store
from winready_sandbox.api.tokens import TokenIssuer
from winready_sandbox.versions import DEFAULT_MINOR


def new_registry(minor: int = DEFAULT_MINOR, history: int = HISTORY) -> Registry:
    """An empty cluster of that Kubernetes version, with the rules that every cluster has."""
    registry = Registry(ResourceTable(minor), Store(history))
    pods.install(registry)
    custom.install(registry)
    EventSweeper(registry)
    return registry


def install_access(
    registry: Registry, authenticator: Authenticator, authorizer: Authorizer, issuer: TokenIssuer
) -> None:
    """Answer reviews and token requests, and keep users from granting what they lack."""
    reviews = Reviews(authenticator, authorizer)

    def review(call: Call) -> Object:
        return reviews.create(call.resource.plural, call.body, call.write.user, call.namespace)

    def token(call: Call) -> Object:
        return issuer.request(call.namespace, call.name, call.body)

    def no_escalation(admission: Admission) -> None:
        if admission.resource.group == RBAC and admission.operation != "DELETE":
            where = admission.namespace
            check_grant(authorizer, admission.user, admission.resource.plural, where, admission.obj)

    for resource in registry.resources:
        if reviews.answers(resource.plural):
            registry.actions[resource.group, resource.plural, ""] = review
    registry.actions["", "serviceaccounts", "token"] = token
    registry.admission.append(no_escalation)
