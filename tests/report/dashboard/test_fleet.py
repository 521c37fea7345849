"""Pages over a fleet: where clusters stand, who fails what, what wavers, trends, and how many runs are taken in."""

from __future__ import annotations

import asyncio
import html
import json
import re
import sqlite3
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from report import fleets, samples
from report.dashboard.conftest import Site
from winready.cluster.inventory import Inventory
from winready.engine.outcomes import Outcome
from winready.report import folders, history, indexing, record
from winready.report.dashboard import fleet_pages
from winready.report.indexing import NAME

DNS, OUTSIDE = "core.network.dns-internal", "core.network.dns-external"


def cluster(name: str, version: str = "v1.36.0", build: str = "10.0.20348") -> Inventory:
    found = samples.inventory(f"https://{name}.example:6443", uid=name)
    nodes = [msgspec.structs.replace(node, build=build if node.windows else node.build) for node in found.nodes]
    return msgspec.structs.replace(found, version=version, nodes=nodes)


def rows(text: str) -> list[str]:
    """The rows of the first table of a page, as text."""
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    plain = (html.unescape(re.sub(r"<[^>]+>", " ", f"<tr{row}")) for row in body.split("<tr")[1:])
    return [re.sub(r"\s+", " ", row).strip() for row in plain]


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """One that passes, one that fails, one whose last run was interrupted."""
    samples.write_run(tmp_path, "261101-100000-aaaa", found=cluster("east"))
    samples.write_run(tmp_path, "261102-100000-bbbb", found=cluster("west", "v1.35.2"), outcomes={OUTSIDE: "failed"})
    samples.write_run(tmp_path, "261103-100000-cccc", found=cluster("north", build="10.0.17763"))
    samples.write_run(
        tmp_path, "261104-100000-dddd", found=cluster("north", build="10.0.17763"), ids=[DNS], interrupted=True
    )
    return tmp_path


async def test_one_cluster_opens_with_its_runs_and_several_with_the_fleet(site: Site, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa", found=cluster("east"), ids=[DNS])
    async with site.session.get(f"{site.address}/") as answer:
        assert answer.url.path == "/grid"
    samples.write_run(tmp_path, "261101-110000-bbbb", found=cluster("west"), ids=[DNS])
    async with site.session.get(f"{site.address}/") as answer:
        assert answer.url.path == "/fleet"


async def test_the_fleet_is_told_worst_first(site: Site, three: Path) -> None:
    _, text = await site.get("/fleet")
    west, north, east = rows(text)
    assert west.startswith("✗ Fail west.example:6443 core.network.dns-external: ")
    assert "v1.35.2 10.0.20348" in west
    assert north.startswith("■ No verdict north.example:6443")
    assert "last complete run: Pass , 2026-11-03" in north
    assert east.startswith("✓ Pass east.example:6443 v1.36.0")
    assert "/compare?a=261103-100000-cccc&amp;b=261104-100000-dddd" in text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=fail", ["west"]),
        ("state=none", ["north"]),
        ("kubernetes=1.36", ["north", "east"]),
        ("kubernetes=v1.35.2", ["west"]),
        ("windows=10.0.17763", ["north"]),
        ("q=EA", ["east"]),
        ("q=%25", []),
        ("kind=sandbox", []),
        ("cluster=west", ["west"]),
        ("requirement=core.network.dns-external&outcome=failed", ["west"]),
        ("sort=cluster", ["east", "north", "west"]),
        ("sort=-cluster", ["west", "north", "east"]),
        ("sort=age", ["north", "west", "east"]),
        ("sort=kubernetes", ["west", "east", "north"]),
        ("since=2026-11-02&until=2026-11-02", ["west"]),
        ("older=2", ["west", "east"]),
    ],
)
async def test_a_view_is_its_address(site: Site, three: Path, query: str, names: list[str]) -> None:
    status, text = await site.get(f"/fleet?{query}")
    assert status == 200
    assert [re.findall(r"(\w+)\.example", row)[0] for row in rows(text)] == names
    found = await site.json(f"/api/v1/clusters?{query}")
    assert [state["cluster"] for state in found["clusters"]] == names


@pytest.mark.parametrize(
    "query", ["state=x", "kind=x", "since=yesterday", "since=0000-00-00", "sort=x", "page=0", "page=x", "older=-1",
              "outcome=failed", f"q={'x' * 400}", "limit=9999999", "before=%00", "before=!"],
)  # fmt: skip
async def test_an_address_that_makes_no_sense_is_told(site: Site, three: Path, query: str) -> None:
    path = "/grid" if query.startswith(("limit", "before")) else "/fleet"
    status, text = await site.get(f"{path}?{query}")
    assert (status, "Not understood" in text) == (400, True)
    assert "Traceback" not in text


async def test_many_clusters_come_a_page_at_a_time(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_pages, "PER_PAGE", 5)
    fleets.write_fleet(tmp_path, clusters=12, runs=12)
    seen = []
    for page in (1, 2, 3):
        _, text = await site.get(f"/fleet?sort=cluster&page={page}")
        assert f"Page {page} of 3" in text
        seen += [re.findall(r"(\S+)\.example", row)[0] for row in rows(text)]
    assert len(seen) == len(set(seen)) == 12
    assert seen == sorted(seen)
    assert "sort=cluster&amp;page=2" in text


