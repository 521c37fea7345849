"""Waits and holds in cluster seconds."""

import pytest

from winready.cluster.timing import moments, uneven


def test_pauses_of_a_hold_last_as_long_together_and_differ_between_those_who_pause() -> None:
    pauses = [uneven(120, 2, f"wc-{number} the service") for number in range(50)]
    assert all(sum(each) == pytest.approx(120) and min(each) > 10 for each in pauses)
    middles = {round(each[0]) for each in pauses}
    assert min(middles) < 40
    assert max(middles) > 80
    assert uneven(120, 2, "wc-1 the service") == uneven(120, 2, "wc-1 the service")


def test_moments_leave_no_gap_that_an_outage_fits_into_and_are_others_for_everybody() -> None:
    for number in range(50):
        found = moments(120, 60, f"wc-{number} a pod")
        assert found == sorted(found)
        for down in range(114):
            assert sum(down <= moment < down + 6 for moment in found) >= 2
    assert moments(120, 60, "wc-1 a pod") != moments(120, 60, "wc-2 a pod")
