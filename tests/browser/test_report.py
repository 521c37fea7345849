"""``report.html`` in a browser: filters, search, links, keyboard, phones and thousands of lines of evidence."""

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


def test_thousands_of_lines_stay_fluid(page: Page, tmp_path: Path) -> None:
    results = [
        samples.result(name, found=samples.evidence(n, probes=390), number=n) for n, name in enumerate(samples.CORE)
    ]
    folder = samples.write_run(tmp_path, results=results)
    page.goto(f"file://{folder / report.NAME}")
    assert page.locator(".probe").count() == 390 * 24
    page.click("#expand")
    expect(page.locator(".req[open]")).to_have_count(24)
    page.fill("#search", "ws-389")
    expect(page.locator("#shown")).to_have_text("24 shown")
