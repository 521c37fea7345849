"""Authorization: privileged group, nodes, then roles and bindings as they are stored at that moment.

Nothing is copied out of the store but an index of the bindings by subject, and that is rebuilt as
soon as one of them is another object than before; stored objects never change in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from winready_sandbox.api.errors import ApiError, forbidden
from winready_sandbox.api.identity import MASTERS, NODE_PREFIX, NODES, SERVICE_ACCOUNT_PREFIX, Objects, User

RBAC = "rbac.authorization.k8s.io"
ROLE_KINDS = {"ClusterRole": "clusterroles", "Role": "roles"}

Rule = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What somebody wants to do: with a resource, or with a path that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def combined(self) -> str:
        """Resource and subresource as rules and messages write them."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True)
class Decision:
    """Allowed or not, and why."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True)
class Grant:
    """One rule that applies to a user, and the words that say where it comes from."""

    rule: Rule
    origin: str


class Authorizer:
    """Decides what a user may do."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._indexes: dict[str, _BindingIndex] = {}

    def allowed(self, user: User, request: Request) -> Decision:
        """Whether the user may do that."""
        if MASTERS in user.groups:
            return Decision(True)
        problems: list[str] = []
        for grant in self._grants(user, request.namespace, problems):
            if rule_allows(grant.rule, request):
                return Decision(True, grant.origin)
        return Decision(False, f"RBAC: {_joined(problems)}" if problems else "")

    def require(self, user: User, request: Request) -> None:
        """Raise the real server's 403 unless the user may do that."""
        decision = self.allowed(user, request)
        if not decision.allowed:
            raise denial(user, request, decision.reason)

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """Every rule that applies to the user in a namespace, and what could not be resolved."""
        if MASTERS in user.groups:
            return [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
            ], []
        problems: list[str] = []
        return [grant.rule for grant in self._grants(user, namespace, problems)], problems

    def role_rules(self, kind: str, name: str, namespace: str) -> list[Rule]:
        """The rules of a role; those of aggregated ones are kept up to date by a controller."""
        role = self._objects.get(ROLE_KINDS[kind], name, namespace if kind == "Role" else "")
        return role.get("rules") or []

    def _grants(self, user: User, namespace: str, problems: list[str]) -> Iterator[Grant]:
        if NODES in user.groups and user.name.startswith(NODE_PREFIX):
            for rule in self.role_rules("ClusterRole", "system:node", ""):
                yield Grant(rule, "")
        yield from self._bound(user, "clusterrolebindings", "", problems)
        if namespace:
            yield from self._bound(user, "rolebindings", namespace, problems)

    def _bound(self, user: User, resource: str, namespace: str, problems: list[str]) -> Iterator[Grant]:
        bindings = self._objects.list(resource, namespace)[0]
        index = self._indexes.get(namespace)
        if index is None or not index.is_of(bindings):
            index = self._indexes[namespace] = _BindingIndex(bindings)
        for binding, subject in index.of(user):
            reference = binding["roleRef"]
            kind, name = reference["kind"], reference["name"]
            try:
                rules = self.role_rules(kind, name, namespace)
            except ApiError as error:
                if error.code != 404:
                    raise
                problems.append(f'{kind.lower()}.{RBAC} "{name}" not found')
                continue
            origin = f"RBAC: allowed by {_origin(binding)} of {kind} {_quote(name)} to {_subject(subject)}"
            for rule in rules:
                yield Grant(rule, origin)


class _BindingIndex:
    """The bindings of one scope by subject."""

    def __init__(self, bindings: list[dict[str, Any]]) -> None:
        self._bindings = bindings
        self._by_subject: dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
        for binding in bindings:
            for subject in binding.get("subjects") or []:
                kind, name = subject.get("kind", ""), subject.get("name", "")
                if kind == "ServiceAccount":
                    account_namespace = subject.get("namespace") or binding["metadata"].get("namespace", "")
                    kind, name = "User", f"{SERVICE_ACCOUNT_PREFIX}{account_namespace}:{name}"
                self._by_subject.setdefault((kind, name), []).append((binding, subject))

    def is_of(self, bindings: list[dict[str, Any]]) -> bool:
        """Whether this is still the index of these bindings."""
        known = self._bindings
        return len(known) == len(bindings) and all(a is b for a, b in zip(known, bindings, strict=True))

    def of(self, user: User) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """The bindings that name the user or one of its groups, with the subject that does."""
        yield from self._by_subject.get(("User", user.name), ())
        for group in user.groups:
            yield from self._by_subject.get(("Group", group), ())


def rule_allows(rule: Rule, request: Request) -> bool:
    """Whether one rule covers a request."""
    verbs = rule.get("verbs") or []
    if request.verb not in verbs and "*" not in verbs:
        return False
    if request.path:
        return any(_path_matches(pattern, request.path) for pattern in rule.get("nonResourceURLs") or [])
    groups = rule.get("apiGroups") or []
    if request.group not in groups and "*" not in groups:
        return False
    resources = rule.get("resources") or []
    wildcard = request.subresource and f"*/{request.subresource}" in resources
    if request.combined not in resources and "*" not in resources and not wildcard:
        return False
    names = rule.get("resourceNames") or []
    return not names or request.name in names


def denial(user: User, request: Request, reason: str = "") -> ApiError:
    """The 403 that the real server answers with."""
    suffix = f": {reason}" if reason else ""
    if request.path:
        return ApiError(
            403, "Forbidden", f'forbidden: User "{user.name}" cannot {request.verb} path "{request.path}"{suffix}'
        )
    where = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
    what = f'resource "{request.combined}" in API group "{request.group}" {where}'
    detail = f'User "{user.name}" cannot {request.verb} {what}{suffix}'
    return forbidden(request.resource, request.group, request.name, detail)


def _path_matches(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _origin(binding: dict[str, Any]) -> str:
    metadata = binding["metadata"]
    if namespace := metadata.get("namespace"):
        return f"RoleBinding {_quote(metadata['name'] + '/' + namespace)}"
    return f"ClusterRoleBinding {_quote(metadata['name'])}"


def _subject(subject: dict[str, Any]) -> str:
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace', '')}"
    return f"{subject['kind']} {_quote(name)}"


def _quote(text: str) -> str:
    return f'"{text}"'


def _joined(problems: list[str]) -> str:
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"
