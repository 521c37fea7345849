"""Features of the matrix as the page shows them: contradictions first, then every area with what shows each of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from winready.engine.outcomes import FeatureResult
from winready.report import words
from winready.report.html.answers import Shown, shown

WAYS = {
    "requirement": "by requirements",
    "check": "by a check of its own",
    "upstream": "by upstream tests",
    "data": "by data only",
}


@dataclass(frozen=True)
class Features:
    """What the section of a page needs."""

    text: str
    """All of them in one sentence."""
    contradictions: list[FeatureResult]
    areas: list[tuple[str, list[FeatureResult]]]
    evidence: dict[str, Shown]
    """What is shown of the answers that each rests on."""


def make_features(features: Sequence[FeatureResult], nodes: Collection[str]) -> Features | None:
    """The section, or None for a run that was to show none."""
    if not features:
        return None
    areas: dict[str, list[FeatureResult]] = {}
    for each in features:
        areas.setdefault(each.area, []).append(each)
    return Features(
        words.features_text(features),
        [each for each in features if each.contradiction],
        list(areas.items()),
        shown({each.id: each.evidence for each in features if not each.requirements}, nodes),
    )
