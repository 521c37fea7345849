"""Samples: the same numbers decide and are told, so that a failure never reads like a success."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winready.cluster.commands import BODY, DATAGRAM, Ask, Dialled, dial_all, read_dials, without_padding
from winready.cluster.holding import BOUNDS, ENOUGH, Pool, Sample

ASK = Ask("10.0.0.1", 80)
SMALL = Ask("10.0.0.1", 90, protocol="udp")


def sampled(answered: int, failed: int, ask: Ask = ASK) -> Sample:
    """So many that were answered by ``a``, and so many that were not."""
    sample = Sample(["a", "b"])
    for count, result in ((answered, Dialled(["a"])), (failed, Dialled(errors=["time-out"], understood=False))):
        for _ in range(count):
            sample.add([ask], [result])
    return sample


@given(st.integers(0, 80), st.integers(0, 80), st.sampled_from([ASK, SMALL]))
def test_what_is_told_and_what_is_judged_cannot_differ(answered: int, failed: int, ask: Ask) -> None:
    sample = sampled(answered, failed, ask)
    which: Pool = "datagrams" if ask.protocol == "udp" else "connections"
    total = answered + failed
    assert sample.ok == (failed <= BOUNDS[which] * total)
    if not sample.ok:
        assert f"{answered} of {total} {which} answered" in sample.text()
        assert answered < total
        assert "lost (bound" in sample.text()


def test_one_loss_asks_for_more_and_a_clean_sample_for_nothing() -> None:
    assert sampled(12, 0).suspects() == []
    assert sampled(11, 1).suspects() == [ASK]
    assert sampled(ENOUGH - 1, 1).suspects() == []
    assert sampled(2, 10).suspects() == [], "what cannot come right any more is not tried on"


@pytest.mark.parametrize(("every", "sound"), [(3, False), (10, False), (33, True)])
def test_every_tenth_connection_is_a_defect_and_every_thirtieth_is_not(every: int, sound: bool) -> None:
    assert sampled(ENOUGH - ENOUGH // every, ENOUGH // every).ok is sound


def test_errors_of_a_dial_whose_last_try_failed_leave_the_others_uncounted_but_not_failed() -> None:
    sample = Sample(["a"])
    sample.add([Ask("h", 80, 3)], read_dials(json.dumps({"errors": ["late"]}).encode(), [Ask("h", 80, 3)]))
    assert (sample.pool("connections").asked, sample.pool("connections").failed) == (3, 1)
    assert not sample.seen


def test_a_name_that_is_not_looked_up_fails_each_try() -> None:
    ask = Ask("nobody.example", 80, 3)
    sample = Sample(["a"])
    sample.add([ask], read_dials(b"host and/or port param are invalid. lookup nobody.example: no such host\n\n", [ask]))
    assert sample.pool("connections").failed == 3


def test_answers_that_are_not_as_many_as_questions_say_nothing() -> None:
    assert read_dials(b'{"responses":["a"]}\n\n', [ASK, SMALL]) == []


def test_a_body_that_comes_back_changed_is_lost() -> None:
    large = Ask("h", 80, body=BODY)
    sample = Sample(["a"])
    sample.add([large], [Dialled(["x" * (BODY - 1)])])
    assert sample.pool("connections").failed == 1
    assert sample.strangers == []


def test_whoever_answers_and_should_not_is_a_stranger() -> None:
    sample = Sample(["a"])
    sample.add([ASK, SMALL], [Dialled(["a"]), Dialled(["c"])])
    assert (sample.strangers, sample.ok) == (["c"], False)


def test_evidence_says_how_many_bytes_were_sent_and_leaves_them_out() -> None:
    argv = dial_all("windows", [ASK, Ask("10.0.0.1", 80, body=BODY)])
    assert argv[0] == "curl.exe"
    assert len(" ".join(argv)) < 8000, "proxies refuse longer request lines"
    assert f"({BODY}-bytes)" in without_padding(argv)[-1]


def test_a_large_datagram_is_echoed_counted_and_told() -> None:
    ask = Ask("10.0.0.1", 90, protocol="udp", body=DATAGRAM)
    assert ask.url.endswith(f"&request=echo+{'x' * DATAGRAM}")
    sample = Sample(["a"])
    sample.add([SMALL, ask, ask], [Dialled(["a"]), Dialled([ask.text]), Dialled(["x"])])
    assert sample.text().startswith(f"2 of 3 datagrams answered (1 of 2 with {DATAGRAM:,} bytes each way)")
    assert without_padding([ask.url])[0].endswith(f"echo+({DATAGRAM}-bytes)")
