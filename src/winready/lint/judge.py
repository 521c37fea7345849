"""Applying the rules to one object: which of them apply, where they hit, and the finding that comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from winready.lint import catalog, rules, sentences, suppress
from winready.lint.catalog import SEVERITIES, Judgement, Rule, Severity, rank
from winready.lint.context import Facts
from winready.lint.fields import CONTAINER_LISTS, Fields, dotted
from winready.lint.finding import Finding
from winready.lint.objects import Object, Pod, dig
from winready.lint.rules import Hit, ObjectCheck, PodCheck, View
from winready.lint.target import Target
from winready.lint.versions import LAST
from winready.spec.yamlfile import Document, Entry
from winready.spec.yamlfile import Path as FieldPath


@dataclass(slots=True)
class Located:
    """A finding with what a repair needs: the rule, the document, the path in it, and the pod."""

    finding: Finding
    rule: Rule
    document: Document
    path: FieldPath
    pod: Pod | None = None
    target: Target | None = None


class Judge:
    """The rules that exist in the wanted versions, arranged by what they look at."""

    def __init__(
        self,
        facts: Facts,
        severities: Mapping[str, Severity],
        ignores: Sequence[suppress.Ignore],
        minimum: Severity = "info",
    ) -> None:
        rules.load()
        self.facts, self.severities, self.ignores = facts, severities, ignores
        self.minimum = rank(minimum)
        self.below = dict.fromkeys(SEVERITIES, 0)
        self.pod_checks: list[tuple[Rule, PodCheck]] = []
        self.chosen: dict[tuple[bool, bool], list[tuple[Rule, PodCheck]]] = {}
        self.object_checks: dict[str, list[tuple[Rule, ObjectCheck]]] = {}
        self.every_pod, self.windows_pod = Fields[Rule](), Fields[Rule]()
        self.trees: dict[str, Fields[Rule]] = {}
        versions = facts.profile.versions
        for rule in catalog.load().values():
            if rule.judge(versions, True) or rule.judge(versions, False):
                self._arrange(rule)

    def _arrange(self, rule: Rule) -> None:
        if rule.id in rules.POD_CHECKS:
            self.pod_checks.append((rule, rules.POD_CHECKS[rule.id]))
        if rule.id in rules.OBJECT_CHECKS:
            for kind in rule.kinds:
                self.object_checks.setdefault(kind, []).append((rule, rules.OBJECT_CHECKS[rule.id]))
        for place in rule.places:
            if place.test is None:
                continue
            if place.kind == "Pod":
                tree = self.every_pod if rule.audience == "any" else self.windows_pod
            else:
                tree = self.trees.setdefault(place.kind, Fields[Rule]())
            tree.add(place.path, rule, place.test)

    def pod(self, pod: Pod, target: Target) -> Iterator[Located]:
        """The findings about a pod or pod template."""
        for rule, path in self.every_pod.hits(pod.template):
            if self._guarded(rule, pod):
                yield from self._locate(rule, pod.object, Hit(path), pod, target)
        if target.windows:
            for rule, path in self.windows_pod.hits(pod.template):
                if self._guarded(rule, pod) and (rule.audience == "windows" or not target.declared):
                    yield from self._locate(rule, pod.object, Hit(path), pod, target)
        for rule, check in self._pod_checks(target):
            for hit in check(pod, target, self.facts):
                yield from self._locate(rule, pod.object, hit, pod, target)

    def _pod_checks(self, target: Target) -> list[tuple[Rule, PodCheck]]:
        """The checks whose rules apply to such a target; chosen once for each kind of it."""
        kind = (target.windows, target.declared)
        if kind not in self.chosen:
            self.chosen[kind] = [one for one in self.pod_checks if self._applies(one[0], target)]
        return self.chosen[kind]

    def object(self, view: View, involved: bool, kind: str = "") -> Iterator[Located]:
        """The findings about another object, or about one of another kind inside it."""
        kind = kind or view.object.kind
        if kind in self.trees:
            for rule, path in self.trees[kind].hits(view.value):
                if (involved or rule.audience == "any") and self._guarded(rule, None):
                    yield from self._locate(rule, view.object, Hit((*view.prefix, *path)))
        for rule, check in self.object_checks.get(kind, ()):
            if involved or rule.audience == "any":
                for hit in check(view):
                    yield from self._locate(rule, view.object, hit)

    def annotations(self, object: Object) -> Iterator[Located]:
        """Ignore annotations that silence nothing."""
        for key, problem in suppress.incomplete_annotations(object):
            rule = catalog.load()["suppression-incomplete"]
            yield from self._locate(
                rule, object, Hit(("metadata", "annotations", key), f"this annotation silences nothing: {problem}")
            )

    def file(self, path: str, document: Document, rule_id: str, offset: int, width: int, detail: str) -> Finding:
        """A finding about the text of a file rather than an object."""
        rule = catalog.load()[rule_id]
        judgement = rule.judge(self.facts.profile.versions, True)
        assert judgement is not None  # noqa: S101
        return self._finding(
            rule, judgement, path, document, Entry(offset, offset + width, offset, offset + width), Hit((), detail)
        )

    def _applies(self, rule: Rule, target: Target) -> bool:
        match rule.audience:
            case "any":
                return True
            case "windows":
                return target.windows
            case "inferred":
                return target.windows and not target.declared
            case "linux":
                return not target.windows
        return False

    def _guarded(self, rule: Rule, pod: Pod | None) -> bool:
        return not (rule.when and not self._holds(rule.when, pod)) and not (
            rule.unless and self._holds(rule.unless, pod)
        )

    def _holds(self, guard: str, pod: Pod | None) -> bool:
        match guard:
            case "host-process":
                return pod is not None and pod.host_process
            case "os-linux":
                return pod is not None and dig(pod.spec, "os", "name") == "linux"
            case "calico":
                return self.facts.profile.cni == "calico"
        raise ValueError(f"unknown guard {guard!r}")

    def _locate(
        self, rule: Rule, object: Object, hit: Hit, pod: Pod | None = None, target: Target | None = None
    ) -> Iterable[Located]:
        judgement = rule.judge(self.facts.profile.versions, target.declared if target else True)
        if judgement is None:
            return ()
        severity = self.severities.get(rule.id) or hit.severity or judgement.worst.severity
        if rank(severity) < self.minimum:
            self.below[severity] += 1
            return ()
        below = (*pod.prefix, *hit.path) if pod else hit.path
        path = (*object.path, *below)
        document = object.document
        finding = self._finding(rule, judgement, object.file, document, document.nearest(path), hit, object.kind)
        finding.kind, finding.namespace, finding.name = object.kind, object.namespace, object.name
        finding.field = dotted(below)
        if pod and len(hit.path) > 2 and hit.path[1] in CONTAINER_LISTS:
            finding.container = str(dig(pod.template, *hit.path[:3], "name") or "")
        if target:
            finding.evidence = target.evidence
            finding.fixable = bool(rule.repair) and (target.sure or rule.audience == "any")
        template = pod.template if pod else None
        finding.suppressed = suppress.reason(rule.id, object, template, object.file, finding.line, self.ignores)
        return (Located(finding, rule, document, path, pod, target),)

    def _refuses_pods(self, rule: Rule, judgement: Judgement, kind: str) -> bool:
        """Whether the refusal hits the pods of a controller, not the controller itself."""
        if kind in ("", "Pod", "Namespace", "RuntimeClass"):
            return False
        last = judgement.worst.versions.high or LAST
        wanted = self.facts.profile.versions.high or LAST
        return rule.admission or (kind == "StatefulSet" and min(last, wanted) < 34)

    def _finding(
        self,
        rule: Rule,
        judgement: Judgement,
        file: str,
        document: Document,
        entry: Entry,
        hit: Hit,
        kind: str = "",
    ) -> Finding:
        text, worst = document.text, judgement.worst
        line, column = text.position(entry.key)
        excerpt = text.line(line)
        width = entry.key_end - entry.key or entry.value_end - entry.value
        versions = hit.versions or worst.versions
        through = kind if self._refuses_pods(rule, judgement, kind) else ""
        return Finding(
            rule=rule.id,
            severity=self.severities.get(rule.id) or hit.severity or worst.severity,
            effect=worst.effect,
            path=file,
            line=line,
            column=column,
            width=max(1, min(width, len(excerpt) - column + 1)),
            kind="",
            namespace="",
            name="",
            container="",
            field="",
            message=sentences.message(rule, worst, hit.detail, through, hit.severity or ""),
            fix=rule.fix,
            since=f"1.{versions.low}",
            until=None if versions.high is None else f"1.{versions.high}",
            outcomes=judgement.outcomes,
            evidence="",
            excerpt=excerpt[:400],
        )
