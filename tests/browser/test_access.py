"""Every page by the rules of axe-core (WCAG 2.2 AA and good practice), light and dark, and by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from report import samples
from winready.engine.outcomes import Outcome
from winready.report import product_forms, record
from winready.report.html import page as report
from winready.report.products import Product, make_products

DNS = "core.network.dns-internal"
OUTCOMES: dict[str, Outcome] = {
    DNS: "failed",
    "core.network.dns-custom": "blocked",
    "core.network.dns-external": "error",
    "core.storage.shared-files": "not-applicable",
}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    """Finished runs of every outcome, one in progress, one that was cut off and one that is damaged."""
    samples.write_run(tmp_path, "261101-100000-aaaa")
    samples.write_run(tmp_path, "261102-100000-bbbb", outcomes=OUTCOMES)
    samples.write_run(tmp_path, "261103-100000-cccc", outcomes=OUTCOMES, ids=samples.ALL)
    for day in (1, 2, 3):
        samples.write_run(tmp_path, f"26100{day}-100000-aaaa", ids=[DNS], outcomes={DNS: "failed"} if day == 2 else {})
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_bytes(b"{")
    for name in ("261104-100000-dddd", "261105-100000-eeee"):
        (tmp_path / name).mkdir()
        with samples.written_journal(tmp_path / name) as journal:
            for event in samples.run_events(name, outcomes=OUTCOMES)[:18]:
                journal.handle(event)
    with samples.written_journal(tmp_path / name):
        yield tmp_path


def problems(page: Page) -> list[str]:
    found = Axe().run(page, options=RULES).response["violations"]
    return [f"{item['id']}: {node['html'][:200]}" for item in found for node in item["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_breaks_no_rule(page: Page, runs: Path, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(f"file://{runs / '261103-100000-cccc' / report.NAME}#{DNS}")
    expect(page.locator(f".req[id='{DNS}']")).to_have_attribute("open", "")
    assert problems(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("path", "ready"),
    [
        ("", ".cell.f"),
        ("fleet", ".fleet .failed"),
        ("fleet?q=nothing", "text=No cluster fits"),
        ("requirements", ".across svg"),
        (f"requirements/{DNS}", ".chart rect"),
        ("flaky", ".fleet .flaky"),
        ("trends", ".chart rect"),
        ("runs/261105-100000-eeee/live", "tr[data-outcome=failed]"),
        ("runs/261104-100000-dddd/live", ".over"),
        ("runs/261104-100000-dddd", ".note"),
        ("compare?a=261101-100000-aaaa&b=261102-100000-bbbb", ".badge.worse"),
    ],
    ids=[
        "grid",
        "fleet",
        "no cluster",
        "requirements",
        "requirement",
        "flaky",
        "trends",
        "live",
        "cut off",
        "unfinished",
        "compare",
    ],
)
def test_the_dashboard_breaks_no_rule(
    page: Page, dashboard: str, runs: Path, path: str, ready: str, scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(dashboard + path)
    expect(page.locator(ready).first).to_be_visible()
    assert problems(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_table_of_products_breaks_no_rule(page: Page, runs: Path, scheme: str) -> None:
    names = ("261101-100000-aaaa", "261103-100000-cccc")
    products = [Product(name, record.read(runs / name)) for name in names]
    (runs / "products.html").write_text(product_forms.as_html(make_products(products)))
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(f"file://{runs / 'products.html'}")
    expect(page.locator(".sign.failed").first).to_be_visible()
    assert problems(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_report_is_read_with_the_keyboard_alone(page: Page, runs: Path) -> None:
    page.goto(f"file://{runs / '261102-100000-bbbb' / report.NAME}")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator(f"#problems a[href='#{DNS}']")).to_be_focused()
    page.keyboard.press("Enter")
    row = page.locator(f".req[id='{DNS}']")
    expect(row.locator("summary").first).to_be_focused()
    page.keyboard.press("Tab")
    expect(row.locator(".probe summary").first).to_be_focused()
