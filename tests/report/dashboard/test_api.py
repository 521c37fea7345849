"""The API and the metrics: every answer follows the published schema, and nothing of strangers breaks out of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from report import fleets, samples
from report.dashboard.conftest import Serve, Site
from winready.report.dashboard import metrics
from winready.report.schemas import SCHEMAS

DNS = "core.network.dns-internal"
SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.]+)')


def follows(document: Any, kind: str) -> None:
    jsonschema.Draft202012Validator(SCHEMAS["api"]()).validate(document)
    assert (document["schema"], document["kind"]) == ("winready-api/1", kind)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    fleets.write_fleet(tmp_path, clusters=6, runs=60)
    return tmp_path


async def test_every_answer_follows_the_schema(site: Site, fleet: Path) -> None:
    run = (await site.json("/api/v1/runs?limit=1"))["runs"][0]["run"]
    for path, kind in {
        "": "fleet",
        "/clusters": "clusters",
        "/clusters?state=fail&sort=-age&limit=2": "clusters",
        "/runs": "runs",
        f"/runs/{run}": "run",
        "/requirements": "requirements",
        "/requirements/dns-external": "requirement",
        "/flaky": "flaky",
        "/trends?kubernetes=1.36": "trends",
    }.items():
        follows(await site.json(f"/api/v1{path}"), kind)
    for path, status in {
        "/runs?since=x": 400,
        "/runs?cursor=!": 400,
        "/runs/none": 404,
        "/requirements/x": 404,
    }.items():
        got, text = await site.get(f"/api/v1{path}")
        assert got == status, path
        follows(json.loads(text), "error")


def test_what_the_api_never_answers_is_refused() -> None:
    good = {"schema": "winready-api/1", "kind": "runs", "runs": [], "next": ""}
    follows(good, "runs")
    changes: list[dict[str, Any]] = [
        {"schema": "winready-api/2"}, {"kind": "other"}, {"runs": [{}]}, {"next": None},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(jsonschema.ValidationError):
            follows(good | change, "runs")


async def test_a_cursor_meets_every_run_once_whatever_comes_meanwhile(site: Site, fleet: Path) -> None:
    found = await site.json("/api/v1/runs?limit=7")
    seen = [run["run"] for run in found["runs"]]
    number = 0
    while found["next"]:
        number += 1
        samples.write_run(fleet, f"2612{number:02}-100000-aaaa", ids=[DNS])
        found = await site.json(f"/api/v1/runs?limit=7&cursor={found['next']}")
        seen += [run["run"] for run in found["runs"]]
    assert number > 5
    assert len(seen) == len(set(seen)) == 60
    assert seen == sorted(seen, key=lambda name: name[:13], reverse=True)


async def test_runs_are_filtered_by_what_became_of_a_requirement(site: Site, fleet: Path) -> None:
    whole = (await site.json("/api/v1/runs?limit=500"))["runs"]
    sums = {}
    for outcome in ("passed", "failed", "blocked", "error", "not-applicable"):
        path = f"/api/v1/runs?limit=500&requirement=core.network.dns-external&outcome={outcome}"
        sums[outcome] = {run["run"] for run in (await site.json(path))["runs"]}
    selected = {
        run["run"] for run in (await site.json("/api/v1/runs?limit=500&requirement=core.network.dns-external"))["runs"]
    }
    assert set.union(*sums.values()) == selected
    assert sum(map(len, sums.values())) == len(selected) <= len(whole)
    for run in sums["failed"]:
        results = {item["requirement"]: item for item in (await site.json(f"/api/v1/runs/{run}"))["results"]}
        assert results["core.network.dns-external"]["outcome"] == "failed"


def samples_of(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """The text format, read strictly."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    helped: set[str] = set()
    for line in text.splitlines():
        if line.startswith("#"):
            helped.add(line.split()[2])
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert match[1] in helped
        found.setdefault(match[1], []).append(
            (dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or "")), float(match[3]))
        )
    return found


async def test_metrics_tell_where_each_cluster_stands(site: Site, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa", found=samples.inventory("https://east:6443", uid="e"))
    west = samples.inventory("https://west:6443", uid="w")
    samples.write_run(tmp_path, "261102-100000-bbbb", found=west, ids=[DNS], outcomes={DNS: "failed"})
    async with site.session.get(f"{site.address}/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        found = samples_of(await answer.text())
    assert found["winready_fleet_runs"] == [({}, 2)]
    assert found["winready_fleet_clusters"] == [({"state": "pass"}, 1), ({"state": "fail"}, 1), ({"state": "none"}, 0)]
    verdicts = {labels["server"]: (labels["scope"], value) for labels, value in found["winready_cluster_verdict"]}
    assert verdicts == {"https://east:6443": ("complete", 1), "https://west:6443": ("partial", 0)}
    failed = [
        value for labels, value in found["winready_fleet_requirement_clusters"]
        if (labels["requirement"], labels["outcome"]) == (DNS, "failed")
    ]  # fmt: skip
    assert failed == [1]
    began = {labels["cluster"]: value for labels, value in found["winready_cluster_last_run_start_time_seconds"]}
    assert began["w"] - began["e"] == 86400


async def test_metrics_stay_few_and_whole_whatever_runs_say(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MOST", 2)
    evil = 'a"} 1\nwinready_fleet_runs 99\\' + "x" * 500
    for number in range(4):
        found = msgspec.structs.replace(samples.inventory(f"{evil}{number}", uid=f"{number}{evil}"), version=evil)
        folder = samples.write_run(tmp_path, f"26110{number + 1}-100000-aaaa", ids=[DNS], found=found)
        document = json.loads((folder / "run.json").read_bytes())
        document["requirements"] += [{**document["requirements"][0], "id": f"made.up.{each}"} for each in range(50)]
        (folder / "run.json").write_text(json.dumps(document))
    site = await serve()
    found_of = samples_of((await site.get("/metrics"))[1])
    assert found_of["winready_fleet_runs"] == [({}, 4)]
    assert len(found_of["winready_cluster_info"]) == 2
    assert found_of["winready_fleet_clusters_left_out"] == [({}, 2)]
    assert {labels["requirement"] for labels, _ in found_of["winready_fleet_requirement_clusters"]} == {DNS}
    assert all(len(value) < 500 for each in found_of.values() for labels, _ in each for value in labels.values())
