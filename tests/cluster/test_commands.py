"""Commands as Windows and Linux want them, and what is read from their answers."""

from __future__ import annotations

import pytest

from winready.cluster.commands import (
    BODY,
    Reply,
    Use,
    dig,
    keep,
    read_blocks,
    read_dial,
    read_kept,
    read_replies,
    write_file,
)
from winready.cluster.stats import Usage


def test_a_line_that_cmd_would_misread_is_refused() -> None:
    assert write_file("windows", "C:\\a", "textz") == ["cmd", "/c", "echo textz>C:\\a"]
    assert write_file("linux", "/a", "textz", append=True) == ["sh", "-c", "echo textz>>/a"]
    with pytest.raises(ValueError, match="letter"):
        write_file("windows", "C:\\a", "text1")


@pytest.mark.parametrize(
    ("output", "blocks"), [(b"blocks=50\r\nblocks=51\r\n", [50, 51]), (b"", []), (b"blocks=\r\n", [])]
)
def test_only_a_program_that_got_so_far_says_how_much_memory_it_had(output: bytes, blocks: list[int]) -> None:
    assert read_blocks(output) == blocks


def test_cores_are_counted_over_the_kubelets_stamps_unless_these_are_too_coarse() -> None:
    first = Usage(core_seconds=0, memory_bytes=0, stamped=100, read=0.0)
    assert Usage(core_seconds=30, memory_bytes=0, stamped=160, read=75.0).cores_since(first) == 0.5
    assert Usage(core_seconds=1, memory_bytes=0, stamped=103, read=2.0).cores_since(first) == 0.5


DUG = b""";; Got answer:\r
;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 7\r
;; flags: qr aa rd; QUERY: 1, ANSWER: 2, AUTHORITY: 0, ADDITIONAL: 1\r
\r
a.test.\t\t30\tIN\tA\t10.0.0.1\r
a.test.\t\t30\tIN\tA\t10.0.0.2\r
;; connection timed out; no servers could be reached\r
;; communications error to 10.96.0.10#53: timed out
;; no servers could be reached
;; Got answer:
;; ->>HEADER<<- opcode: QUERY, status: SERVFAIL, id: 8
"""


def test_each_question_of_dig_has_a_reply_or_none() -> None:
    answered = Reply("NOERROR", ["10.0.0.1", "10.0.0.2"], 30)
    assert read_replies(DUG) == [answered, Reply(), Reply(), Reply("SERVFAIL")]
    assert read_replies(b"") == []


def test_names_are_complete_and_asked_for_as_often_as_is_said() -> None:
    assert dig(["a.test", "b.test."]) == ["dig", "+noall", "+comments", "+answer", "a.test.", "b.test."]
    assert dig(["a"], server="10.0.0.1", tries=1, seconds=5)[1:] == [
        "@10.0.0.1", "+noall", "+comments", "+answer", "+tries=1", "+time=5", "a."
    ]  # fmt: skip


def test_errors_about_large_bodies_say_how_large_and_not_what() -> None:
    body = "x" * BODY
    said = read_dial(f'{{"errors":["Get \\"http://a:80/echo?msg={body}\\": time-out"]}}'.encode())
    assert said.errors == [f'Get "http://a:80/echo?msg=({BODY}-bytes)": time-out']


def test_uses_of_one_connection_say_who_answered_and_how_many_new_ones_they_took() -> None:
    command = keep("windows", "http://10.0.0.1:80/hostname", 3)
    assert [word for word in command if word.startswith("http")][::2] == ["http://10.0.0.1:80/hostname"] * 3
    printed = b'a#1\r\n{"errors":["x#y"]}#1\r\na#0\r\n{}#0\r\n#1\r\n'
    assert read_kept(printed, 3) == [Use("a", 1), Use("a", 0), Use("", 1)]


@pytest.mark.parametrize("output", [b"", b"a#1\n{}#1\n", b"a#1\n{}#1\nno number\n", b"a#1\n{}#1\na#0\nb#0\n"])
def test_a_command_that_did_not_get_to_its_end_says_nothing_about_the_connection(output: bytes) -> None:
    assert read_kept(output, 2) == []
