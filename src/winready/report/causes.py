"""What kept a run from passing, told once: each cause with everything that it concerns.

One broken thing often stops many requirements, and what could not be judged stops the rules as well. Who reads a report
wants to know what it was, then what to do, and only then whom it met.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from winready.engine.outcomes import Outcome, RequirementResult, RuleResult
from winready.engine.verdict import may_not_apply

Item = RequirementResult | RuleResult
ORDER: tuple[Outcome, ...] = ("failed", "error", "blocked", "not-applicable")
"""Worst first; what does not apply is told where the verdict counts it."""
_DIFFERENT_EVERY_TIME = (
    (re.compile(r"\d{6}-\d{6}-[0-9a-f]{4}"), "RUN"),
    (re.compile(r"-[0-9a-f]{8,10}-[0-9a-z]{5}\b"), "-*"),
    (re.compile(r"\b\d{1,9}(?:\.\d{1,9})? (?:ms|milliseconds|s|seconds)\b"), "TIME"),
)


@dataclass(frozen=True)
class Cause:
    """One reason, and what it kept from passing."""

    outcome: Outcome
    reason: str
    next_step: str = ""
    expected: str = ""
    observed: str = ""
    requirements: tuple[RequirementResult, ...] = ()
    rules: tuple[RuleResult, ...] = ()
    """Rules of the run with this very reason."""
    follows: tuple[RuleResult, ...] = ()
    """Rules that could not be judged because nothing was there to judge them by."""

    @property
    def ids(self) -> list[str]:
        """Whom it concerns, by their names."""
        return [*(each.id for each in self.requirements), *(each.id for each in (*self.rules, *self.follows))]

    @property
    def decides(self) -> bool:
        """Whether the verdict looks at any of them; it never looks at what is advisory."""
        return bool(self.rules) or any(each.level != "advisory" for each in self.requirements)

    @property
    def concerns(self) -> str:
        """``24 requirements and 5 rules``."""
        counts = ((len(self.requirements), "requirement"), (len(self.rules) + len(self.follows), "rule"))
        return " and ".join(f"{number} {thing}{'' if number == 1 else 's'}" for number, thing in counts if number)


def by_cause(
    requirements: Iterable[RequirementResult], rules: Iterable[RuleResult], *, air_gapped: bool = False
) -> list[Cause]:
    """Everything that did not pass, each cause once: what decides first, the worst first, the widest first."""
    requirements = list(requirements)
    groups: dict[tuple[str, str], list[Item]] = {}
    items: list[Item] = [*requirements, *rules]
    for item in items:
        if _told(item, air_gapped):
            groups.setdefault((item.outcome, _stable(item.reason)), []).append(item)
    causes = _with_what_follows([_cause(same) for same in groups.values()], requirements)
    return sorted(causes, key=lambda cause: (not cause.decides, ORDER.index(cause.outcome), -len(cause.ids)))


def by_next_step(causes: Sequence[Cause]) -> list[list[Cause]]:
    """The same causes, those with one next step side by side: whoever takes it looks at all of them."""
    groups: dict[tuple[str, str], list[Cause]] = {}
    for number, cause in enumerate(causes):
        alone = f"{number}" if not cause.next_step else ""
        groups.setdefault((f"{cause.outcome} {cause.decides} {alone}", cause.next_step), []).append(cause)
    return list(groups.values())


def _told(item: Item, air_gapped: bool) -> bool:
    if isinstance(item, RuleResult):
        return item.gates == "run" and item.waived_by is None and item.outcome in ("failed", "error", "blocked")
    if item.outcome == "not-applicable":
        return item.level == "core" and not may_not_apply(item, air_gapped)
    return item.outcome != "passed"


def _stable(reason: str) -> str:
    """A reason without what differs between two tellings of the same thing."""
    for pattern, word in _DIFFERENT_EVERY_TIME:
        reason = pattern.sub(word, reason)
    return reason


def _cause(same: Sequence[Item]) -> Cause:
    requirements = tuple(item for item in same if isinstance(item, RequirementResult))
    first = next((item for item in requirements if item.next_step), requirements[0]) if requirements else None
    return Cause(
        outcome=same[0].outcome,
        reason=first.reason if first else same[0].reason,
        next_step=first.next_step if first else "",
        expected=first.expected if first else "",
        observed=first.observed if first else "",
        requirements=requirements,
        rules=tuple(item for item in same if isinstance(item, RuleResult)),
    )


def _with_what_follows(causes: list[Cause], requirements: Sequence[RequirementResult]) -> list[Cause]:
    """Where one cause kept everything from being judged, rules with nothing to look at are no cause of their own."""
    whole = next((cause for cause in causes if cause.requirements and _all(cause, requirements)), None)
    if whole is None or whole.outcome not in ("error", "blocked"):
        return causes
    bare = [cause for cause in causes if not cause.requirements and cause.outcome in ("error", "blocked")]
    follows = tuple(rule for cause in bare for rule in cause.rules)
    return [replace(whole, follows=follows), *(cause for cause in causes if cause is not whole and cause not in bare)]


def _all(cause: Cause, requirements: Sequence[RequirementResult]) -> bool:
    """Whether it met everything that was not out of the question from the start."""
    return len(cause.requirements) == sum(each.outcome != "not-applicable" for each in requirements)
