"""What the outcomes of a run on a broken cluster are worth, held against what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from winready.checks.registry import load_checks
from winready.proof.expected.model import Expectation
from winready.report.record import Record

SHOWN = 300


@dataclass
class Proof:
    """What came of a run on a sandbox with one fault."""

    name: str
    declared: list[str]
    blocks: list[str]
    node: str
    outcomes: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    seconds: float = 0.0
    """Cluster seconds that the run took."""

    def document(self) -> dict[str, Any]:
        """The proof for machines."""
        told = set(self.missed) | set(self.false_alarms)
        return {
            "name": self.name,
            "node": self.node,
            "declared": self.declared,
            "blocks": self.blocks,
            "outcomes": self.outcomes,
            "missed": self.missed,
            "false_alarms": self.false_alarms,
            "reasons": {key: text for key, text in self.reasons.items() if key in told},
            "cluster_seconds": round(self.seconds, 1),
        }

    def line(self) -> str:
        """The proof for people."""
        noticed = len([name for name in self.declared if name in self.outcomes and name not in self.missed])
        text = f"{self.name:<46} noticed by {noticed:>2}, {self.seconds:5.0f} cluster seconds"
        for word, names in (("MISSED", self.missed), ("FALSE ALARM", self.false_alarms)):
            for name in names:
                text += f"\n    {word} {name}: {self.outcomes[name]}: {self.reasons[name][:SHOWN]}"
        return text


def judge(name: str, expectation: Expectation, node: str, record: Record) -> Proof:
    """Hold the outcomes against what is expected; requirements without a check are not part of the proof."""
    declared, blocks = expectation.requirements, expectation.blocked
    proof = Proof(name=name, declared=declared, blocks=blocks, node=node, seconds=record.duration_s)
    checked = load_checks()
    results = {item.id: (item.outcome, item.reason) for item in record.requirements if item.id in checked}
    rules = {item.id: (item.outcome, item.reason) for item in record.rules}
    for each, (outcome, reason) in (results | rules).items():
        proof.outcomes[each], proof.reasons[each] = outcome, reason
        if each in declared:
            # A rule speaks of the whole cluster, in which the broken node may not even appear.
            unnamed = node and node not in reason and each not in rules
            if outcome != "failed" or unnamed:
                proof.missed.append(each)
        elif each not in blocks and outcome != "passed":
            proof.false_alarms.append(each)
    return proof
