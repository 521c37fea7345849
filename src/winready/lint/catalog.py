"""The rules as data: read once, judged for a range of Kubernetes versions.

A rule says where it looks and what it looks for, and what the answer means from version to version. Whether a pod
declares Windows (``spec.os``) or is only taken for a Windows pod can change the outcome, so every judgement is made
for one of the two cases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from winready.lint.versions import Range, parse_data_range
from winready.spec.yamlfile import YamlError, read

Severity = Literal["error", "warning", "info"]
Effect = Literal["rejected", "fails", "ignored", "different", "supported"]
Audience = Literal["windows", "inferred", "any", "linux", "involved"]
Test = Callable[[Any], bool]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
EFFECTS: Mapping[str, str] = {
    "rejected": "the API server or an admission plugin refuses the object",
    "fails": "accepted, but the pod does not start or the feature does not work",
    "ignored": "accepted, without effect",
    "different": "works, with another meaning than on Linux",
    "supported": "works",
}
AREAS: tuple[tuple[str, str], ...] = (
    ("placement", "Where pods go"),
    ("security", "Security context, users and gMSA"),
    ("hostprocess", "HostProcess and Pod Security"),
    ("pod", "Pods: namespaces, network, DNS, probes and hooks"),
    ("resources", "Resources"),
    ("storage", "Storage"),
    ("images", "Images, commands and paths"),
    ("services", "Services, network policies and other kinds"),
    ("files", "Files"),
)
_LINKS: Mapping[str, str] = {
    "k8s": "https://github.com/kubernetes/kubernetes/blob/{ref}/{path}",
    "ctrd": "https://github.com/containerd/containerd/blob/{ref}/{path}",
    "hcs": "https://github.com/microsoft/hcsshim/blob/{ref}/{path}",
    "calico": "https://github.com/projectcalico/calico/blob/{ref}/{path}",
    "npm": "https://github.com/Azure/azure-container-networking/blob/{ref}/{path}",
    "antrea": "https://github.com/antrea-io/antrea/blob/{ref}/{path}",
    "csiproxy": "https://github.com/kubernetes-csi/csi-proxy/blob/{ref}/{path}",
    "gmsa": "https://github.com/kubernetes-sigs/windows-gmsa/blob/{ref}/{path}",
    "wintest": "https://github.com/kubernetes-sigs/windows-testing/blob/{ref}/{path}",
    "cni": "https://github.com/containernetworking/plugins/blob/{ref}/{path}",
    "kep": "https://github.com/kubernetes/enhancements/tree/master/{path}",
    "web": "https://kubernetes.io/{path}",
}


def rank(severity: str) -> int:
    """Severities in order: info, warning, error."""
    return SEVERITIES.index(severity)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happens in a range of versions."""

    versions: Range
    effect: Effect
    severity: Severity
    note: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A field that a rule looks at: the kind, the path below it and the test of its value."""

    kind: str
    path: str
    test: Test | None
    whole: bool = False
    """Whether it is the field itself that is judged, not some of its values."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The worst outcome within the wanted versions, and all the outcomes there."""

    worst: Outcome
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One row of the data; a rule is itself and equal to no other."""

    id: str
    area: str
    title: str
    audience: Audience
    places: tuple[Place, ...]
    when: str
    unless: str
    declared: tuple[Outcome, ...]
    inferred: tuple[Outcome, ...]
    why: str
    fix: str
    exceptions: str
    repair: str
    gate: str
    admission: bool
    sources: tuple[str, ...]

    @property
    def severity(self) -> Severity:
        """The headline: what it is worth in the newest version."""
        return self.declared[-1].severity

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that it looks at; ``Pod`` stands for everything with a pod template."""
        return tuple(dict.fromkeys(place.kind for place in self.places)) or ("Pod",)

    def judge(self, versions: Range, declared: bool) -> Judgement | None:
        """The outcomes for these versions, or None where the rule does not exist yet."""
        return _judge(self, versions, declared)


