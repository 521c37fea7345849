"""What a client's log tells about its access to the API server."""

from __future__ import annotations

import pytest

from winready.checks.core_storage.token_rotation import read_calls

BUSY = "the server has received too many requests and has asked us to try again later"
LOST = 'Get "https://10.96.0.1:443/healthz": dial tcp 10.96.0.1:443: i/o timeout'


def log(*calls: tuple[str, str]) -> str:
    """A log of calls, each with a token and perhaps an error, and one more that is not over."""
    lines = []
    for token, error in (*calls, ("new", "")):
        lines += ["I1117 main.go:79] calling /healthz", f"I1117 main.go:99] authz_header={token}"]
        if error:
            lines += ["E1117 main.go:82] status=failed", f"E1117 main.go:83] error checking /healthz: {error}", "", ""]
    return "\n".join(lines)


@pytest.mark.parametrize("error", [BUSY, LOST])
def test_a_call_that_failed_is_no_lost_access_when_others_are_answered(error: str) -> None:
    calls = read_calls(log(("old", ""), ("old", error), ("new", error), ("new", "")))
    assert (calls.errors, calls.refusals, calls.tokens) == ([error, error], [], ["old", "new"])
    assert calls.goes_on


@pytest.mark.parametrize("error", [BUSY, LOST, "Unauthorized"])
def test_without_an_answer_to_the_new_token_access_does_not_go_on(error: str) -> None:
    calls = read_calls(log(("old", ""), ("new", ""), ("new", error)))
    assert not calls.goes_on
    assert not read_calls(log(("old", ""), ("old", ""))).goes_on
    assert calls.refusals == ([error] if error == "Unauthorized" else [])
