"""``report.html`` without a browser: it is whole, it is escaped, it allows itself nothing. The rest: tests/browser."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec

from report import samples
from winready.report.html import page
from winready.report.html.matrix import make_matrix
from winready.report.html.timeline import make_timeline
from winready.report.record import Record

DNS = "core.network.dns-internal"


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
    assert "<dd>2 of 24</dd>" in page.render(samples.make_record(ids=samples.CORE[:2]))
    assert "<dd>2 of 2 selected</dd>" in page.render(samples.make_record(ids=samples.CORE[:2], digest="sha256:0"))


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


def test_write_puts_the_page_into_the_run_folder(tmp_path: Path) -> None:
    folder = samples.write_run(tmp_path)
    assert (folder / page.NAME).read_text(encoding="utf-8").startswith("<!doctype html>")
