"""What curl and netexec say of names, and what that means."""

from __future__ import annotations

import pytest

from winready.checks.core_network.name_shares import Share
from winready.checks.core_network.names import Led, Target, look_up, read_look_up
from winready.cluster.commands import Reply
from winready.cluster.execution import Execution

SERVICE = Target("ls", 80, ("ls-1", "ls-2"))
ANY = Target("registry.k8s.io", 443)
MISSING = Target("none", 80, absent=True)
API = Target("kubernetes.default.svc.cluster.local", 443, api=True)
NO_HOST = "host and/or port param are invalid. lookup x: no such host\n"


def led(target: Target, text: str, code: int, stderr: str = "") -> tuple[Led, str]:
    (answer,) = read_look_up([target], Execution(0, f"{text}\n={code:03d}\n".encode(), stderr.encode()))
    return answer.led, answer.seen


@pytest.mark.parametrize(
    ("target", "text", "code", "stderr", "expected"),
    [
        (SERVICE, '{"responses":["ls-2"]}', 200, "", (Led.RIGHT, "ls-2")),
        (SERVICE, '{"responses":["ws-1"]}', 200, "", (Led.STRANGER, "ws-1")),
        (SERVICE, '{"errors":["Get x: i/o timeout"]}', 200, "", (Led.UNREACHED, "Get x: i/o timeout")),
        (SERVICE, NO_HOST, 400, "", (Led.UNRESOLVED, "lookup x: no such host")),
        (SERVICE, "", 0, "curl: (28) Operation timed out\n", (Led.UNRESOLVED, "curl: (28) Operation timed out")),
        (ANY, '{"errors":["Get x: EOF"]}', 200, "", (Led.RIGHT, "Get x: EOF")),
        (ANY, NO_HOST, 400, "", (Led.UNRESOLVED, "lookup x: no such host")),
        (MISSING, NO_HOST, 400, "", (Led.RIGHT, "lookup x: no such host")),
        (MISSING, '{"errors":["Get x: i/o timeout"]}', 200, "", (Led.STRANGER, "Get x: i/o timeout")),
        (API, '{"gitVersion":"v1.36.0"}', 200, "", (Led.RIGHT, "an API server of v1.36.0")),
        (API, '{"kind":"Status"}', 401, "", (Led.RIGHT, "an API server that refuses strangers")),
        (API, "<html>", 200, "", (Led.STRANGER, "HTTP 200, not an API server")),
        (API, "", 0, "curl: (6) Could not resolve host: k\n", (Led.UNRESOLVED, "curl: (6) Could not resolve host: k")),
        (API, "", 0, "curl: (7) Failed to connect\n", (Led.UNREACHED, "curl: (7) Failed to connect")),
    ],
)
def test_what_an_answer_means(target: Target, text: str, code: int, stderr: str, expected: tuple[Led, str]) -> None:
    assert led(target, text, code, stderr) == expected


def test_several_names_are_told_apart_and_errors_belong_to_those_that_failed() -> None:
    out = b'{"responses":["ls-1"]}\n=200\n\n=000\n{"responses":["ls-2"]}\n=200\n\n=000\n'
    err = b"curl: (28) first\ncurl: (6) second\n"
    answers = read_look_up([SERVICE, ANY, SERVICE, API], Execution(6, out, err))
    assert [answer.seen for answer in answers] == ["ls-1", "curl: (28) first", "ls-2", "curl: (6) second"]
    assert len(look_up("windows", [SERVICE, API])) == len(look_up("linux", [SERVICE])) + 1


@pytest.mark.parametrize(
    ("replies", "borne"),
    [
        ([Reply("NOERROR")] * 58 + [Reply()] * 2, True),
        ([Reply("NOERROR")] * 50 + [Reply()] * 10, False),
        ([Reply("NOERROR")] * 57 + [Reply("SERVFAIL")] * 3, True),
        ([Reply("NOERROR")] * 56 + [Reply("SERVFAIL")] * 4, False),
        ([Reply("NXDOMAIN")] * 60, True),
        ([Reply("NOERROR")] * 40, False),
    ],
)
def test_shares_are_judged_by_their_bounds(replies: list[Reply], borne: bool) -> None:
    share = Share()
    share.count(replies, 60)
    assert share.borne is borne
    assert "of 60 questions" in str(share)
