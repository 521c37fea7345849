"""The dashboard in a browser: the grid by mouse and keyboard, comparing, and a run in progress."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import quote

import msgspec
from playwright.sync_api import Dialog, Page, expect

from report import samples
from winready.engine.journal import NAME as JOURNAL

DNS = "core.network.dns-internal"


def test_the_grid_filters_tells_and_opens(page: Page, dashboard: str, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa")
    samples.write_run(tmp_path, "261102-100000-bbbb", outcomes={DNS: "failed"})
    samples.write_run(tmp_path, "261103-100000-cccc")
    samples.write_run(tmp_path, "261104-100000-dddd", settings={"sandbox": True}, ids=[DNS])
    page.goto(dashboard)
    page.click("nav >> text=Runs")
    expect(page.locator("#shown")).to_have_text("24 of 24 requirements, 4 runs")
    expect(page.locator(".who .flaky")).to_have_count(1)
    page.check("#trouble")
    page.select_option("#cluster", label="https://cluster.example:6443")
    page.click("text=Filter")
    page.wait_for_url("**/grid?cluster=https*&trouble=1")
    expect(page.locator("#shown")).to_have_text("1 of 24 requirements, 3 runs")
    page.hover(".cell.f")
    expect(page.locator("#tip")).to_contain_text("N10 went wrong")
    page.click(".cell.f")
    page.wait_for_url(f"**/runs/261102-100000-bbbb#{DNS}")
    expect(page.locator(f".req[id='{DNS}']")).to_have_attribute("open", "")
    page.click("text=All runs")
    expect(page.locator("#grid")).to_be_visible()


def test_the_keyboard_moves_marks_and_compares(page: Page, dashboard: str, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa")
    samples.write_run(tmp_path, "261102-100000-bbbb", outcomes={DNS: "failed"})
    page.goto(dashboard)
    page.focus(".cell[tabindex='0']")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".cell:focus")).to_have_attribute("data-column", "1")
    page.keyboard.press("Space")
    page.click("#compare")
    page.wait_for_url("**/compare?a=261101-100000-aaaa&b=261102-100000-bbbb")
    expect(page.locator("tbody tr").first).to_contain_text("worse")
    expect(page.locator("tbody tr").first).to_contain_text(DNS)
    spans = (
        page.locator("thead")
        .first.locator("th")
        .evaluate_all("cells => cells.map((cell) => [cell.scrollWidth, cell.clientWidth])")
    )
    assert all(inside <= seen for inside, seen in spans)


def test_a_run_in_progress_moves_by_itself(page: Page, dashboard: str, tmp_path: Path) -> None:
    folder = tmp_path / "261105-100000-eeee"
    folder.mkdir()
    happened = samples.run_events(folder.name, ids=[DNS, samples.CORE[0]], outcomes={DNS: "failed"})
    with samples.written_journal(folder) as journal:
        for event in happened[:3]:
            journal.handle(event)
        page.goto(dashboard)
        page.click(f"text={folder.name}")
        expect(page.locator("tr[data-outcome=waiting]")).to_have_count(2)
        first = samples.judged(happened, 1)
        for event in happened[3:first]:
            journal.handle(event)
        expect(page.locator("tr[data-outcome=failed]")).to_contain_text("N10 went wrong")
        expect(page.locator("#judged")).to_have_text("1 of 2 judged")
        for event in happened[first:]:
            journal.handle(event)
        expect(page.locator("#state")).to_contain_text("Fail")
        expect(page.locator("#done")).to_be_visible()


def test_a_run_over_many_nodes_is_told_by_their_kinds(page: Page, dashboard: str, tmp_path: Path) -> None:
    folder = tmp_path / "261105-100000-eeee"
    folder.mkdir()
    with samples.written_journal(folder) as journal:
        for event in samples.run_events(folder.name, ids=[DNS], found=samples.inventory(windows=1000))[:3]:
            journal.handle(event)
        page.goto(f"{dashboard}runs/{folder.name}/live")
        expect(page.locator("#cluster")).to_have_text(
            "Kubernetes v1.36.0: 2 nodes linux 6.8.0, 1000 nodes windows 10.0.20348"
        )


def test_a_phone_scrolls_the_grid_and_not_the_page(page: Page, dashboard: str, tmp_path: Path) -> None:
    for day in range(1, 29):
        samples.write_run(tmp_path, f"2611{day:02}-100000-aaaa", ids=samples.CORE[:3])
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(dashboard)
    expect(page.locator(".cell").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.evaluate("document.getElementById('grid').scrollLeft = 1e6")
    expect(page.locator(".run", has_text="11-01")).to_be_visible()


def test_few_runs_leave_room_for_what_each_row_says(page: Page, dashboard: str, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa", outcomes={DNS: "failed"})
    page.goto(dashboard)
    expect(page.locator(".row:has-text('dns-internal') .note.bad")).to_have_text("N10 went wrong")
    expect(page.locator(".row:has-text('dns-custom') .note")).to_contain_text("DNS settings")
    inside, seen = page.locator("#grid").evaluate("(grid) => [grid.scrollHeight, grid.clientHeight]")
    assert inside == seen
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".note")).to_have_count(0)


def test_a_rule_that_decided_is_seen_and_leads_to_the_rule(page: Page, dashboard: str, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa", found=samples.inventory(windows=1))
    page.goto(dashboard)
    expect(page.locator(".state-card.failed")).to_contain_text("rule.cluster-size: not qualified")
    expect(page.locator("#list .verdict")).to_contain_text("rule.cluster-size")
    page.hover(".cell.f")
    expect(page.locator("#tip")).to_contain_text("not qualified")
    page.click(".cell.f")
    page.wait_for_url("**/runs/261101-100000-aaaa#rule.cluster-size")
    expect(page.locator("[id='rule.cluster-size']")).to_be_in_viewport()


def test_a_phone_shows_the_whole_list_of_runs(page: Page, dashboard: str, tmp_path: Path) -> None:
    for day in (1, 2, 3):
        samples.write_run(tmp_path, f"26110{day}-100000-aaaa", ids=[DNS], outcomes={DNS: "failed"} if day == 2 else {})
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(dashboard)
    expect(page.locator("#list tr")).to_have_count(3)
    cells = page.locator("#list td, .state-card *")
    edges = cells.evaluate_all("cells => cells.map((cell) => cell.getBoundingClientRect().right)")
    assert max(edges) <= 390
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_killed_run_stops_looking_live(page: Page, dashboard: str, tmp_path: Path) -> None:
    folder = tmp_path / "261105-100000-eeee"
    folder.mkdir()
    happened = samples.run_events(folder.name, ids=[DNS, samples.CORE[0]], outcomes={DNS: "failed"})
    with samples.written_journal(folder) as journal:
        for event in happened[: samples.judged(happened, 1)]:
            journal.handle(event)
        page.goto(f"{dashboard}runs/{folder.name}")
        expect(page.locator("#state")).to_have_text("is in progress")
        expect(page.locator("tr[data-outcome=waiting]")).to_have_count(1)
    expect(page.locator("#state")).to_have_text("was cut off")
    expect(page.locator("#cut")).to_be_visible()
    expect(page.locator("tr[data-outcome=unjudged]")).to_have_count(1)
    expect(page.locator(".dot")).to_be_hidden()
    page.click("text=Open the report")
    expect(page.locator("aside.note")).to_contain_text("cut off")
    expect(page.locator(f".req[id='{DNS}']")).to_be_visible()


def test_fingers_mark_and_compare_in_the_list(page: Page, dashboard: str, tmp_path: Path) -> None:
    for day in range(1, 29):
        samples.write_run(
            tmp_path, f"2611{day:02}-100000-aaaa", ids=[DNS], outcomes={DNS: "failed"} if day == 28 else {}
        )
    page.goto(dashboard)
    expect(page.locator("#list tr")).to_have_count(25)
    expect(page.locator("#list tr").first).to_contain_text("▼ 1 worse")
    page.click("#more")
    expect(page.locator("#list tr")).to_have_count(28)
    expect(page.locator("#list tr").last).to_contain_text("first run")
    page.locator("#list input").nth(0).check()
    page.locator("#list input").nth(27).check()
    page.click("#compare")
    page.wait_for_url("**/compare?a=261101-100000-aaaa&b=261128-100000-aaaa")
    expect(page.locator("tbody tr").first).to_contain_text("worse")


EVIL = "</script></title><img src=x onerror=alert(1)><svg onload=alert(2)>\"'`${alert(3)}"


def test_what_a_cluster_says_is_never_run(page: Page, dashboard: str, tmp_path: Path) -> None:
    asked: list[str] = []

    def refuse(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", refuse)
    found = samples.evidence(probes=3, bad=1, text=EVIL)
    found.fact(EVIL, [EVIL])
    inventory = samples.inventory(EVIL)
    node = msgspec.structs.replace(inventory.nodes[0], name=EVIL, build=EVIL, os_image=EVIL, unusable=EVIL)
    inventory = msgspec.structs.replace(inventory, version=EVIL, nodes=[node, *inventory.nodes[1:]])
    evil = samples.result(DNS, "failed", reason=EVIL, next_step=EVIL, found=found)
    name = "<img src=x onerror=alert(4)>"
    folder = samples.write_run(tmp_path, "261101-100000-aaaa", results=[evil], found=inventory, settings={EVIL: EVIL})
    shutil.copytree(folder, tmp_path / name)
    (tmp_path / f"{name} cut").mkdir()
    shutil.copy(folder / JOURNAL, tmp_path / f"{name} cut" / JOURNAL)
    page.goto(dashboard)
    page.hover(".cell.f")
    expect(page.locator("#tip")).to_contain_text("onerror")
    page.locator(".odd summary").click()
    page.click(".cell.f")
    expect(page.locator(f".req[id='{DNS}'] .why")).to_contain_text("onerror")
    for path in (
        f"compare?a={quote(folder.name)}&b={quote(name)}",
        f"runs/{quote(name)}",
        f"runs/{quote(name + ' cut')}",
    ):
        page.goto(dashboard + path)
        expect(page.locator("main")).to_contain_text("onerror")
    page.goto(f"{dashboard}runs/{quote(name + ' cut')}/live")
    expect(page.locator("#list")).to_contain_text("onerror")
    assert asked == []


def test_features_are_folded_by_area_and_lead_to_the_run(page: Page, dashboard: str, tmp_path: Path) -> None:
    odd = samples.feature("hooks", "failed", works=False, reason="no hook ran", contradiction="not shown here")
    workloads = [samples.workload("web", "failed")]
    samples.write_run(tmp_path, "261101-100000-aaaa", ids=[DNS])
    samples.write_run(
        tmp_path, "261102-100000-bbbb", ids=[DNS], features=[samples.feature("probes"), odd], workloads=workloads
    )
    page.goto(dashboard)
    expect(page.locator("#shown")).to_have_text("1 of 1 requirements, 2 of 2 features, 1 of 1 workloads, 2 runs")
    expect(page.locator(".who.member")).to_have_count(0)
    page.hover(".row:has(.fold) .cell.c")
    expect(page.locator("#tip")).to_contain_text("Pods: 1 contradiction, 1 passed")
    page.click(".fold")
    expect(page.locator(".fold:focus")).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".who.member")).to_have_text(["hooks", "probes"])
    page.hover(".row:has(.member) .cell.c")
    expect(page.locator("#tip")).to_contain_text("no hook ran")
    page.keyboard.press("Enter")
    expect(page.locator(".who.member")).to_have_count(0)
    page.fill("#search", "hooks")
    expect(page.locator(".who.member")).to_have_text(["hooks"])
    page.click(".row:has(.member) .cell.c")
    page.wait_for_url("**/runs/261102-100000-bbbb#feature-hooks")
    expect(page.locator("#feature-hooks")).to_be_in_viewport()
    page.click("text=All runs")
    page.hover(".row:has-text('web (Deployment') .cell.f")
    expect(page.locator("#tip")).to_contain_text("not ready")
    page.click(".row:has-text('web (Deployment') .cell.f")
    page.wait_for_url("**/runs/261102-100000-bbbb#workloads")
    page.goto(f"{dashboard.rstrip('/')}/runs/261102-100000-bbbb/live")
    expect(page.locator("#features tr")).to_contain_text(["passed", "contradiction"])
    expect(page.locator("#workloads tr")).to_contain_text("not ready")


def test_a_run_is_compared_past_one_that_was_interrupted(page: Page, dashboard: str, tmp_path: Path) -> None:
    others = [name for name in samples.CORE if name != DNS]
    samples.write_run(tmp_path, "261101-100000-aaaa", outcomes={DNS: "failed"})
    samples.write_run(tmp_path, "261102-100000-aaaa", outcomes=dict.fromkeys(others, "blocked"), interrupted=True)
    samples.write_run(tmp_path, "261103-100000-aaaa", outcomes={others[0]: "failed"})
    page.goto(dashboard)
    steps = page.locator("#list .step")
    expect(steps.nth(0)).to_have_text("▼ 1 worse")
    expect(steps.nth(1)).to_have_text("▲ 1 better")
    expect(page.locator("#list .tally").nth(1)).to_contain_text(f"◦ {len(others)}")
