"""Whether an upgrade goes on: a pure function of what was asked, what is known, and what the operator decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from winready.deploy.capi import words
from winready.deploy.capi.facts import Attempt, Why
from winready.deploy.capi.hooks import Call
from winready.deploy.capi.terms import Terms, asked_again, chosen

LOST_AT_ONCE = 3
"""Lost runs in a row that are tried again without a pause."""


@dataclass(frozen=True)
class Decision:
    """``start`` says why one more run is wanted; the answer is then given once that is written down."""

    hold: bool
    message: str
    start: Why | None = None


def decide(
    call: Call, attempts: Sequence[Attempt], now: float, terms: Terms, *, doing: str = "", before: float = 0.0
) -> Decision:
    """What a hook that can hold is answered.

    ``doing`` tells of a run that goes on how far it is; ``before`` is when the same was asked the last time.
    """
    policy, source = chosen(call, terms)
    if policy == "off":
        return Decision(False, words.switched_off(call, source))
    if not attempts:
        return Decision(True, words.begins(call, source, policy), "hook")
    last = attempts[-1]
    if last.ended is None:
        return Decision(True, words.goes_on(call, last, doing, source, policy))
    held = policy == "require-pass" and last.ended.verdict != "Pass"
    if now - max(last.ended.at, before if held else 0.0) > terms.fresh:
        return Decision(True, words.begins(call, source, policy), "stale")
    if last.ended.verdict == "Pass":
        return Decision(False, words.passed(call, last.ended))
    if last.ended.lost and _lost(attempts) <= LOST_AT_ONCE:
        return Decision(True, words.begins(call, source, policy), "lost")
    if policy == "warn":
        return Decision(False, words.warned(call, last.ended, source))
    wanted = asked_again(call)
    if wanted and wanted != last.asked.run_again:
        return Decision(True, words.begins(call, source, policy), "annotation")
    if now - _since(attempts, terms) > terms.hold_limit:
        if terms.at_limit == "release":
            return Decision(False, words.limit_released(call, last.ended, terms))
        return Decision(True, words.limit_held(call, last.ended, terms))
    due = last.ended.at + _pause(attempts, terms)
    if now >= due:
        return Decision(True, words.begins(call, source, policy), "schedule")
    return Decision(True, words.failed(call, last.ended, due, source))


def _lost(attempts: Sequence[Attempt]) -> int:
    """How many runs in a row were lost."""
    count = 0
    for attempt in reversed(attempts):
        if attempt.ended is None or not attempt.ended.lost:
            break
        count += 1
    return count


def _since(attempts: Sequence[Attempt], terms: Terms) -> float:
    """When the hold began that still goes on."""
    began = attempts[-1].asked.at
    for attempt in reversed(attempts):
        ended = attempt.ended
        if ended is not None and (ended.verdict == "Pass" or began - ended.at > terms.fresh):
            break
        began = attempt.asked.at
    return began


def _pause(attempts: Sequence[Attempt], terms: Terms) -> float:
    """By how many runs in a row did not pass."""
    count = 0
    for attempt in reversed(attempts):
        if attempt.ended is None or attempt.ended.verdict == "Pass":
            break
        count += 1
    return terms.again[min(max(count, 1), len(terms.again)) - 1]