async def test_who_fails_it_is_told_by_the_newest_run_that_judged_it(site: Site, three: Path) -> None:
    # A later run that does not look at it, and one that was ended before, do not hide the failure.
    samples.write_run(three, "261105-100000-eeee", found=cluster("west"), ids=[DNS])
    samples.write_run(
        three, "261106-100000-ffff", found=cluster("west"), outcomes={OUTSIDE: "blocked"}, interrupted=True
    )
    for name in ("dns-external", OUTSIDE, "N11"):
        status, text = await site.get(f"/requirements/{name}")
        assert status == 200, name
    west, *others = rows(text)
    assert west.startswith("✗ failed west.example:6443")
    assert "2026-11-02" in west
    assert [row.split()[1] for row in others] == ["passed", "passed"]
    assert 'href="/runs/261102-100000-bbbb#core.network.dns-external"' in text
    _, text = await site.get(f"/requirements/{OUTSIDE}?now=failed")
    assert len(rows(text)) == 1
    _, text = await site.get("/requirements?trouble=1")
    assert "1 of 24 requirements do not pass everywhere" in text
    assert (await site.get("/requirements/nothing-like-it"))[0] == 404


async def test_flaky_is_what_turns_on_one_cluster_and_version(site: Site, tmp_path: Path) -> None:
    for day, outcome in enumerate(("passed", "failed", "passed", "failed"), 1):
        samples.write_run(
            tmp_path, f"26110{day}-100000-aaaa", ids=[DNS], found=cluster("east"), outcomes={DNS: outcome}
        )
        # The same turns, each on a version of its own: that is what upgrades do.
        found = cluster("west", f"v1.3{day}.0")
        samples.write_run(tmp_path, f"26110{day}-110000-bbbb", ids=[DNS], found=found, outcomes={DNS: outcome})
    samples.write_run(tmp_path, "261105-100000-cccc", ids=[DNS], found=cluster("north"))
    _, text = await site.get("/flaky")
    (east,) = rows(text)
    assert east.startswith(f"≈ 3 turns {DNS}")
    assert east.endswith("2 passed, 2 failed")
    (found,) = (await site.json("/api/v1/flaky"))["flaky"]
    assert (found["cluster"], found["turns"], [sign["tone"] for sign in found["recent"]]) == (
        "east", 3, ["failed", "passed", "failed", "passed"],
    )  # fmt: skip
    assert "Nothing here wavers" in (await site.get("/flaky?q=north"))[1]


async def test_trends_have_every_month_and_no_more(site: Site, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "260801-100000-aaaa", found=cluster("east"), outcomes={DNS: "failed"})
    samples.write_run(tmp_path, "261101-100000-bbbb", found=cluster("east"), outcomes={DNS: "failed"})
    samples.write_run(tmp_path, "261102-100000-cccc", found=cluster("east"))
    samples.write_run(tmp_path, "990101-100000-dddd", found=cluster("tomorrow"))
    found = await site.json("/api/v1/trends")
    months = {item["month"]: (item["runs"], item["passed"], item["clusters_passing"]) for item in found["months"]}
    assert months == {
        "2026-08": (1, 0, 0), "2026-09": (0, 0, 0), "2026-10": (0, 0, 0), "2026-11": (2, 1, 1), "2099-01": (1, 1, 1),
    }  # fmt: skip
    assert found["requirements"] == [{"requirement": DNS, "failed": [1, 0, 0, 1, 0], "total": 2}]
    _, text = await site.get("/trends?until=2026-12-31")
    assert [row.split()[0] for row in rows(text)] == ["2026-11", "2026-10", "2026-09", "2026-08"]
    assert 'href="/grid?since=2026-11-01&amp;until=2026-11-30"' in text
    assert "2026-08: 1 runs failed" in text
    assert "<script" not in text


async def test_runs_come_a_page_at_a_time(site: Site, tmp_path: Path) -> None:
    for day in range(1, 8):
        samples.write_run(tmp_path, f"26110{day}-100000-aaaa", ids=[DNS])
    _, text = await site.get("/grid?limit=3")
    seen = []
    while True:
        seen += re.findall(r'<th scope="row"><a href="/runs/([^"]+)"', text)
        more = re.findall(r'rel="next" href="([^"]+)"', text)
        if not more:
            break
        _, text = await site.get(f"/grid{html.unescape(more[0])}&limit=3")
        assert "Newest runs" in text
    assert seen == [f"26110{day}-100000-aaaa" for day in range(7, 0, -1)]


