"""What the outcomes of a run on a broken or a sound cluster are worth, held against what is expected of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from winready.checks.registry import load_checks
from winready.engine.outcomes import FeatureResult
from winready.engine.rules.judge import LINUX_CONFORMANCE
from winready.proof.expected.model import Expectation
from winready.proof.healthy.model import Variant
from winready.report.record import Record

SHOWN = 300
UNSEEN = frozenset(["ws2019", "ws2025", "ws-sac", "kube-proxy-l2bridge", "cni-azure", "cni-ovn", "cni-flannel"])
"""Features that a sandbox as it comes up has nothing of: other builds of Windows, other networks."""
RIGHTS = "winready rbac"
"""A next step about rights, which a cluster that grants them all can do without."""


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
        return text + _complaints(self)


@dataclass
class Soundness:
    """What came of a run, or of several at once, on a sound cluster."""

    name: str
    """Of the sound cluster; what else is known of it follows."""
    sentence: str
    fact: str
    flags: list[str]
    blocks: list[str]
    """What it makes impossible to judge."""
    verdict: str = ""
    outcomes: dict[str, str] = field(default_factory=dict)
    """Of several runs the worst."""
    reasons: dict[str, str] = field(default_factory=dict)
    waived: dict[str, str] = field(default_factory=dict)
    """Rules that do not pass here, and the flag that says so."""
    missed: list[str] = field(default_factory=list)
    """What should have been blocked, naming who refused, and was not."""
    false_alarms: list[str] = field(default_factory=list)
    seconds: float = 0.0
    windows_pods: int = 0

    def document(self) -> dict[str, Any]:
        """The proof for machines."""
        told = {*self.missed, *self.false_alarms, *self.blocks}
        return {
            "name": self.name,
            "description": self.sentence,
            "fact": self.fact,
            "flags": self.flags,
            "verdict": self.verdict,
            "blocks": self.blocks,
            "outcomes": self.outcomes,
            "waived": self.waived,
            "missed": self.missed,
            "false_alarms": self.false_alarms,
            "reasons": {key: text for key, text in self.reasons.items() if key in told},
            "windows_pods": self.windows_pods,
            "cluster_seconds": round(self.seconds, 1),
        }

    def line(self) -> str:
        """The proof for people."""
        blocked = [name for name in self.blocks if name in self.outcomes and name not in self.missed]
        word = f"blocks {len(blocked):>2}," if self.blocks else f"{self.verdict},"
        return f"{self.name:<46} {word:<14} {self.seconds:5.0f} cluster seconds" + _complaints(self)


def _complaints(proof: Proof | Soundness) -> str:
    text = ""
    for word, names in (("MISSED", proof.missed), ("FALSE ALARM", proof.false_alarms)):
        for name in names:
            text += f"\n    {word} {name}: {proof.outcomes[name]}: {proof.reasons[name][:SHOWN]}"
    return text


def judge(name: str, expectation: Expectation, node: str, record: Record) -> Proof:
    """Hold the outcomes against what is expected; requirements without a check are not part of the proof."""
    unshown = [_feature(name) for name in expectation.unshown]
    declared, blocks = [*expectation.requirements, *unshown], expectation.blocked
    proof = Proof(name=name, declared=declared, blocks=blocks, node=node, seconds=record.duration_s)
    checked = load_checks()
    results = {item.id: (item.outcome, item.reason) for item in record.requirements if item.id in checked}
    # Rules are about what requirements rest on: without any there is nothing for them to look at.
    rules = {item.id: (item.outcome, item.reason) for item in record.rules if record.requirements}
    for each, (outcome, reason) in (results | rules).items():
        proof.outcomes[each], proof.reasons[each] = outcome, reason
        if each in declared:
            # A rule speaks of the whole cluster, in which the broken node may not even appear.
            unnamed = node and node not in reason and each not in rules
            if outcome != "failed" or unnamed:
                proof.missed.append(each)
        elif each not in blocks and outcome != "passed":
            proof.false_alarms.append(each)
    for item in record.features:
        each = _feature(item.id)
        proof.outcomes[each], proof.reasons[each] = item.outcome, item.reason
        if each in declared:
            unnamed = node and item.outcome == "failed" and node not in item.reason
            if item.outcome == "passed" or unnamed:
                proof.missed.append(each)
        elif not _well(item):
            proof.false_alarms.append(each)
    return proof


def _feature(name: str) -> str:
    """How a proof names a feature beside requirements and rules."""
    return f"feature {name}"


def _well(item: FeatureResult) -> bool:
    """Whether a feature is shown, or one of those that the plain sandbox has not."""
    return item.outcome == "passed" or (item.outcome == "not-applicable" and item.id in UNSEEN)


def judge_sound(variant: Variant, records: Sequence[Record]) -> Soundness:
    """On a sound cluster everything passes, or is waived by its flag, or is blocked and says by whom."""
    known = (variant.name, variant.sentence, variant.fact, variant.flags, variant.refused)
    sound = Soundness(*known, seconds=max(record.duration_s for record in records))
    sound.verdict = next((record.verdict or "none" for record in records if record.verdict != "Pass"), "Pass")
    sound.windows_pods = max(record.windows_pods_started for record in records)
    checked = load_checks()
    for record in records:
        for item in record.requirements:
            if item.id not in checked:
                continue
            if item.id in variant.beyond:
                spared = item.outcome == "passed" and variant.runs > 1
                fitting = spared or item.outcome in ("blocked", "not-applicable")
                _note(sound, item.id, item.outcome, item.reason, fitting)
            elif item.id not in variant.refused:
                _note(sound, item.id, item.outcome, item.reason, item.outcome == "passed")
            elif item.outcome != "blocked" or variant.says not in item.reason or RIGHTS in item.next_step:
                sound.missed.append(item.id)
                _note(sound, item.id, item.outcome, f"{item.reason}; next step: {item.next_step}", True)
            else:
                _note(sound, item.id, item.outcome, item.reason, True)
        for rule in record.rules:
            if rule.waived_by in variant.waived:
                sound.waived[rule.id] = str(rule.waived_by)
            # What no pod could be started for, no rule can judge either.
            allowed = ("passed", "blocked") if variant.blocked else ("passed",)
            if rule.id == LINUX_CONFORMANCE and variant.foreign:
                allowed = ("blocked",)
            _note(sound, rule.id, rule.outcome, rule.reason, rule.outcome in allowed or rule.id in sound.waived)
        if record.leftovers:
            _note(sound, "cleanup", "left behind", "; ".join(record.leftovers), False)
        for feature in record.features:
            wanted = feature.outcome == "passed" if feature.id in variant.features.split() else _well(feature)
            _note(sound, _feature(feature.id), feature.outcome, feature.reason, wanted)
        if variant.most_windows_pods and record.windows_pods_started > variant.most_windows_pods:
            many = f"{record.windows_pods_started} were started, at most {variant.most_windows_pods} should be"
            _note(sound, "windows-pods", "too many", many, False)
    return sound


def _note(sound: Soundness, name: str, outcome: str, reason: str, well: bool) -> None:
    """Keep an outcome; of several runs at once the one that is not well."""
    if name not in sound.outcomes or not well:
        sound.outcomes[name], sound.reasons[name] = outcome, reason
    if not well and name not in sound.false_alarms:
        sound.false_alarms.append(name)
