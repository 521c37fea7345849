"""A lint run from inputs to findings, one folder at a time.

Pods are judged as they are read. Services, policies and claims wait until the workloads of their folder are known;
volumes, storage classes and namespaces wait for the end. RuntimeClasses and namespaces, which decide about pods, are
read first from the files that mention them. Nothing else is kept, so memory does not grow with the number of files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from winready.lint import suppress
from winready.lint.catalog import Severity
from winready.lint.context import Backend, Facts, Profile, Scope
from winready.lint.files import Input, InputError, Inputs
from winready.lint.finding import Finding, Summary, Unreadable
from winready.lint.judge import Judge, Located
from winready.lint.objects import CLUSTER_SCOPED, Object, dig, items, mapping, objects, pod_of
from winready.lint.rules import View
from winready.lint.target import decide
from winready.spec import yamlfile
from winready.spec.yamlfile import Document, YamlError

Result = Finding | Unreadable
Repairer = Callable[[Sequence[Located]], None]

_REFERRED = re.compile(
    rb"""kind["']?\s*:\s*["']?(?:(?:Runtime|Priority|Storage)Class|PersistentVolume|Namespace|GMSACredentialSpec)\b"""
)
_NAMESPACED = frozenset({"HorizontalPodAutoscaler", "ResourceQuota", "LimitRange"})


@dataclass(slots=True)
class Settings:
    """What a run is asked for."""

    profile: Profile = field(default_factory=Profile)
    severities: Mapping[str, Severity] = field(default_factory=dict)
    ignores: Sequence[suppress.Ignore] = ()
    exclude: Sequence[str] = ()
    extra: Sequence[Input] = ()
    minimum: Severity = "info"  # less severe findings are counted, not told


