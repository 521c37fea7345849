"""Whether an upgrade goes on, by what is known and what the operator decided: every turn of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from winready.deploy.capi.deciding import Decision, decide
from winready.deploy.capi.facts import Asked, Attempt, Ended, Taken
from winready.deploy.capi.hooks import Call, Named
from winready.deploy.capi.terms import AGAIN, POLICY_LABEL, Terms

HOUR = 3600.0
NOW = 1_000_000.0
TERMS = Terms(policy="require-pass", again=(600.0, 1800.0, 7200.0))
CALL = Call("BeforeClusterUpgrade", Named("fleet", "one", "u"), step="upgrade_v1.34.0_v1.35.0")
PASS, FAIL, NONE = (
    Ended(NOW, "Pass", "r"),
    Ended(NOW, "Fail", "r", "Fail", "it broke"),
    Ended(NOW, words="no way there"),
)
LOST = Ended(NOW, words="killed", lost=True)


def attempts(*endings: Ended | None, run_again: str = "") -> list[Attempt]:
    """Runs one after the other, each begun a minute before its end."""
    found = []
    for number, ended in enumerate(endings, 1):
        asked = Asked((ended.at if ended else NOW) - 60, run_again=run_again)
        found.append(Attempt(number, asked, [Taken(asked.at)], ended))
    return found


def at(ended: Ended, moment: float) -> Ended:
    return Ended(moment, ended.verdict, ended.run_id, ended.words, ended.first, ended.lost)


def decided(
    found: list[Attempt], now: float = NOW, terms: Terms = TERMS, before: float = 0.0, **given: str
) -> Decision:
    call = replace(
        CALL,
        labels={POLICY_LABEL: given["policy"]} if "policy" in given else {},
        annotations={AGAIN: given["again"]} if "again" in given else {},
        settings={"policy": given["settings"]} if "settings" in given else {},
    )
    return decide(call, found, now, terms, before=before)


@pytest.mark.parametrize(
    ("endings", "policy", "hold", "why"),
    [
        ([], "require-pass", True, "hook"),
        ([], "warn", True, "hook"),
        ([], "off", False, None),
        ([None], "require-pass", True, None),
        ([None], "warn", True, None),
        ([None], "off", False, None),
        ([PASS], "require-pass", False, None),
        ([FAIL, PASS], "require-pass", False, None),
        ([FAIL], "require-pass", True, None),
        ([NONE], "require-pass", True, None),
        ([FAIL], "warn", False, None),
        ([NONE], "warn", False, None),
        ([LOST], "require-pass", True, "lost"),
        ([LOST], "warn", True, "lost"),
        ([LOST] * 4, "require-pass", True, None),
        ([LOST] * 4, "warn", False, None),
    ],
)
def test_by_policy_and_what_came_of_the_last_run(
    endings: list[Ended | None], policy: str, hold: bool, why: str | None
) -> None:
    found = decided(attempts(*endings), policy=policy)
    assert (found.hold, found.start) == (hold, why), found.message


@pytest.mark.parametrize(("count", "pause"), [(1, 600), (2, 1800), (3, 7200), (4, 7200)])
def test_each_run_that_did_not_pass_makes_the_next_one_wait_longer(count: int, pause: float) -> None:
    found = attempts(*[at(FAIL, NOW)] * count)
    assert decided(found, NOW + pause - 1).start is None
    assert "the next run begins at" in decided(found, NOW + pause - 1).message
    assert decided(found, NOW + pause).start == "schedule"


def test_a_pass_in_between_begins_the_schedule_anew() -> None:
    found = attempts(at(FAIL, NOW - 30 * HOUR), at(FAIL, NOW - 29 * HOUR), at(PASS, NOW - 28 * HOUR), FAIL)
    assert decided(found, NOW + 600).start == "schedule"


def test_an_annotation_asks_for_one_run_for_each_of_its_values() -> None:
    assert decided(attempts(FAIL), again="1").start == "annotation"
    assert decided(attempts(FAIL, run_again="1"), again="1").start is None
    assert decided(attempts(FAIL, run_again="1"), again="2").start == "annotation"
    assert decided(attempts(FAIL, run_again="1")).start is None
    assert decided(attempts(PASS, run_again="1"), again="2") == decided(attempts(PASS))
    assert decided(attempts(None, run_again="1"), again="2").start is None


def test_after_the_limit_nothing_is_tried_unless_somebody_asks() -> None:
    held_long = attempts(*(at(FAIL, NOW - hours * HOUR) for hours in (25, 23, 3)))
    found = decided(held_long, NOW)
    assert (found.hold, found.start) == (True, None)
    assert "no run begins by itself any more" in found.message
    assert decided(held_long, NOW, again="1").start == "annotation"
    released = decided(held_long, NOW, replace(TERMS, at_limit="release"))
    assert not released.hold
    assert "goes on all the same, since it was held for 24 h" in released.message
    # Held and asked about for days, it stays so; who comes back after days of silence gets a run.
    assert decided(held_long, NOW + 48 * HOUR, before=NOW + 48 * HOUR - 30).start is None
    assert decided(held_long, NOW + 48 * HOUR).start == "stale"


def test_an_old_result_counts_no_more() -> None:
    assert decided(attempts(at(PASS, NOW - 23 * HOUR))).hold is False
    assert decided(attempts(at(PASS, NOW - 25 * HOUR)), before=NOW - 1).start == "stale"
    assert decided(attempts(at(FAIL, NOW - 25 * HOUR)), before=NOW - 1, policy="warn").start == "stale"


def test_where_a_policy_comes_from() -> None:
    assert decided([], settings="off").hold is False
    assert decided([], settings="off", policy="warn").hold is True
    assert decided(attempts(FAIL), policy="Require-Pass").hold is True
    assert "is none of require-pass, warn, off" in decided([], policy="Require-Pass").message
    assert decided([], terms=replace(TERMS, policy="off")).message.endswith("(default: off)")


def test_messages_say_what_to_do() -> None:
    held = decided(attempts(FAIL)).message
    for part in (
        "cluster fleet/one did not pass: Fail (run r); first of all: it broke",
        "kubectl -n fleet annotate cluster one --overwrite winready.io/run-again=",
        "kubectl -n fleet label cluster one --overwrite winready.io/policy=off",
    ):
        assert part in held
    assert "was not judged: no way there" in decided(attempts(NONE)).message
    hostile = Ended(NOW, "Fail", "r", "x\x1b[2J\n" * 5000, "y" * 9000)
    assert len(decided(attempts(hostile)).message.encode()) <= 1500
    assert "\x1b" not in decided(attempts(hostile)).message
