"""JUnit files as e2e.test writes them, and as an enemy would."""

from __future__ import annotations

from pathlib import Path

import pytest

from winready.upstream.junit import HEAD, TAIL, Case, JunitError, read_cases

NEW = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="6"><testsuite name="Kubernetes e2e suite" package="x">
<testcase name="[SynchronizedBeforeSuite]" classname="x" status="passed" time="1.5"/>
<testcase name="[It] [sig-a] one works" status="passed" time="28.4">
  <system-err>Destroying namespace &quot;one-12&quot;</system-err>
</testcase>
<testcase name="[It] [sig-a] two works" status="failed" time="3">
  <failure message="no &lt;answer&gt;" type="failed">at x.go:12</failure>
</testcase>
<testcase name="[It] [sig-a] three works" status="skipped">
  <skipped message="skipped - needs &apos;windows&apos;"/>
</testcase>
<testcase name="[It] [sig-a] four works" status="timedout" time="9">
  <error message="too long" type="timedout"/>
</testcase>
<testcase name="[ReportAfterSuite] [sig-testing] Log Check" status="passed"/>
</testsuite></testsuites>"""
OLD = """<testsuite name="Kubernetes e2e suite" tests="3">
<testcase name="[sig-a] one  works" classname="Kubernetes e2e suite" time="2"></testcase>
<testcase name="[sig-a] two works" time="2">
  <failure type="Failure">broke</failure><system-out>said</system-out>
</testcase>
<testcase name="[sig-a] three works" time="0"><skipped></skipped></testcase>
</testsuite>"""


def read(tmp_path: Path, content: str | bytes) -> list[Case]:
    file = tmp_path / "junit_01.xml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_cases(file))


def test_ginkgo_2_with_nodes_of_the_suite(tmp_path: Path) -> None:
    cases = {case.text: case for case in read(tmp_path, NEW)}
    tests = {text: case.status for text, case in cases.items() if not case.suite_node}
    assert tests == {
        "[sig-a] one works": "passed",
        "[sig-a] two works": "failed",
        "[sig-a] three works": "skipped",
        "[sig-a] four works": "failed",
    }
    assert cases["[sig-a] one works"].output == 'Destroying namespace "one-12"'
    assert cases["[sig-a] two works"].message == "no <answer>\nat x.go:12"
    assert cases["[sig-a] three works"].message == "needs 'windows'"
    assert cases["[sig-a] four works"].state == "timedout"
    assert cases["[ReportAfterSuite] [sig-testing] Log Check"].suite_node


def test_ginkgo_1_without_status(tmp_path: Path) -> None:
    cases = read(tmp_path, OLD)
    assert [(case.text, case.status) for case in cases] == [
        ("[sig-a] one works", "passed"),
        ("[sig-a] two works", "failed"),
        ("[sig-a] three works", "skipped"),
    ]
    assert cases[1].message == "broke"
    assert cases[1].output == "said"


@pytest.mark.parametrize("state", ["panicked", "timedout", "interrupted", "aborted", "something new"])
def test_whatever_is_neither_passed_nor_skipped_is_a_failure(tmp_path: Path, state: str) -> None:
    file = f'<testsuites><testcase name="[It] [sig-a] x" status="{state}"/></testsuites>'
    assert [case.status for case in read(tmp_path, file)] == ["failed"]


def test_a_failure_inside_outweighs_a_status_of_passed(tmp_path: Path) -> None:
    file = '<testsuites><testcase name="[It] [sig-a] x" status="passed"><failure>no</failure></testcase></testsuites>'
    assert [case.status for case in read(tmp_path, file)] == ["failed"]


def test_a_file_cut_short_gives_what_was_written(tmp_path: Path) -> None:
    assert [case.text for case in read(tmp_path, NEW[: NEW.index("three")])][-1] == "[sig-a] two works"


def test_long_output_is_kept_in_part(tmp_path: Path) -> None:
    text = "begin " + "x" * (4 * (HEAD + TAIL)) + " end"
    file = f'<testsuites><testcase name="[It] [sig-a] x"><system-err>{text}</system-err></testcase></testsuites>'
    output = read(tmp_path, file)[0].output
    assert output.startswith("begin")
    assert output.endswith("end")
    assert "characters cut" in output
    assert len(output) < 2 * (HEAD + 2 * TAIL)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty"),
        (b"<html></html>", "root element is 'html'"),
        (b"not xml", "line 1"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><testsuites/>', "document type"),
        (b"<testsuites>" + b"<a>" * 70, "nested deeper"),
        (b'<testsuites a="' + b"x" * (9 << 20) + b'"/>', "single tag"),
        (b"<testsuites>\xff\xfe</testsuites>", "line 1"),
        (b'<?xml version="1.0" encoding="U.F-8"?><testsuites/>', "unknown encoding"),
        (b'<?xml version="1.0" encoding="utf-7"?><testsuites/>', "line 1: "),
    ],
)
def test_hostile_files_are_refused_in_words(tmp_path: Path, content: bytes, problem: str) -> None:
    with pytest.raises(JunitError, match=problem):
        read(tmp_path, content)
