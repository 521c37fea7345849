"""Reviews: questions to the API about tokens and rights; answered, never stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from winready_sandbox.api.authn import Authenticator
from winready_sandbox.api.errors import FieldError, bad_request, invalid, required, unprocessable
from winready_sandbox.api.identity import User
from winready_sandbox.api.rbac import Authorizer, Request
from winready_sandbox.api.tokens import TokenError
from winready_sandbox.clock import utc_now

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"

Body = dict[str, Any]
ONE_KIND = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


class Reviews:
    """Answers every kind of review; ``create`` is all there is to them."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._answers: dict[str, tuple[str, str, Callable[[Body, User, str], Body]]] = {
            "tokenreviews": (AUTHENTICATION, "TokenReview", self._token),
            "selfsubjectreviews": (AUTHENTICATION, "SelfSubjectReview", self._self),
            "subjectaccessreviews": (AUTHORIZATION, "SubjectAccessReview", self._subject_access),
            "localsubjectaccessreviews": (AUTHORIZATION, "LocalSubjectAccessReview", self._local_subject_access),
            "selfsubjectaccessreviews": (AUTHORIZATION, "SelfSubjectAccessReview", self._self_access),
            "selfsubjectrulesreviews": (AUTHORIZATION, "SelfSubjectRulesReview", self._self_rules),
        }

    def answers(self, plural: str) -> bool:
        """Whether a resource is a review."""
        return plural in self._answers

    def create(self, plural: str, body: Body, user: User, namespace: str = "") -> Body:
        """The review with its status filled in."""
        group, kind, answer = self._answers[plural]
        spec = body.get("spec") or {}
        metadata = {"creationTimestamp": utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")}
        if namespace:
            metadata["namespace"] = namespace
        review: Body = {"kind": kind, "apiVersion": f"{group}/v1", "metadata": metadata}
        if plural != "selfsubjectreviews":
            review["spec"] = spec
        return {**review, "status": answer(spec, user, namespace)}

    def _token(self, spec: Body, user: User, namespace: str) -> Body:
        token = spec.get("token", "")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        try:
            found, audiences = self._authenticator.token_user(token, spec.get("audiences"))
        except TokenError as error:
            return {"authenticated": False, "user": {}, "error": f"[invalid bearer token, {error}]"}
        return {"authenticated": True, "user": found.info(), "audiences": audiences}

    def _self(self, spec: Body, user: User, namespace: str) -> Body:
        return {"userInfo": user.info()}

    def _subject_access(self, spec: Body, user: User, namespace: str) -> Body:
        _check(spec, "SubjectAccessReview", _subject_errors(spec))
        return self._decide(spec, _subject(spec))

    def _local_subject_access(self, spec: Body, user: User, namespace: str) -> Body:
        errors = _subject_errors(spec)
        attributes = spec.get("resourceAttributes")
        if spec.get("nonResourceAttributes"):
            errors.append(invalid("spec.nonResourceAttributes", "", "disallowed on this kind of request"))
        elif attributes and attributes.get("namespace", "") != namespace:
            field = "spec.resourceAttributes.namespace"
            errors.append(invalid(field, attributes.get("namespace", ""), "must match metadata.namespace"))
        _check(spec, "LocalSubjectAccessReview", errors)
        return self._decide(spec, _subject(spec))

    def _self_access(self, spec: Body, user: User, namespace: str) -> Body:
        _check(spec, "SelfSubjectAccessReview", [])
        return self._decide(spec, user)

    def _self_rules(self, spec: Body, user: User, namespace: str) -> Body:
        if not spec.get("namespace"):
            raise bad_request("no namespace on request")
        rules, problems = self._authorizer.rules(user, spec["namespace"])
        resource_keys = ("verbs", "apiGroups", "resources", "resourceNames")
        status: Body = {
            "resourceRules": [_only(rule, resource_keys) for rule in rules if rule.get("resources")],
            "nonResourceRules": [
                _only(rule, ("verbs", "nonResourceURLs")) for rule in rules if rule.get("nonResourceURLs")
            ],
            "incomplete": bool(problems),
        }
        if problems:
            status["evaluationError"] = ", ".join(problems)
        return status

    def _decide(self, spec: Body, user: User) -> Body:
        decision = self._authorizer.allowed(user, _request(spec))
        return {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}


def _request(spec: Body) -> Request:
    if path := spec.get("nonResourceAttributes"):
        return Request(path.get("verb", ""), path=path.get("path", ""))
    attributes = spec["resourceAttributes"]
    keys = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Request(**{key: attributes.get(key, "") for key in keys})


def _subject(spec: Body) -> User:
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), spec.get("extra") or {})


def _subject_errors(spec: Body) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [invalid("spec.user", "", "at least one of user or group must be specified")]


def _check(spec: Body, kind: str, errors: list[FieldError]) -> None:
    attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if bool(attributes) == bool(path):
        where = "nonResourceAttributes" if attributes else "resourceAttributes"
        detail = "cannot be specified in combination with resourceAttributes" if attributes else ONE_KIND
        errors = [invalid(f"spec.{where}", "null", detail), *errors]
    elif attributes and not attributes.get("verb"):
        errors = [required("spec.resourceAttributes.verb"), *errors]
    if errors:
        raise unprocessable(kind, AUTHORIZATION, "", errors)


def _only(rule: Body, keys: tuple[str, ...]) -> Body:
    return {key: rule[key] for key in keys if rule.get(key)}
