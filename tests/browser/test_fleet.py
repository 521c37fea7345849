"""The pages of a fleet in a browser: by mouse, by keyboard, on phones, without a script, and while runs come in."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from report import fleets

PAGES = ("fleet", "grid", "requirements", "requirements/dns-external", "flaky", "trends")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    fleets.write_fleet(tmp_path, clusters=12, runs=180)
    return tmp_path


def test_a_fleet_is_walked_from_state_to_reason(page: Page, fleet: Path, dashboard: str) -> None:
    page.goto(dashboard)
    expect(page.locator("h1")).to_contain_text("12 clusters")
    page.click(".tile.failed a")
    page.wait_for_url("**/fleet?state=fail")
    expect(page.locator(".fleet tbody tr.passed")).to_have_count(0)
    page.click("th >> text=last run")
    page.wait_for_url("**/fleet?state=fail&sort=age")
    expect(page.locator("th[aria-sort]")).to_have_text("last run ▴")
    page.click("nav >> text=Requirements")
    page.check("text=only what does not pass everywhere")
    page.click("button:has-text('Filter')")
    page.wait_for_url("**trouble=1*")
    page.locator(".across .cell.f").first.click()
    expect(page.locator(".tile.failed a")).to_have_attribute("aria-current", "true")
    expect(page.locator(".fleet tbody tr:not(.failed)")).to_have_count(0)
    page.locator(".fleet .how a").first.click()
    page.wait_for_url("**/runs/**")
    expect(page.locator(".req[open]").first).to_be_visible()


def test_the_runs_of_a_fleet_come_a_page_at_a_time(page: Page, fleet: Path, dashboard: str) -> None:
    page.goto(f"{dashboard}grid?limit=100")
    expect(page.locator("#shown")).to_have_text("46 of 46 requirements, 100 runs")
    page.fill("#search", "dns")
    expect(page.locator("#shown")).to_contain_text("100 runs")
    assert "find=dns" in page.url
    page.click("text=Older runs")
    expect(page.locator("#shown")).to_contain_text("80 runs")
    page.click("text=Newest runs")
    expect(page.locator("#shown")).to_contain_text("100 runs")


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_shows_every_page_whole(page: Page, fleet: Path, dashboard: str, path: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(dashboard + path)
    expect(page.locator("h1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_pages_need_no_script(browser: Browser, fleet: Path, dashboard: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(dashboard)
    page.select_option("select[name=kubernetes]", "1.36")
    page.click("button:has-text('Filter')")
    expect(page.locator(".fleet tbody tr")).to_have_count(12)
    for name in ("Requirements", "Flaky", "Trends"):
        page.click(f"nav >> text={name}")
        expect(page.locator("h1")).to_be_visible()
    page.goto(f"{dashboard}grid")
    expect(page.locator("noscript table a, section table a").first).to_be_visible()
    context.close()


def test_many_new_runs_show_as_they_come(page: Page, tmp_path: Path, dashboard: str) -> None:
    fleets.write_fleet(tmp_path, clusters=4, runs=400)
    page.goto(f"{dashboard}fleet")
    # However far it is by now: in the end all are there, by themselves.
    expect(page.locator("h1")).to_contain_text("400 runs")
    expect(page.locator("#taking")).to_have_count(0)