class Run:
    """One pass over the inputs; ``results`` yields what it finds, ``summary`` counts."""

    def __init__(self, paths: Sequence[str], settings: Settings, repairer: Repairer | None = None) -> None:
        self.settings, self.repairer = settings, repairer
        self.summary = Summary()
        self.facts = Facts(settings.profile)
        self.inputs = Inputs(paths, settings.exclude, settings.extra)
        self.judge = Judge(self.facts, settings.severities, settings.ignores, settings.minimum)
        self.later: list[Object] = []

    def results(self) -> Iterator[Result]:
        """Everything there is to say, folder by folder in the order of files and lines."""
        self._learn()
        for batch in self.inputs:
            scope, found, unreadable = Scope(), list[Located | Finding](), list[Unreadable]()
            for one in batch:
                self._file(one, scope, found, unreadable)
            found += self._kept(self._related(scope))
            yield from self._batch(found, unreadable)
        yield from self._batch([one for object in self.later for one in self._kept(self._cluster_scoped(object))], [])
        self.summary.notices = list(self.inputs.notices)
        for severity, count in self.judge.below.items():
            self.summary.counts[severity] += count
            self.summary.untold += count

    def _kept(self, located: Iterable[Located]) -> Iterator[Located | Finding]:
        """Findings alone, unless a repair needs their documents: those take far more memory."""
        return (one if self.repairer else one.finding for one in located)

    def _learn(self) -> None:
        for batch in self.inputs:
            for one in batch:
                try:
                    data = one.read()
                    if not _REFERRED.search(data):
                        continue
                    for document in yamlfile.read(yamlfile.decode(data)):
                        if isinstance(document, Document):
                            for object in objects(one.path, document, ""):
                                self.facts.learn(object)
                except (InputError, YamlError):
                    continue  # said when the file's turn comes

    def _batch(self, located: Sequence[Located | Finding], unreadable: Sequence[Unreadable]) -> Iterator[Result]:
        if self.repairer:
            self.repairer([one for one in located if isinstance(one, Located)])
        findings = [one.finding if isinstance(one, Located) else one for one in located]
        for finding in findings:
            if finding.suppressed:
                self.summary.suppressed += 1
            else:
                self.summary.counts[finding.severity] += 1
        self.summary.unreadable += len(unreadable)
        results: list[Result] = [*findings, *unreadable]
        yield from sorted(results, key=lambda one: (one.path, one.line, one.column))

    def _file(self, one: Input, scope: Scope, located: list[Located | Finding], unreadable: list[Unreadable]) -> None:
        try:
            data = one.read()
            self.summary.files += 1
            if one.found and (b"kind" not in data or b"apiVersion" not in data):
                return
            content = yamlfile.decode(data)
        except InputError as error:
            unreadable.append(Unreadable(one.path, 1, 1, str(error)))
            return
        except YamlError as error:
            unreadable.append(Unreadable(one.path, error.line, error.column, error.problem))
            return
        comments = "winready:ignore" in content
        for document in yamlfile.read(content):
            if isinstance(document, YamlError):
                problem = document.problem
                if "{{" in content:
                    problem += "; a Helm template must be rendered first: helm template CHART | winready lint -"
                unreadable.append(Unreadable(one.path, document.line, document.column, problem))
                continue
            located += self._text(one.path, document, comments)
            comments = False
            for object in objects(one.path, document, self.settings.profile.namespace):
                located += self._kept(self._object(object, scope))

    def _text(self, path: str, document: Document, comments: bool) -> Iterator[Finding]:
        for key, offset in document.duplicates:
            yield self.judge.file(path, document, "file-duplicate-key", offset, len(key), f"{key} is written twice")
        if document.json_problem:
            detail = f"not JSON, though it begins with a brace: {document.json_problem}"
            yield self.judge.file(path, document, "file-flow-yaml", document.start, 1, detail)
        if comments:
            for offset, width, problem in suppress.incomplete_comments(document.text):
                detail = f"this comment silences nothing: {problem}"
                yield self.judge.file(path, document, "suppression-incomplete", offset, width, detail)

    def _object(self, object: Object, scope: Scope) -> Iterator[Located]:
        self.summary.objects += 1
        if object.annotations:
            yield from self.judge.annotations(object)
        pod = pod_of(object)
        if pod is None:
            if object.kind in CLUSTER_SCOPED:
                self.later.append(object)
            else:
                scope.waiting.append(object)
            return
        target = decide(pod, self.facts)
        yield from self.judge.pod(pod, target)
        if not target.windows:
            return
        self.summary.windows += 1
        scope.add(pod)
        if target.declared:
            self.facts.declared_namespaces.add(object.namespace)
        for volume in items(pod.spec, "volumes"):
            if template := dig(volume, "ephemeral", "volumeClaimTemplate"):
                self._use_class(template)
        for index, template in enumerate(items(object.value, "spec", "volumeClaimTemplates")):
            self._use_class(template)
            prefix = ("spec", "volumeClaimTemplates", index)
            claim = View(object, self.facts, (), prefix=prefix)
            yield from self.judge.object(claim, True, "PersistentVolumeClaim")

    def _use_class(self, claim: object) -> None:
        self.facts.storage_classes.add(str(dig(claim, "spec", "storageClassName") or ""))

    def _related(self, scope: Scope) -> Iterator[Located]:
        """The objects of a folder that concern its Windows workloads."""
        most = dict(filter(None, map(_scaled, scope.waiting)))
        for object in scope.waiting:
            backends = _backends(object, scope)
            involved = bool(backends)
            if object.kind == "PersistentVolumeClaim":
                involved = (object.namespace, object.name) in scope.claims
                if involved:
                    self._use_class(object.value)
                    self.facts.volumes.add(str(dig(object.value, "spec", "volumeName") or ""))
            elif object.kind in ("Service", "NetworkPolicy"):
                involved = involved or self.settings.profile.has_windows_nodes
            yield from self.judge.object(View(object, self.facts, backends, most), involved)

    def _cluster_scoped(self, object: Object) -> Iterator[Located]:
        involved = object.kind == "PriorityClass" and self.summary.windows > 0
        if object.kind == "StorageClass":
            default = object.annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
            used = self.facts.storage_classes
            involved = object.name in used or (default and "" in used) or _names_windows(object.value)
        elif object.kind == "PersistentVolume":
            name = dig(object.value, "spec", "storageClassName")
            involved = object.name in self.facts.volumes or _names_windows(dig(object.value, "spec", "nodeAffinity"))
            involved = involved or (bool(name) and name in self.facts.storage_classes)
        elif object.kind == "RuntimeClass":
            involved = _names_windows(dig(object.value, "scheduling"))
        yield from self.judge.object(View(object, self.facts, ()), involved)


def _scaled(object: Object) -> tuple[tuple[str, str, str], int] | None:
    """The workload that an autoscaler scales, and how far."""
    most = dig(object.value, "spec", "maxReplicas") if object.kind == "HorizontalPodAutoscaler" else None
    reference = mapping(object.value, "spec", "scaleTargetRef") if isinstance(most, int) else {}
    key = object.namespace, str(reference.get("kind")), str(reference.get("name"))
    return (key, most) if reference and isinstance(most, int) else None


def _backends(object: Object, scope: Scope) -> Sequence[Backend]:
    """The Windows workloads of the folder that an object selects or shares its namespace with."""
    if object.kind == "Service":
        selector = dig(object.value, "spec", "selector")
        return scope.selected(object.namespace, {"matchLabels": selector}) if selector else ()
    if object.kind == "NetworkPolicy":
        return scope.selected(object.namespace, dig(object.value, "spec", "podSelector"))
    return scope.selected(object.namespace, None) if object.kind in _NAMESPACED else ()


def _names_windows(value: object) -> bool:
    """Whether a selector or topology names Windows somewhere."""
    if isinstance(value, dict):
        return any(_names_windows(one) for key, one in value.items() if key != "metadata")
    if isinstance(value, list):
        return any(map(_names_windows, value))
    return value == "windows"
