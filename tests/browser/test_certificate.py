"""``certificate.html`` in a browser: one sheet of paper whatever was handed in, stamped when it is a draft."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from browser.test_access import RULES
from report import samples
from winready.report.bundle.product import Product
from winready.report.html import certificate
from winready.report.record import Record

SHOP = Product(vendor="Shop", product_name="Shop K8s", product_version="1.4", contact="k8s@shop.example")
LONG = Product(**{name: f"<b>{name}</b> " * 300 for name in Product.__struct_fields__})
REASONS = [f"reason {number} " * 100 for number in range(30)]


def sheet(folder: Path, run: Record, product: Product, not_shown: Sequence[str]) -> str:
    file = folder / certificate.NAME
    text = certificate.render(run, product, not_shown, evidence="0" * 64, signer=f"sha256:{'1' * 64}")
    file.write_text(text, encoding="utf-8")
    return f"file://{file}"


def whole() -> Record:
    return samples.make_record(ids=samples.ALL)


def crowded() -> Record:
    """As much as a sheet can be asked to hold."""
    run = samples.make_record(
        ids=samples.ALL,
        outcomes=samples.many_outcomes(3),
        settings={"sandbox": True, "time_scale": 25.0},
        found=samples.inventory(f"https://{'long.' * 60}example:6443", windows=30),
        left_out={f"windows-{number}": "not chosen" for number in range(3, 31)},
        conformance=False,
    )
    run.spec = {"version": "1.0" * 50, "digest": "sha256:" + "2" * 64}
    return run


@pytest.mark.parametrize("paper", ["A4", "Letter"])
@pytest.mark.parametrize(
    ("run", "product", "not_shown"),
    [(whole(), SHOP, []), (crowded(), LONG, REASONS), (Record(), SHOP, ["the run did not finish"])],
    ids=["certificate", "crowded draft", "empty"],
)
def test_it_is_one_page_of_paper_with_everything_on_it(
    page: Page, tmp_path: Path, run: Record, product: Product, not_shown: list[str], paper: str
) -> None:
    page.goto(sheet(tmp_path, run, product, not_shown))
    printed = page.pdf(format=paper)
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) == 1
    # As wide as the narrower of both papers, less its margins: nothing may be cut off below.
    page.set_viewport_size({"width": round(184 / 25.4 * 96), "height": 900})
    page.emulate_media(media="print")
    inside, seen = page.evaluate(
        "(({scrollHeight, clientHeight}) => [scrollHeight, clientHeight])(document.querySelector('.sheet'))"
    )
    assert inside <= seen


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("not_shown", [[], ["it ran on the sandbox"]], ids=["certificate", "draft"])
def test_it_breaks_no_rule_and_is_stamped_only_as_a_draft(
    page: Page, tmp_path: Path, not_shown: list[str], scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(sheet(tmp_path, whole(), SHOP, not_shown))
    stamp = page.evaluate("getComputedStyle(document.querySelector('.sheet'), '::after').content")
    assert ("DRAFT" in stamp) == bool(not_shown)
    expect(page.locator("h1")).to_have_text("Draft, not a certificate" if not_shown else "Certificate")
    found = Axe().run(page, options=RULES).response["violations"]
    assert [item["id"] for item in found] == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
