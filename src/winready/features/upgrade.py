"""What an upgrade of Kubernetes changes for workloads: what they use, and how fields of their manifests are judged."""

from __future__ import annotations

import dataclasses
from typing import Any

from winready.engine.workloads import FieldFinding, Need, Workload
from winready.features import manifests, relying
from winready.features.manifests import Manifests
from winready.lint import matrix
from winready.lint.matrix import FeatureChange
from winready.lint.output.matrix import Page, Section, stage_words, status_data
from winready.lint.versions import Range


def upgrade_page(found: Manifests, before: int, after: int) -> Page:
    """The changes, workload by workload; says so where there is none."""
    columns = ("what", f"1.{before}", f"1.{after}", "what to know", "needed at")
    sections, data = [], []
    pairs = list(zip(_judged(found, before), _judged(found, after), strict=True))
    for old, new in pairs:
        used = _changed_features(new, before, after)
        fields = _changed_fields(old, new)
        data.append(_data(new, used, fields))
        rows = [_feature_row(change, need) for change, need in used] + [_field_row(*each) for each in fields]
        if rows:
            sections.append(Section(new.title, columns, rows))
    count = f"{len(pairs)} {'workload' if len(pairs) == 1 else 'workloads'}"
    quiet = len(pairs) - len(sections)
    intro = f"Of {count} for Windows, nothing changes for {quiet}." if quiet and sections else ""
    if not sections:
        intro = f"Nothing changes for {count} for Windows: all that is used, and how fields are judged, stays the same."
    title = f"What Kubernetes 1.{before} to 1.{after} changes for these manifests"
    return Page(title, intro, sections, {"from": f"1.{before}", "to": f"1.{after}", "workloads": data})


def _judged(found: Manifests, minor: int) -> list[Workload]:
    profile = dataclasses.replace(found.profile, versions=Range(minor, minor))
    return relying.workloads(manifests.read((), profile, found.inputs))


def _changed_features(workload: Workload, before: int, after: int) -> list[tuple[FeatureChange, Need]]:
    needs = {need.id: need for need in workload.needs}
    used = [feature for feature in matrix.load() if feature.id in needs]
    return [(change, needs[change.feature.id]) for change in matrix.changes(before, after, used)]


def _changed_fields(old: Workload, new: Workload) -> list[tuple[FieldFinding | None, FieldFinding | None]]:
    """The findings that come, go or weigh otherwise."""
    earlier, later = ({(each.rule, each.path, each.line): each for each in one.findings} for one in (old, new))
    places = sorted(earlier.keys() | later.keys(), key=lambda place: (place[1], place[2], place[0]))
    pairs = [(earlier.get(place), later.get(place)) for place in places]
    return [(a, b) for a, b in pairs if (a and (a.effect, a.severity)) != (b and (b.effect, b.severity))]


def _feature_row(change: FeatureChange, need: Need) -> tuple[str, ...]:
    feature = change.feature
    before, after = (stage_words(feature, status) for status in (change.before, change.after))
    return feature.name, before, after, feature.limits or feature.note, need.place


def _field_row(old: FieldFinding | None, new: FieldFinding | None) -> tuple[str, ...]:
    one = new or old
    assert one is not None  # noqa: S101
    before, after = (f"{each.effect} ({each.severity})" if each else "no finding" for each in (old, new))
    return one.rule, before, after, one.fix if new else "nothing to do any more", f"{one.path}:{one.line}"


def _data(
    workload: Workload,
    used: list[tuple[FeatureChange, Need]],
    fields: list[tuple[FieldFinding | None, FieldFinding | None]],
) -> dict[str, Any]:
    return {
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
        "path": workload.path,
        "line": workload.line,
        "features": [
            {
                "id": need.id,
                "path": need.path,
                "line": need.line,
                "before": status_data(change.before),
                "after": status_data(change.after),
            }
            for change, need in used
        ],
        "rules": [
            {
                "id": one.rule,
                "path": one.path,
                "line": one.line,
                "before": _weight(old),
                "after": _weight(new),
                "fix": one.fix,
            }
            for old, new in fields
            if (one := new or old) is not None
        ],
    }


def _weight(finding: FieldFinding | None) -> dict[str, str] | None:
    return {"effect": finding.effect, "severity": finding.severity} if finding else None
