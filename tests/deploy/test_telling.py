"""A run in few bytes: whatever a cluster says, it stays bounded, on one line, and steers nobody."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.samples import ALL, make_record, result
from winready.deploy import telling
from winready.deploy.metrics import parse_listen, render
from winready.deploy.policy_report import CLUSTER_REPORTS, report
from winready.report.exposition import LABEL
from winready.report.record import Record

HOSTILE = 'a"} 1\nwinready_verdict{scope="complete"} 1\r\n\x1b[2J\u202e\\" ' + "ü" * 9000


def hostile(outcome: str = "failed") -> Record:
    record = make_record()
    record.requirements = [result(each, outcome, reason=HOSTILE, next_step=HOSTILE) for each in ALL]  # type: ignore[arg-type]
    record.selected = list(ALL)
    record.verdict, record.verdict_text, record.exit_code = "Fail", "Fail", 1
    record.verdict_reasons = [f"{each} {outcome}: {HOSTILE}" for each in ALL]
    record.leftovers = [HOSTILE] * 500
    return record


@pytest.mark.parametrize("finished", [True, False])
def test_last_words_fit_and_say_what_was_left_out(finished: bool) -> None:
    words = telling.last_words(hostile(), finished=finished)
    assert len(words.encode()) <= 4096
    assert "\x1b" not in words
    assert "\u202e" not in words
    assert words.startswith("Fail\n" if finished else "Unfinished\n")
    assert bool(re.search(r"\nand \d+ more lines\n$", words)) is finished
    assert ("500 objects of this run left behind" in words) is finished


def test_the_summary_is_bounded_and_stays_a_document() -> None:
    content = telling.summary(hostile(), finished=True)
    assert sum(len(text.encode()) for text in content.values()) < 300 * 1024
    document = json.loads(content["summary.json"])
    assert len(document["requirements"]) == len(ALL)
    assert all(len(item["reason"].encode()) <= telling.REASON for item in document["requirements"])
    # One line each, whatever the reasons hold.
    marked = [text for text in content["summary.txt"].splitlines() if text.startswith("✗ ")]
    assert len(marked) >= len(ALL)


def test_a_summary_of_a_standard_far_too_large_is_cut_between_requirements() -> None:
    record = hostile()
    record.requirements = record.requirements * 40
    document = json.loads(telling.summary(record, finished=True)["summary.json"])
    assert document["requirements_left_out"] + len(document["requirements"]) == 40 * len(ALL)
    assert document["verdict"] == "Fail"


def test_events_and_annotations_are_one_line_of_a_kilobyte() -> None:
    record = hostile()
    for text in (telling.verdict_event(record), telling.result_event(record.requirements[0])):
        assert len(text.encode()) <= 1000
        assert not set(text) & set("\n\r\x1b\u202e")


@given(st.text(), st.integers(min_value=4, max_value=200))
def test_a_line_is_one_and_never_too_long(text: str, limit: int) -> None:
    made = telling.line(text, limit)
    assert len(made.encode()) <= limit
    assert "\n" not in made


def test_an_unfinished_run_has_no_verdict_anywhere() -> None:
    record = Record(run_id="261118-000000-0000", selected=["a"])
    assert json.loads(telling.summary(record, finished=False)["summary.json"])["verdict"] is None
    assert "winready_verdict" not in render(record, finished=False, now=0.0)
    assert telling.last_words(record, finished=False).startswith("Unfinished\nrun 261118-000000-0000, 0 of 1 judged\n")


SAMPLE = re.compile(r'[a-z_]+(\{[a-z]+="(?:[^"\\\n]|\\[\\"n])*"(,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*\})? -?[0-9.]+')


def test_nothing_that_a_cluster_says_of_itself_makes_a_metric() -> None:
    record = hostile()
    assert record.cluster is not None
    record.cluster = msgspec.structs.replace(record.cluster, version=HOSTILE)
    text = render(record, finished=True, now=1.0)
    lines = [line for line in text.splitlines() if not line.startswith("# ")]
    assert all(SAMPLE.fullmatch(line) for line in lines)
    assert [line for line in lines if line.startswith("winready_verdict")] == ['winready_verdict{scope="complete"} 0']
    assert max(map(len, lines)) < 2 * LABEL + 300
    assert len(set(lines)) == len(lines)


def test_a_pass_in_metrics() -> None:
    record = make_record()
    text = render(record, finished=True, now=12.0)
    assert 'winready_verdict{scope="complete"} 1\n' in text
    assert "winready_update_time_seconds 12.000\n" in text
    outcomes = re.findall(r"^winready_requirement_outcome\{.*\} 1$", text, re.MULTILINE)
    assert len(outcomes) == len(record.requirements)
    assert text.count("# TYPE winready_requirement_outcome gauge\n") == 1


def test_a_full_disk_costs_the_metrics_file_and_a_note(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import resource, sys
        from pathlib import Path
        from report.samples import make_record
        from winready.deploy.metrics import MetricsFile
        from winready.engine.events import RunFinished
        from winready.engine.verdict import Verdict
        verdict = Verdict(verdict="Pass", scope="complete", exit_code=0, core_selected=1, core_total=1, reasons=[])
        handler = MetricsFile(Path(sys.argv[1]), make_record(), lambda text: print(text))
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
        handler.start()
        for _ in range(3):
            handler.handle(RunFinished(at_s=1.0, verdict=verdict, windows_pods=0))
        handler.close()
        """
    )
    file = tmp_path / "winready.prom"
    tests = Path(__file__).resolve().parents[1]
    result = subprocess.run(
        [sys.executable, "-c", script, str(file)], env={"PYTHONPATH": str(tests)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert result.stdout.splitlines() == [
        f"note: metrics file {file} cannot be told: File too large; the verdict does not depend on it"
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("9100", ("127.0.0.1", 9100)),
        (":9100", ("", 9100)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:9100", ("::1", 9100)),
        ("0.0.0.0:9100", ("0.0.0.0", 9100)),
    ],
)
def test_where_metrics_are_served(text: str, place: tuple[str, int]) -> None:
    assert parse_listen(text) == place


@pytest.mark.parametrize("text", ["", ":", "x:1", "1.2.3.4", "70000", "[::1]", "127.0.0.1:-1", "a b:1"])
def test_what_is_no_place_to_listen(text: str) -> None:
    with pytest.raises(ValueError, match="is no "):
        parse_listen(text)


def test_a_policy_report_counts_advice_as_a_warning_and_what_was_not_judged_as_an_error() -> None:
    record = make_record()
    advisory = next(each for each in ALL if result(each).level == "advisory")
    core = next(each for each in ALL if result(each).level == "core")
    record.requirements = [result(advisory, "failed"), result(core, "blocked"), result(ALL[5], "not-applicable")]
    made = report(CLUSTER_REPORTS, "winready", record, {})
    assert [item["result"] for item in made["results"]] == ["warn", "error", "skip"]
    assert made["summary"] == {"pass": 0, "fail": 0, "warn": 1, "error": 1, "skip": 1}
    assert all(len(item["message"].encode()) <= telling.REASON for item in made["results"])
