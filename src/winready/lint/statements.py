"""What our data says about Windows, field by field and gate by gate.

A rule that looks at a field says what the field does on Windows, version by version. For every other field and gate a
line in ``fields.yaml`` or ``gates.yaml`` says it, or says why Windows has no part in it. Whatever neither covers has no
statement, and somebody must look at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from winready.lint import catalog, matrix
from winready.lint.catalog import Rule
from winready.lint.fields import expand
from winready.lint.versions import FIRST, Range, parse_data_range

NEUTRAL = "neutral"
EFFECTS: Mapping[str, str] = {
    **catalog.EFFECTS,
    NEUTRAL: "says nothing about the operating system",
}
REASONS: Mapping[str, str] = {
    "control-plane": "read by the API server, the scheduler or a controller, never by a kubelet",
    "kubelet": "done by the kubelet or kube-proxy in code that is the same on every OS",
    "client": "about clients of the API and the libraries they use",
    "carried": "a name, a key or a reference that is only handed on",
    "parent": "a part of the field above it, which says what works",
    "linux": "about Linux nodes alone; a Windows node neither reads nor offers it",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """What Windows makes of a field or a gate."""

    effect: str
    reason: str = ""
    note: str = ""
    rules: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The statement for people."""
        return self.note or (REASONS[self.reason] if self.reason else EFFECTS[self.effect])


class Statements:
    """The statements about the fields of one version."""

    def __init__(self, fields: Mapping[str, str], minor: int) -> None:
        self._minor = minor
        self._rules: dict[str, list[Rule]] = {}
        self._hints: dict[str, list[str]] = {}
        for rule in catalog.load().values():
            if rule.audience == "linux" or rule.when == "os-linux":
                continue
            whole = not rule.when  # or it speaks of some pods only
            for place in rule.places:
                if place.kind != "Pod" or not place.path:
                    continue
                for name, exact in _resolve(place.path, fields):
                    self._hints.setdefault(name, []).append(rule.id)
                    if exact and whole and place.whole:
                        self._rules.setdefault(name, []).append(rule)

    def of(self, field: str) -> Statement | None:
        """What is known about a field; None where nothing is."""
        told = _told(field, self._minor)
        rules = tuple(dict.fromkeys(self._hints.get(field, ())))
        if told is not None:
            return replace(told, rules=tuple(dict.fromkeys((*told.rules, *rules))))
        for rule in self._rules.get(field, ()):
            if judged := rule.judge(Range(self._minor, self._minor), True):
                return Statement(judged.worst.effect, note=rule.why, rules=rules)
        return None

    def by_rule(self, field: str) -> bool:
        """Whether a rule judges the field itself, so that a line in the data would repeat it."""
        return field in self._rules


def of_gate(name: str) -> Statement | None:
    """What is known about a feature gate; None where nothing is."""
    told = gates().get(name)
    rules, features = _users().get(name, ((), ()))
    if told is not None:
        return replace(told, rules=(*told.rules, *rules), features=(*told.features, *features))
    if features:
        feature = next(one for one in matrix.load() if one.id == features[0])
        effect = "different" if feature.limits else "supported" if feature.stages else "ignored"
        return Statement(effect, note=feature.limits or feature.note or feature.name, rules=rules, features=features)
    if rules:
        rule = catalog.load()[rules[0]]
        return Statement(rule.declared[-1].effect, note=rule.why, rules=rules)
    return None


@cache
def fields() -> Mapping[str, Mapping[Range, Statement]]:
    """The lines of ``fields.yaml``: ``Type.field``, or ``Type.*`` for a type of which nothing reaches Windows."""
    return {
        f"{kind}.{name}": {
            parse_data_range(span): _statement(text)
            for span, text in (line if isinstance(line, Mapping) else {f"1.{FIRST}+": line}).items()
        }
        for kind, lines in catalog.read_data("fields.yaml").items()
        for name, line in lines.items()
    }


@cache
def gates() -> Mapping[str, Statement]:
    """The lines of ``gates.yaml``."""
    return {name: _statement(line) for name, line in catalog.read_data("gates.yaml").items()}


def _told(field: str, minor: int) -> Statement | None:
    known = fields()
    lines = known.get(field) or known.get(f"{field.rpartition('.')[0]}.*") or {}
    return next((statement for span, statement in lines.items() if minor in span), None)


def _statement(line: str) -> Statement:
    """``effect [reason] [@feature] -- note``."""
    head, _, note = line.partition(" -- ")
    effect, *rest = head.split()
    features = tuple(word[1:] for word in rest if word.startswith("@"))
    reasons = [word for word in rest if not word.startswith("@")]
    return Statement(effect, reasons[0] if reasons else "", note, features=features)


@cache
def _users() -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Which rules and features name a gate as theirs."""
    rules: dict[str, list[str]] = {}
    features: dict[str, list[str]] = {}
    for rule in catalog.load().values():
        for name in _gate_names(rule.gate):
            rules.setdefault(name, []).append(rule.id)
    for feature in matrix.load():
        if feature.gate:
            features.setdefault(feature.gate, []).append(feature.id)
    return {
        name: (tuple(rules.get(name, ())), tuple(features.get(name, ()))) for name in rules.keys() | features.keys()
    }


def _gate_names(text: str) -> Iterator[str]:
    """The names in ``A alpha 1.25, beta 1.30`` and in ``A, B and C alpha 1.37``: words with capitals."""
    for word in text.replace(",", " ").split():
        if word[:1].isupper() and word.isalnum():
            yield word


def _resolve(path: str, fields: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """The fields that a rule's path leads to; False where it goes on into the keys of a map."""
    for steps in expand(path):
        kind, name = "PodTemplateSpec", ""
        for step in steps:
            if step == "[*]":
                continue
            if kind.startswith("map["):
                yield name, False
                break
            name = f"{kind}.{step}"
            if name not in fields:
                break
            kind = fields[name].removeprefix("[]")
        else:
            yield name, True
