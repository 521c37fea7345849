"""Label and field selectors: their grammar, what they match, and what the real server says of wrong ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from winready_sandbox.api.errors import ApiError, bad_request
from winready_sandbox.api.resources import Resource

Object = dict[str, Any]
Predicate = Callable[[Object], bool]

_TOKEN = re.compile(r"\s*(!=|==|=|!|,|\(|\)|>|<|[^\s=!,()<>]+)")
_NAME = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@dataclass(frozen=True)
class Requirement:
    """One clause of a label selector."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether labels fulfil the clause; an absent label fulfils ``!=`` and ``notin``."""
        value = labels.get(self.key)
        if self.operator == "in":
            return value in self.values
        if self.operator == "notin":
            return value not in self.values
        if self.operator == "exists":
            return value is not None
        if self.operator == "!":
            return value is None
        try:
            number, bound = int(value or ""), int(next(iter(self.values)))
        except ValueError:
            return False
        return number > bound if self.operator == "gt" else number < bound


class _Clauses:
    """A recursive-descent reader of the label selector grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match.group(1) for match in _TOKEN.finditer(text)]
        self._next = 0

    def _fail(self, detail: str) -> ApiError:
        return bad_request(f"unable to parse requirement: {detail}")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def read(self) -> tuple[Requirement, ...]:
        """All clauses."""
        clauses: list[Requirement] = []
        while self._peek():
            clauses.append(self._clause())
            if not self._peek():
                break
            if (token := self._take()) != ",":
                raise bad_request(f"found '{token}', expected: ',' or 'end of string'")
            if not self._peek():
                raise self._fail("found '', expected: identifier after ','")
        return tuple(clauses)

    def _clause(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._key(), "!")
        key = self._key()
        operator = self._peek()
        if operator in ("", ","):
            return Requirement(key, "exists")
        self._take()
        if operator in ("=", "=="):
            return Requirement(key, "in", frozenset({self._value()}))
        if operator == "!=":
            return Requirement(key, "notin", frozenset({self._value()}))
        if operator in ("in", "notin"):
            return Requirement(key, operator, self._values())
        if operator in ("<", ">"):
            return Requirement(key, "gt" if operator == ">" else "lt", frozenset({self._value()}))
        raise self._fail(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def _key(self) -> str:
        key = self._take()
        if key in ("", "=", "==", "!=", "!", ",", "(", ")", "<", ">"):
            raise self._fail(f"found '{key}', expected: !, identifier, or 'end of string'")
        prefix, _, name = key.rpartition("/")
        if not _NAME.fullmatch(name) or len(name) > 63 or (prefix and not _PREFIX.fullmatch(prefix)):
            raise self._fail(f'<nil>: Invalid value: "{key}": {_NAME_RULE}')
        return key

    def _value(self) -> str:
        value = "" if self._peek() in ("", ",", ")") else self._take()
        if value and (not _NAME.fullmatch(value) or len(value) > 63):
            raise self._fail(f'<nil>: Invalid value: "{value}": {_VALUE_RULE}')
        return value

    def _values(self) -> frozenset[str]:
        if (token := self._take()) != "(":
            raise self._fail(f"found '{token}' expected: '('")
        values = {self._value()}
        while (mark := self._take()) == ",":
            values.add(self._value())
        if mark != ")":
            raise self._fail(f"found '{mark}', expected: ',' or ')'")
        return frozenset(values)


@lru_cache(maxsize=512)
def label_requirements(text: str) -> tuple[Requirement, ...]:
    """Read a label selector such as ``app=web,tier in (a, b),!legacy``."""
    return _Clauses(text).read()


def selector_requirements(selector: Object | None) -> tuple[Requirement, ...]:
    """Read a ``LabelSelector`` object (matchLabels, matchExpressions)."""
    selector = selector or {}
    clauses = [Requirement(key, "in", frozenset({value})) for key, value in (selector.get("matchLabels") or {}).items()]
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
    for expression in selector.get("matchExpressions") or []:
        values = frozenset(expression.get("values") or ())
        clauses.append(Requirement(expression["key"], operators[expression["operator"]], values))
    return tuple(clauses)


def selector_text(selector: Object | None) -> str:
    """A ``LabelSelector`` object as the text that ``scale`` and tables show."""
    words = []
    for clause in selector_requirements(selector):
        if clause.operator in ("in", "notin"):
            single = clause.operator == "in" and len(clause.values) == 1
            listed = ",".join(sorted(clause.values))
            words.append(f"{clause.key}={listed}" if single else f"{clause.key} {clause.operator} ({listed})")
        else:
            words.append(clause.key if clause.operator == "exists" else f"!{clause.key}")
    return ",".join(words)


def matches_labels(clauses: tuple[Requirement, ...], labels: dict[str, str] | None) -> bool:
    """Whether labels fulfil every clause."""
    labels = labels or {}
    return all(clause.matches(labels) for clause in clauses)


_EVERY_KIND = ("metadata.name", "metadata.namespace")
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    ("", "events"): (
        *(f"involvedObject.{name}" for name in _INVOLVED),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "secrets"): ("type",),
    ("", "namespaces"): ("status.phase", "name"),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("", "persistentvolumes"): ("name",),
    ("", "persistentvolumeclaims"): ("name",),
    ("apps", "replicasets"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
    ("certificates.k8s.io", "certificatesigningrequests"): ("spec.signerName",),
}
_DEFAULTS = {"spec.hostNetwork": "false", "spec.unschedulable": "false", "status.replicas": "0"}


@dataclass(frozen=True)
class FieldClause:
    """One clause of a field selector."""

    path: str
    value: str
    equal: bool = True

    def matches(self, obj: Object) -> bool:
        """Whether the object's field has (or, with ``!=``, has not) the value."""
        return (field_value(obj, self.path) == self.value) is self.equal