async def test_many_new_runs_do_not_keep_the_first_page_waiting(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("winready.report.dashboard.looking.AT_ONCE", 3)
    monkeypatch.setattr(history, "BATCH", 1)
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()
    take = indexing.read

    def slowly(base: Path, folder: str, stamp: str) -> indexing.Taken:
        # The newest is taken in; then somebody looks before it goes on.
        if folder != max(names):
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
        return take(base, folder, stamp)

    monkeypatch.setattr(indexing, "read", slowly)
    fleets.write_fleet(tmp_path, clusters=3, runs=9)
    names = [each.name for each in folders.scan(tmp_path)]
    await site.until(lambda told: told["runs"] > 0)
    status, text = await site.get("/grid")
    assert (status, "1 of 9 new runs are taken in, the newest first" in text) == (200, True)
    assert max(names) in text
    assert (await site.json("/api/v1"))["pending"] == 8
    gate.set()
    await site.until(lambda told: told["pending"] == 0)
    assert (await site.json("/api/v1"))["runs"] == 9
    assert "are taken in" not in (await site.get("/fleet"))[1]


async def test_the_folder_may_come_to_be_later_and_the_index_may_go(site: Site, tmp_path: Path) -> None:
    assert "no finished run yet" in (await site.get("/fleet"))[1]
    samples.write_run(tmp_path, "261101-100000-aaaa", found=cluster("east"), ids=[DNS])
    assert (await site.json("/api/v1"))["runs"] == 1
    (tmp_path / NAME).unlink()
    samples.write_run(tmp_path, "261102-100000-bbbb", found=cluster("west"), ids=[DNS])
    assert (await site.json("/api/v1"))["runs"] == 2


async def test_an_index_that_breaks_while_it_is_used_is_made_anew(site: Site, three: Path) -> None:
    assert (await site.json("/api/v1"))["runs"] == 4
    other = sqlite3.connect(three / NAME)
    other.executescript("drop table results")
    other.close()
    samples.write_run(three, "261107-100000-aaaa", found=cluster("south"), outcomes={OUTSIDE: "failed"})
    assert (await site.json("/api/v1"))["runs"] == 5
    assert len(rows((await site.get(f"/requirements/{OUTSIDE}?now=failed"))[1])) == 2


EVIL = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


async def test_hostile_names_stay_text_on_every_page(site: Site, tmp_path: Path) -> None:
    turns: tuple[Outcome, ...] = ("failed", "passed", "failed")
    for day, outcome in enumerate(turns, 1):
        item = msgspec.structs.replace(samples.result(DNS, outcome, reason=EVIL), id=EVIL, category=EVIL)
        found = msgspec.structs.replace(samples.inventory(EVIL, uid=EVIL), version=EVIL)
        nodes = [msgspec.structs.replace(node, build=EVIL) for node in found.nodes]
        found = msgspec.structs.replace(found, nodes=nodes)
        events = samples.run_events(f"26110{day}-100000-aaaa", results=[samples.result(DNS)], found=found)
        made = record.from_events(events)
        made.requirements = [item]
        folder = tmp_path / f"26110{day}-100000-aaaa"
        folder.mkdir()
        record.write(made, folder)
    samples.write_run(tmp_path, "261109-100000-aaaa", found=cluster("east"))
    known = {"fleet": EVIL, "grid": "alert", "flaky": EVIL, "trends": EVIL, "requirements": EVIL}
    for path, text_of_it in known.items():
        status, text = await site.get(f"/{path}")
        assert (status, "<script>alert" in text, "<img" in text) == (200, False, False), path
        assert text_of_it in html.unescape(text) or path == "grid", path
    status, text = await site.get(f"/fleet?q={EVIL.replace('&', '%26').replace('#', '%23')}")
    assert (status, "<img" in text) == (200, False)


@pytest.mark.parametrize("started", ["9999-12-31T23:59:59-23:59", "2000-01-01T00:00:00+23:59", "2026-11-01", ""])
async def test_runs_of_odd_times_break_no_page(site: Site, three: Path, started: str) -> None:
    folder = samples.write_run(three, "261109-100000-aaaa", found=cluster("odd"), outcomes={DNS: "failed"})
    found = json.loads((folder / "run.json").read_bytes()) | {"started": started}
    found["requirements"] += [{**found["requirements"][0], "id": f"made.up.{each}"} for each in range(500)]
    (folder / "run.json").write_text(json.dumps(found))
    for path in ("fleet", "grid", "requirements", f"requirements/{DNS}", "flaky", "trends", "metrics", "api/v1/runs"):
        status, text = await site.get(f"/{path}")
        assert status == 200, path
        assert path != "requirements" or 100 < text.count("made.up.") < 1000


async def test_a_fleet_is_never_changed(site: Site, three: Path) -> None:
    for method in ("post", "put", "delete", "patch"):
        async with getattr(site.session, method)(f"{site.address}/api/v1/runs/261101-100000-aaaa") as answer:
            assert answer.status == 405


def test_a_made_up_fleet_is_the_same_each_time(tmp_path: Path) -> None:
    until = datetime(2026, 11, 17)
    one, other = ([(name, run.verdict) for name, run in fleets.fleet(4, 20, until)] for _ in range(2))
    assert one == other
    assert {verdict for _, verdict in one} >= {"Pass", "Fail"}
