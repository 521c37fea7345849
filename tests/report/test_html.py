"""``report.html`` without a browser: it is whole, it is escaped, it allows itself nothing. The rest: tests/browser."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec

from report import samples
from winready.engine.outcomes import RuleResult
from winready.report.html import page
from winready.report.html.matrix import make_matrix
from winready.report.html.nodes import make_nodes
from winready.report.html.timeline import make_timeline
from winready.report.record import Record

DNS = "core.network.dns-internal"
TIMES = "\N{MULTIPLICATION SIGN}"


class Tags(HTMLParser):
    """Every start tag with its attributes, and the texts of style and script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.lasttag in ("style", "script") and data.strip():
            self.inline.setdefault(self.lasttag, data)


def test_the_page_loads_nothing_and_allows_only_its_own_style_and_script() -> None:
    text = page.render(samples.make_record(outcomes={DNS: "failed"}))
    seen = Tags(text)
    policy = next(a["content"] or "" for tag, a in seen.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(seen.inline[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    for tag, attributes in seen.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert "style" not in attributes
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")


def test_what_the_cluster_says_is_never_markup() -> None:
    evil = '</pre><script>alert(1)</script><img src=x onerror="alert(2)">'
    found = samples.evidence(text=evil)
    found.fact(evil, {"deep": evil})
    text = page.render(samples.make_record(results=[samples.result(DNS, "failed", reason=evil, found=found)]))
    assert text.count("<script>") == 1
    assert "<img" not in text
    assert text.count("&lt;script&gt;") >= 4


def test_the_page_says_the_verdict_why_and_what_to_do() -> None:
    text = page.render(samples.make_record(outcomes={DNS: "failed"}))
    assert "<title>Fail · 261101-101500-ab12 · winready</title>" in text
    assert "N10 went wrong" in text
    assert "look at node windows-1" in text
    assert all(f'id="{name}"' in text for name in samples.CORE)


def test_a_run_without_a_cluster_still_has_a_page() -> None:
    text = page.render(Record())
    assert "The cluster could not be looked at" in text
    assert "Nothing was run" in text


def test_a_draft_says_so_on_every_page() -> None:
    text = page.render(samples.make_record(), draft=["the run is partial"])
    assert "Draft, not a certificate: the run is partial." in text
    assert re.search(r"@media print.*\.draft \{ position: fixed", text, re.DOTALL)


def test_the_timeline_marks_the_chain_that_bounded_the_run() -> None:
    timeline = make_timeline(samples.make_record(ids=samples.CORE[:3]))
    assert timeline.critical == ["shared servers", samples.CORE[2], "cleanup"]
    waited = {bar.name: round(bar.waited, 3) for bar in timeline.bars if bar.kind == "requirement"}
    assert set(waited.values()) == {0.9}
    assert timeline.bars[-1].name == "cleanup"
    assert max(timeline.ticks) <= timeline.total == 9.0


def test_the_chain_goes_on_through_what_had_to_wait_its_turn() -> None:
    """A disruptive requirement comes last: what bounded the run is what ran before it as well."""
    run = samples.make_record(ids=samples.CORE[:3])
    long, turn, short = run.requirements
    run.requirements = [
        msgspec.structs.replace(long, duration_s=6.0),
        msgspec.structs.replace(turn, started_s=6.11, duration_s=1.5),
        msgspec.structs.replace(short, duration_s=2.0),
    ]
    timeline = make_timeline(run)
    assert timeline.critical == ["shared servers", long.id, turn.id, "cleanup"]
    assert round(timeline.critical_s, 1) == 8.5


def test_passed_core_requirements_are_counted_by_the_text_that_was_followed() -> None:
    part = page.render(samples.make_record(ids=samples.CORE[:2], outcomes={samples.CORE[0]: "failed"}))
    assert "<dd>1 of 2 selected passed; the standard has 24</dd>" in part
    assert "It says nothing about 22 core requirements outside the selection." in part
    assert "<dd>2 of 2 passed</dd>" in page.render(samples.make_record(ids=samples.CORE[:2], digest="sha256:0"))


def test_the_node_that_most_failures_lead_to_is_named() -> None:
    three = samples.make_record(outcomes=dict.fromkeys(samples.CORE[:3], "failed"))
    assert "3 of 3 failures lead to node windows-1: look there first." in page.render(three)
    two = samples.make_record(outcomes=dict.fromkeys(samples.CORE[:2], "failed"))
    assert "look there first" not in page.render(two)
    everywhere = [
        samples.result(name, "failed", next_step=f"look at node windows-{n % 2 + 1}")
        for n, name in enumerate(samples.CORE[:4])
    ]
    assert "look there first" not in page.render(samples.make_record(results=everywhere))


def test_the_matrix_tells_nodes_services_and_names_apart() -> None:
    found = samples.evidence(probes=4, bad=1)
    ask = found.probes[0]

    for target in (
        "10.250.0.3:31000",
        "10.96.0.10:80",
        "[fd00::7]:80",
        "ls.ns.svc.cluster.local:80",
        "example.com:443",
    ):
        found.probe(msgspec.structs.replace(ask, ok=True, target=target))
    matrix = make_matrix(samples.make_record(results=[samples.result(DNS, "failed", found=found)]))
    assert matrix.rows == [("windows-1", "windows"), ("windows-2", "windows")]
    assert matrix.groups == [
        ("pods on", ["windows-1", "windows-2"]),
        ("NodePort of", ["windows-1"]),
        ("elsewhere", ["services by address", "cluster names", "outside names"]),
    ]
    cell = matrix.cell("windows-1", "pods on", "windows-1")
    assert cell is not None
    assert (cell.good, [name for name, _ in cell.bad]) == (1, [DNS])
    services = matrix.cell("windows-1", "elsewhere", "services by address")
    assert services is not None
    assert services.good == 2
    assert matrix.cell("windows-2", "NodePort of", "windows-1") is None


def visible(text: str) -> str:
    """The words of a page, in their order."""
    text = re.sub(r"<(style|script)>.*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL)
    return html.unescape(" ".join(text.split()))


def test_one_cause_of_everything_stands_before_the_list_of_what_it_concerns() -> None:
    gone = "the API server cannot be reached"
    results = [samples.result(name, "error", reason=gone, next_step="start it") for name in samples.CORE]
    rules = [
        RuleResult(id="rule.images", outcome="blocked", reason="no pod was started", gates="run"),
        RuleResult(id="rule.linux-conformance", outcome="blocked", reason="absent", gates="certificate"),
    ]
    text = visible(page.render(samples.make_record(results=results, rules=rules)))
    assert f"Not shown to be ready for Windows workloads: {gone} Next step: start it" in text
    problems = text[text.index("What did not pass, and what to do") :]
    assert (
        problems.index(gone) < problems.index("It concerns 24 requirements and 1 rule") < problems.index("rule.images")
    )
    assert problems.index("rule.images") < problems.index("Core.Network")


def test_a_rule_that_decided_is_the_reason() -> None:
    small = samples.make_record(found=samples.inventory(windows=1))
    text = page.render(small)
    assert small.verdict == "Fail"
    words = visible(text)
    assert "Not shown to be ready for Windows workloads: rule.cluster-size failed, not qualified: 2 usable" in words
    assert text.index('href="#rule.cluster-size"') < text.index('id="rule.cluster-size"')
    assert "Every selected requirement passed, but a rule of the run does not hold" in words


def test_the_top_says_what_it_means_and_what_not_by_category() -> None:
    words = visible(page.render(samples.make_record(conformance=False)))
    top = words[: words.index("Requirements Cluster")]
    assert "All 24 core requirements of version 1.0 of the standard were shown on 2 Windows nodes." in top
    assert "Basic networking 13 of 13 passed" in top
    assert "Rules of the run 5 of 5 hold" in top
    assert "It does not show Linux conformance, which only a certificate needs: no result of" in top
    assert "It promises nothing for later: it is what was seen on 2026-11-01." in top


def test_an_interrupted_run_has_no_verdict() -> None:
    run = samples.make_record(outcomes={DNS: "blocked"})
    run.verdict = None
    text = page.render(run)
    assert "<title>Interrupted, no verdict · " in text
    assert "Interrupted, no verdict" in visible(text)
    assert "Fail" not in visible(text)


def test_a_thousand_nodes_are_told_by_what_differs() -> None:
    broken = ("windows-7", "windows-500")
    good, bad = samples.crowd(1000, ids=samples.ALL), samples.crowd(1000, ids=samples.ALL, broken=broken)
    for run in (good, bad):
        text = page.render(run)
        assert len(text.encode()) < 1_000_000
        assert text.count("windows-321") <= 60
    words = visible(page.render(good))
    assert "1000 nodes: windows-1 to windows-1000" in words
    assert "shown on windows-1 to windows-1000" in words
    assert "all 1000 Windows nodes" in words
    matrix = make_matrix(bad)
    assert matrix.condensed
    assert [name for name, _ in matrix.rows] == ["other 998 Windows nodes", "windows-7"]
    assert dict(matrix.groups)["pods on"] == ["other 998 Windows nodes", "windows-500", "windows-7"]
    cell = matrix.cell("other 998 Windows nodes", "pods on", "windows-7")
    assert cell is not None
    assert cell.bad
    assert not cell.good
    rest = matrix.cell("other 998 Windows nodes", "pods on", "other 998 Windows nodes")
    assert rest is not None
    assert not rest.bad
    first, *others = make_nodes(bad)
    assert (first.names, first.one, bool(first.failures)) == ("windows-500", True, True)
    assert others[-1].names == "windows-1 to windows-499, windows-501 to windows-1000"


def test_answers_of_a_kind_are_told_once_and_bad_ones_first() -> None:
    found = samples.evidence(probes=30, bad=2)
    text = page.render(samples.make_record(results=[samples.result(DNS, "failed", found=found)]))
    words = visible(text[text.index('id="requirements"') :])
    assert "Questions and answers (30, 2 not as expected)" in words
    assert words.index(f"not as expected wc-* reaches ws-* {TIMES} 2") < words.index(f"ws-* {TIMES} 28")
    assert "wc-2 reaches ws-29" in words


def test_write_puts_the_page_into_the_run_folder(tmp_path: Path) -> None:
    folder = samples.write_run(tmp_path)
    assert (folder / page.NAME).read_text(encoding="utf-8").startswith("<!doctype html>")