def field_value(obj: Object, path: str) -> str:
    """The text of a selectable field; absent fields have their zero value."""
    if path == "status.successful":
        return str((obj.get("status") or {}).get("succeeded", 0))
    if path == "source":
        source = obj.get("source") or {}
        return str(source.get("component") or obj.get("reportingComponent") or "")
    if path == "name":
        path = "metadata.name"
    if path == "status.podIPs":
        path = "status.podIP"
    value: Any = obj
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return _DEFAULTS.get(path, "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def field_clauses(text: str, resource: Resource) -> tuple[FieldClause, ...]:
    """Read a field selector such as ``spec.nodeName=n1,status.phase!=Running``."""
    return _field_clauses(text, resource) if text else ()


@lru_cache(maxsize=1024)
def _field_clauses(text: str, resource: Resource) -> tuple[FieldClause, ...]:
    allowed = (*_EVERY_KIND, *_FIELDS.get(resource.storage, ()))
    clauses = []
    for term in filter(None, re.split(r"(?<!\\),", text)):
        match = re.fullmatch(r"([^=!]*?)(!=|==|=)(.*)", term, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path, operator, value = match.groups()
        if path not in allowed:
            raise bad_request(_unsupported(path, resource))
        clauses.append(FieldClause(path, re.sub(r"\\([\\,=])", r"\1", value), operator != "!="))
    return tuple(clauses)


def _unsupported(path: str, resource: Resource) -> str:
    if resource.storage not in _FIELDS:
        return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    if resource.group:
        return f'field label "{path}" not supported for {resource.kind}'
    return f"field label not supported: {path}"


def predicate(labels: tuple[Requirement, ...], fields: tuple[FieldClause, ...]) -> Predicate | None:
    """One test for both selectors, or none when there is nothing to test."""
    if not labels and not fields:
        return None

    def matches(obj: Object) -> bool:
        return matches_labels(labels, obj["metadata"].get("labels")) and all(clause.matches(obj) for clause in fields)

    return matches