@cache
def _judge(rule: Rule, versions: Range, declared: bool) -> Judgement | None:
    merged: list[Outcome] = []
    for outcome in rule.declared if declared else rule.inferred:
        note = outcome.note if outcome.versions.overlaps(versions) else ""
        if merged and (merged[-1].effect, merged[-1].severity) == (outcome.effect, outcome.severity):
            span = Range(merged[-1].versions.low, outcome.versions.high)
            merged[-1] = Outcome(span, outcome.effect, outcome.severity, note or merged[-1].note)
        else:
            merged.append(Outcome(outcome.versions, outcome.effect, outcome.severity, note))
    merged = [one for one in merged if one.versions.overlaps(versions)]
    if not merged:
        return None
    worst = max(merged, key=lambda one: (rank(one.severity), one.versions.low))
    return Judgement(worst, tuple(merged))


@cache
def load() -> Mapping[str, Rule]:
    """Every rule by its id, in the order of the areas."""
    rules: dict[str, Rule] = {}
    for area, _ in AREAS:
        for row in read_data(f"rules/{area}.yaml"):
            rules[row["id"]] = _rule(area, row)
    return rules


def read_data(name: str, package: str = "winready.lint") -> Any:
    """One of a package's own data files."""
    content = (resources.files(package) / "data" / name).read_text(encoding="utf-8")
    for document in read(content):
        if isinstance(document, YamlError):
            raise document
        return document.value
    return None


def source_link(source: str) -> str:
    """The address of a source such as ``k8s:pkg/a.go@v1.36.0#symbol``; empty when it has none."""
    alias, _, rest = source.partition(":")
    path, _, ref = rest.partition("#")[0].partition("@")
    if alias not in _LINKS or " " in path:
        return ""
    return _LINKS[alias].format(path=path, ref=ref if ref and ref != "HEAD" else "HEAD")


def _rule(area: str, row: Mapping[str, Any]) -> Rule:
    declared: list[Outcome] = []
    inferred: list[Outcome] = []
    for versions, text in row["versions"].items():
        outcome, _, note = text.partition(" -- ")
        first, _, second = outcome.partition(" / ")
        for target, words in ((declared, first), (inferred, second or first)):
            effect, severity = words.split()
            target.append(Outcome(parse_data_range(versions), effect, severity, note))
    return Rule(
        id=row["id"],
        area=area,
        title=row["title"],
        audience=row.get("for", "windows"),
        places=tuple(places(row)),
        when=row.get("when", ""),
        unless=row.get("unless", ""),
        declared=tuple(declared),
        inferred=tuple(inferred),
        why=row["why"],
        fix=row["fix"],
        exceptions=row.get("except", ""),
        repair=row.get("repair", ""),
        gate=row.get("gate", ""),
        admission=row.get("stage") == "admission",
        sources=tuple(row.get("source", ())),
    )


def places(row: Mapping[str, Any]) -> Iterable[Place]:
    """The fields that a row of data names by ``at`` and ``match``."""
    at = row.get("at", ())
    pairs = at.items() if isinstance(at, Mapping) else ((path, row.get("match")) for path in _listed(at))
    for path, match in pairs:
        kind, separator, rest = path.partition(":")
        if not separator:
            kind, rest = ("Pod", path) if match is not None else (path, "")
        yield Place(kind, rest, None if match is None else _test(match), match in ("set", "nonempty", True))


def _listed(value: Any) -> Iterable[str]:
    return [value] if isinstance(value, str) else value


def _test(match: Any) -> Test:
    if match == "set":
        return lambda value: value is not None
    if match == "nonempty":
        return lambda value: bool(value)
    if match == "text":
        return lambda value: isinstance(value, str) and not value.isdigit()
    if match is True:
        return lambda value: value is True
    (operator, wanted), *_ = match.items()
    if operator == "in":
        return lambda value: isinstance(value, str) and value in wanted
    if operator == "not":
        return lambda value: value is not None and value not in wanted
    pattern = re.compile(wanted)
    return lambda value: isinstance(value, str) and pattern.search(value) is not None
