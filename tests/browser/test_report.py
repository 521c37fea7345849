"""``report.html`` in a browser: filters, search, links, keyboard, phones and a thousand nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from report import samples
from winready.report.html import page as report

DNS = "core.network.dns-internal"


@pytest.fixture
def address(tmp_path: Path) -> str:
    folder = samples.write_run(tmp_path, outcomes={DNS: "failed", "core.network.dns-custom": "blocked"})
    return f"file://{folder / report.NAME}"


def test_outcomes_and_words_filter(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("#shown")).to_have_text("24 shown")
    page.click("button[data-outcome=passed]")
    expect(page.locator(".req:visible")).to_have_count(2)
    expect(page.locator("#shown")).to_have_text("2 of 24 shown")
    page.keyboard.press("/")
    page.keyboard.type("n10 went")
    expect(page.locator(".req:visible")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".req:visible")).to_have_count(2)


def test_a_problem_leads_to_its_evidence(page: Page, address: str) -> None:
    page.goto(address)
    page.click(f"#problems a[href='#{DNS}']")
    row = page.locator(f".req[id='{DNS}']")
    expect(row).to_have_attribute("open", "")
    expect(row.locator(".probe.failed")).to_contain_text("Connection timed out")
    expect(row.locator("summary").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(row).not_to_have_attribute("open", "")


def test_a_link_to_a_hidden_requirement_shows_it(page: Page, address: str) -> None:
    page.goto(address)
    page.click("button[data-outcome=failed]")
    page.click(f"#problems a[href='#{DNS}']")
    expect(page.locator(f".req[id='{DNS}']")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_on_a_phone(page: Page, address: str, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_thousand_nodes_are_one_small_page(page: Page, tmp_path: Path) -> None:
    file = tmp_path / report.NAME
    file.write_text(report.render(samples.crowd(1000, broken=("windows-7",))), encoding="utf-8")
    page.goto(f"file://{file}")
    assert page.locator("*").count() < 12_000
    assert page.locator("#matrix td").count() < 500
    page.click("#expand")
    expect(page.locator(".req[open]")).to_have_count(24)
    expect(page.locator("#cluster tbody tr").first).to_contain_text("windows-7")
    page.fill("#search", "1000 more words that nobody said")
    expect(page.locator("#shown")).to_have_text("0 of 24 shown")


def test_a_phone_shows_every_outcome_without_scrolling_sideways(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address)
    for place in ("#rules", "#matrix", "#cluster", ".sums"):
        inside = page.locator(f"{place} td")
        assert inside.count() > 4
        edges = inside.evaluate_all("cells => cells.map((cell) => cell.getBoundingClientRect().right)")
        assert max(edges) <= 390, place


def test_workloads_stay_in_sight_whatever_is_filtered(page: Page, tmp_path: Path) -> None:
    workloads = [samples.workload("web"), samples.workload("back", "failed")]
    folder = samples.write_run(tmp_path, ids=[DNS], workloads=workloads)
    page.goto(f"file://{folder / report.NAME}")
    expect(page.locator("#shown")).to_have_text("1 shown")
    expect(page.locator("#workloads .req:visible")).to_have_count(2)


def test_a_rule_among_the_reasons_leads_to_the_rule(page: Page, tmp_path: Path) -> None:
    folder = samples.write_run(tmp_path, found=samples.inventory(windows=1))
    page.goto(f"file://{folder / report.NAME}")
    page.click("#problems a[href='#rule.cluster-size']")
    expect(page.locator("[id='rule.cluster-size']")).to_be_in_viewport()
