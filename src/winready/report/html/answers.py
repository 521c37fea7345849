"""The evidence of a run as its page shows it: questions of a kind once, with an example in full and the rest as rows.

A page holds so many rows and no more; it says how many it leaves to ``run.json``. What was not as expected comes first
and has its answers in full.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from winready.cluster.evidence import Evidence, PodFact, Probe
from winready.report.folding import kind, ranges

ROWS, WHOLE = 1000, 100
"""How many rows a page has for answers, and how many answers that were not as expected it shows in full."""
FEW = 4
"""So many pods or observations of a kind are still shown one by one."""


@dataclass
class Answers:
    """Questions of one kind that were answered alike."""

    title: str
    ok: bool
    probes: list[Probe]
    where: str
    """The nodes that asked."""
    whole: list[Probe] = field(default_factory=list)
    """Those that are shown with command and answer."""
    rows: list[Probe] = field(default_factory=list)
    """Those that are shown in a line."""

    @property
    def left(self) -> int:
        """How many are only counted."""
        return len(self.probes) - len(self.whole) - len(self.rows)


@dataclass(frozen=True)
class Pods:
    """Pods that are alike but for their number and node."""

    name: str
    count: int
    where: str
    pod: PodFact
    addresses: str


@dataclass(frozen=True)
class Shown:
    """What the page shows of the evidence of one requirement."""

    answers: list[Answers]
    total: int
    bad: int
    dropped: int
    pods: list[Pods]
    pods_total: int
    facts: list[tuple[str, Any]]
    facts_left: int


def shown(found: Mapping[str, Evidence], nodes: Collection[str]) -> dict[str, Shown]:
    """What is shown of the evidence of each requirement, by its name."""
    kinds = {name: _answers(evidence.probes, nodes) for name, evidence in found.items()}
    every = [each for answers in kinds.values() for each in answers]
    most = max(ROWS // max(len(every), 1), 2)
    whole = WHOLE
    for each in every:
        take = 1 if each.ok else min(len(each.probes), max(min(whole, 20), 1))
        whole -= 0 if each.ok else take
        each.whole, rest = each.probes[:take], each.probes[take:]
        each.rows = rest[:most] if len(rest) > most + 1 else rest
    return {name: _shown(evidence, kinds[name], nodes) for name, evidence in found.items()}


def _shown(evidence: Evidence, answers: list[Answers], nodes: Collection[str]) -> Shown:
    facts, left = _facts(evidence.facts, nodes)
    return Shown(
        answers=answers,
        total=len(evidence.probes),
        bad=sum(not probe.ok for probe in evidence.probes),
        dropped=evidence.dropped_probes,
        pods=_pods(evidence.pods, nodes),
        pods_total=len(evidence.pods),
        facts=facts,
        facts_left=left,
    )


def _answers(probes: Iterable[Probe], nodes: Collection[str]) -> list[Answers]:
    groups: dict[tuple[str, str], list[Probe]] = {}
    for probe in sorted(probes, key=lambda each: (each.ok, each.at_s)):
        seen = "" if probe.ok else kind(probe.observed[:200], nodes)
        groups.setdefault((kind(probe.title, nodes), seen or str(probe.ok)), []).append(probe)
    return [
        Answers(
            title=same[0].title if len({probe.title for probe in same}) == 1 else title,
            ok=same[0].ok,
            probes=same,
            where=ranges(probe.node for probe in same if probe.node),
        )
        for (title, _), same in groups.items()
    ]


def _pods(pods: Iterable[PodFact], nodes: Collection[str]) -> list[Pods]:
    groups: dict[tuple[str, ...], list[PodFact]] = {}
    for pod in pods:
        groups.setdefault((kind(pod.name, nodes), pod.os, pod.build, pod.image_id or pod.image), []).append(pod)
    return [
        Pods(
            name=same[0].name if len(same) == 1 else _names(same, title),
            count=len(same),
            where=ranges(pod.node for pod in same),
            pod=same[0],
            addresses=", ".join(address for pod in same for address in pod.addresses) if len(same) <= FEW else "",
        )
        for (title, *_), same in groups.items()
    ]


def _names(pods: Sequence[PodFact], title: str) -> str:
    return ", ".join(pod.name for pod in pods) if len(pods) <= FEW else title


def _facts(facts: Mapping[str, Any], nodes: Collection[str]) -> tuple[list[tuple[str, Any]], int]:
    """The first few observations of each kind, and how many more there are."""
    groups: dict[str, list[tuple[str, Any]]] = {}
    for name, value in facts.items():
        groups.setdefault(kind(name, nodes), []).append((name, value))
    kept = [pair for same in groups.values() for pair in (same[:FEW] if len(same) > FEW + 1 else same)]
    return kept, len(facts) - len(kept)
