"""The dashboard over HTTP: the grid, runs, live events, and who is let in. In a browser: tests/browser."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from report import samples
from report.dashboard.conftest import Site
from winready.engine.journal import NAME as JOURNAL

DNS = "core.network.dns-internal"


async def test_the_grid_has_a_letter_per_outcome_and_the_reasons(site: Site, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa", ids=[DNS, samples.CORE[0]])
    samples.write_run(tmp_path, "261102-100000-bbbb", ids=[DNS], outcomes={DNS: "failed"})
    samples.write_run(tmp_path, "261103-100000-cccc", ids=[DNS])
    status, text = await site.get("/grid.json")
    data = json.loads(text)
    assert status == 200
    assert [run["id"] for run in data["runs"]][-1] == "261101-100000-aaaa"
    assert {item["id"]: item["cells"] for item in data["requirements"]} == {samples.CORE[0]: "..p", DNS: "pfp"}
    assert data["reasons"][data["why"]["1.1"]] == "N10 went wrong"
    assert data["flaky"] == {"https://cluster.example:6443": [DNS]}


async def test_a_rule_that_decided_is_in_the_grid_and_among_the_reasons(site: Site, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa", ids=[DNS])
    samples.write_run(tmp_path, "261102-100000-bbbb", ids=[DNS], found=samples.inventory(windows=1))
    samples.write_run(tmp_path, "261103-100000-cccc", ids=[DNS], found=samples.inventory(windows=1), waived=True)
    data = json.loads((await site.get("/grid.json"))[1])
    rules = {item["id"]: item["cells"] for item in data["rules"]}
    assert rules["rule.cluster-size"] == "nfp"
    assert "rule.linux-conformance" not in rules
    row = sum(len(data[name]) for name in ("requirements", "features", "workloads")) + list(rules).index(
        "rule.cluster-size"
    )
    assert data["reasons"][data["why"][f"{row}.1"]].startswith("not qualified: 2 usable Linux and 1 usable Windows")
    assert [run["tone"] for run in data["runs"]] == ["passed", "failed", "passed"]
    assert data["runs"][1]["why"].startswith("rule.cluster-size: not qualified")


async def test_the_page_opens_with_the_state_of_each_cluster(site: Site, tmp_path: Path) -> None:
    west = samples.inventory("https://west.example:6443", uid="w")
    for day in (1, 2, 3):
        samples.write_run(tmp_path, f"26110{day}-100000-aaaa")
        samples.write_run(tmp_path, f"26110{day}-110000-bbbb", found=west, outcomes={DNS: "failed"} if day > 1 else {})
    samples.write_run(tmp_path, "261104-100000-aaaa", ids=[DNS])
    data = json.loads((await site.get("/grid.json"))[1])
    bad, good = data["clusters"]
    assert (bad["cluster"], bad["verdict"], bad["tone"]) == ("https://west.example:6443", "Fail", "failed")
    assert bad["why"] == f"{DNS}: N10 went wrong"
    assert bad["since"] == "in the last 2 runs, since 2026-11-02 11:00"
    assert [run["tone"] for run in bad["trend"]] == ["failed", "failed", "passed"]
    assert good["verdict"] == "Pass (partial: 1 of 24 core requirements)"
    assert good["complete"]["run"] == "261103-100000-aaaa"
    _, text = await site.get("/grid")
    assert text.index("Each cluster now") < text.index("https://west.example:6443") < text.index('id="grid"')
    assert "/compare?a=261102-110000-bbbb&amp;b=261103-110000-bbbb" in text


async def test_a_run_without_a_verdict_is_neither_good_nor_bad(site: Site, tmp_path: Path) -> None:
    folder = samples.write_run(tmp_path, ids=[DNS])
    document = json.loads((folder / "run.json").read_bytes()) | {"verdict": None, "exit_code": 130}
    (folder / "run.json").write_text(json.dumps(document))
    data = json.loads((await site.get("/grid.json"))[1])
    assert (data["runs"][0]["tone"], data["runs"][0]["verdict"]) == ("blocked", "Interrupted, no verdict")
    assert data["clusters"][0]["verdict"] == "Interrupted, no verdict"
    _, text = await site.get(f"/runs/{folder.name}")
    assert "<title>Interrupted, no verdict" in text


async def test_comparisons_are_headed_by_dates(site: Site, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa", ids=[DNS])
    samples.write_run(tmp_path, "261102-113000-bbbb", ids=[DNS])
    _, text = await site.get("/compare?a=261101-100000-aaaa&b=261102-113000-bbbb")
    assert "<h1>2026-11-01 10:00 UTC → 2026-11-02 11:30 UTC</h1>" in text
    assert 'href="/runs/261102-113000-bbbb">2026-11-02 11:30 UTC</a>' in text


EVIL = "</script><script>alert(1)</script>"


async def test_features_and_workloads_stand_below_the_requirements(site: Site, tmp_path: Path) -> None:
    samples.write_run(tmp_path, "261101-100000-aaaa", ids=[DNS])
    samples.write_run(
        tmp_path,
        "261102-100000-bbbb",
        ids=[DNS],
        features=[
            samples.feature("probes"),
            samples.feature("hooks", "failed", works=False, reason="no hook ran", contradiction="not shown here"),
            samples.feature("gmsa", "blocked", works=None, reason="no domain", area="Identity"),
            samples.feature("hpa", "not-applicable", works=None, way="data", area="Identity"),
        ],
        workloads=[samples.workload("web"), samples.workload("back", "failed")],
    )
    samples.write_run(tmp_path, "261103-100000-cccc", ids=[DNS], features=[samples.feature("probes")])
    data = json.loads((await site.get("/grid.json"))[1])
    assert [(item["area"], item["id"], item["cells"]) for item in data["features"]] == [
        ("Identity", "gmsa", ".b."), ("Identity", "hpa", ".d."), ("Pods", "hooks", ".c."), ("Pods", "probes", "pp."),
    ]  # fmt: skip
    assert data["areas"] == [{"id": "Identity", "cells": ".b."}, {"id": "Pods", "cells": "pc."}]
    assert [(item["id"], item["cells"]) for item in data["workloads"]] == [
        ("back (Deployment shop/back)", ".f."), ("web (Deployment shop/web)", ".p."),
    ]  # fmt: skip
    rows = [item["id"] for name in ("requirements", "features", "workloads") for item in data[name]]
    told = {rows[int(key.partition(".")[0])]: data["reasons"][number] for key, number in data["why"].items()}
    assert (told["hooks"], told["gmsa"]) == ("no hook ran", "no domain")
    assert told["back (Deployment shop/back)"].startswith("probes failed, needed at a.yaml:7")
    newest, told_of, plain = data["runs"]
    assert newest["features"] == "1 of 1 feature shown as documented"
    assert told_of["features"].endswith("1 blocked, 1 failed, 1 contradiction, 1 more by data only")
    assert told_of["workloads"] == "1 of 2 workloads ready"
    assert "features" not in plain
    _, text = await site.get("/grid")
    assert "Requirements, features and workloads by runs" in text
    _, text = await site.get("/runs/261102-100000-bbbb")
    for place in ('id="features"', 'id="feature-hooks"', 'id="workloads"'):
        assert place in text, place
    _, text = await site.get("/compare?a=261102-100000-bbbb&b=261103-100000-cccc")
    assert "only the first run tells of workloads" in text
    assert 'id="features-title"' in text


async def test_runs_without_features_look_as_before(site: Site, tmp_path: Path) -> None:
    samples.write_run(tmp_path, ids=[DNS])
    data = json.loads((await site.get("/grid.json"))[1])
    assert (data["features"], data["areas"], data["workloads"]) == ([], [], [])
    _, text = await site.get("/grid")
    assert "Requirements by runs" in text
    assert "contradicts the data" not in text


async def test_hostile_features_and_workloads_stay_text(site: Site, tmp_path: Path) -> None:
    evil = samples.feature(EVIL, "failed", works=False, name=EVIL, area=EVIL, reason=EVIL, contradiction=EVIL)
    samples.write_run(tmp_path, ids=[DNS], features=[evil], workloads=[samples.workload(EVIL, "failed", path=EVIL)])
    run = "261101-101500-ab12"
    for path in ("/grid", "/fleet", f"/runs/{run}", f"/compare?a={run}&b={run}"):
        status, text = await site.get(path)
        assert (status, "<script>alert" in text) == (200, False), path
    data = json.loads((await site.get("/grid.json"))[1])
    assert (data["features"][0]["id"], data["areas"][0]["id"]) == (EVIL, EVIL)


async def test_a_run_in_progress_tells_of_features_and_workloads(site: Site, tmp_path: Path) -> None:
    odd = samples.feature("hooks", "failed", works=False, reason="no hook ran", contradiction="not shown here")
    folder = samples.write_run(tmp_path, ids=[DNS], features=[odd], workloads=[samples.workload("web", "failed")])
    _, text = await site.get(f"/runs/{folder.name}/events")
    seen = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    feature = next(event for event in seen if event["event"] == "feature")
    assert (feature["id"], feature["outcome"], feature["odd"]) == ("hooks", "failed", True)
    assert (feature["reason"], "evidence" in feature) == ("no hook ran", False)
    workload = next(event for event in seen if event["event"] == "workload")
    assert (workload["ready"], workload["outcome"]) == (False, "failed")
    assert workload["reason"].startswith("probes failed")


async def test_pages_carry_a_strict_policy_and_escape_what_they_show(site: Site, tmp_path: Path) -> None:
    evil = samples.result(DNS, "failed", reason="</script><script>alert(1)</script>")
    samples.write_run(tmp_path, results=[evil])
    async with site.session.get(site.address + "/grid") as answer:
        text = await answer.text()
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "<script>alert" not in text


@pytest.mark.parametrize(
    "asked", [b"FOO / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n"]
)
async def test_what_is_no_request_is_refused_with_the_same_headers(site: Site, asked: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.runner.addresses[0][1])
    writer.write(asked)
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    writer.close()
    assert " 400 " in head.splitlines()[0]
    for name in ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Cache-Control"):
        assert f"\n{name}: " in head


async def test_a_pipe_in_the_place_of_a_file_is_left_out(site: Site, tmp_path: Path) -> None:
    folder = samples.write_run(tmp_path)
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")
    status, text = await site.get("/")
    assert (status, "it is no plain file" in text) == (200, True)
    status, text = await site.get(f"/runs/{folder.name}")
    assert (status, "it is no plain file" in text) == (200, True)
    (folder / JOURNAL).unlink()
    os.mkfifo(folder / JOURNAL)
    assert (await site.get(f"/runs/{folder.name}"))[0] == 404


async def test_a_run_is_its_report_with_the_way_back(site: Site, tmp_path: Path) -> None:
    samples.write_run(tmp_path)
    status, text = await site.get("/runs/261101-101500-ab12")
    assert status == 200
    assert 'href="/grid">All runs' in text
    assert f'id="{DNS}"' in text
    status, text = await site.get("/compare?a=261101-101500-ab12&b=261101-101500-ab12")
    assert (status, "30 same" in text) == (200, True)


@pytest.mark.parametrize("path", ["/runs/nope", "/runs/..%2f..%2fetc", "/runs/.hidden", "/static/../server.py", "/x"])
async def test_what_is_not_there_is_404(site: Site, path: str) -> None:
    status, text = await site.get(path)
    assert status == 404
    assert "Traceback" not in text


async def test_a_damaged_run_is_left_out_and_said(site: Site, tmp_path: Path) -> None:
    samples.write_run(tmp_path)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "run.json").write_bytes(b"{")
    status, text = await site.get("/grid")
    assert (status, "cannot be read and is left out" in text) == (200, True)
    status, text = await site.get("/runs/broken")
    assert (status, "cannot be read" in text) == (404, True)
    assert 'href="/grid">Runs' in text


async def test_a_run_whose_record_is_damaged_is_told_by_its_journal(site: Site, tmp_path: Path) -> None:
    folder = samples.write_run(tmp_path)
    (folder / "run.json").write_bytes(b"{")
    status, text = await site.get(f"/runs/{folder.name}")
    assert status == 200
    assert "is no record of a run" in text
    assert f'id="{DNS}"' in text


async def test_a_run_that_was_killed_does_not_look_live(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "261105-100000-eeee"
    folder.mkdir()
    happened = samples.run_events(folder.name, ids=[DNS, samples.CORE[0]])
    with samples.written_journal(folder) as journal:
        for event in happened[:5]:
            journal.handle(event)
        assert "is in progress" in (await site.get("/grid"))[1]
        async with site.session.get(f"{site.address}/runs/{folder.name}", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (302, f"/runs/{folder.name}/live")
    text = (await site.get("/grid"))[1]
    assert "is in progress" not in text
    assert "was cut off" in text
    _, text = await site.get(f"/runs/{folder.name}/events")
    assert text.rstrip().endswith('{"event":"cut-off"}')
    _, text = await site.get(f"/runs/{folder.name}")
    assert "This run was cut off" in text
    assert "Fail" in text


async def test_a_run_in_progress_is_followed_event_by_event(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "261105-100000-eeee"
    folder.mkdir()
    happened = samples.run_events(folder.name, ids=[DNS], outcomes={DNS: "failed"})
    with samples.written_journal(folder) as journal:
        journal.handle(happened[0])
        _, text = await site.get("/grid")
        assert f'href="/runs/{folder.name}/live"' in text
        assert (await site.get(f"/runs/{folder.name}"))[1].count("<title>winready") == 1
        async with site.session.get(f"{site.address}/runs/{folder.name}/events") as answer:
            assert answer.headers["Content-Type"] == "text/event-stream"
            seen: list[dict[str, object]] = []
            ids: list[int] = []
            _take(await answer.content.readuntil(b"\n\n"), seen, ids)
            for event in happened[1:]:
                journal.handle(event)
                _take(await answer.content.readuntil(b"\n\n"), seen, ids)
            assert await asyncio.wait_for(answer.content.read(), 60) == b""
    kinds = [event["event"] for event in seen]
    assert kinds[0] == "started"
    assert kinds[-1] == "verdict"
    failed = next(event for event in seen if event["event"] == "finished")
    assert (failed["id"], failed["outcome"], "evidence" in failed) == (DNS, "failed", False)
    assert ids[-1] == (folder / JOURNAL).stat().st_size


async def test_a_viewer_who_comes_back_gets_only_what_is_new(site: Site, tmp_path: Path) -> None:
    folder = samples.write_run(tmp_path, ids=[DNS])
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    known = sum(map(len, lines[:-1]))
    _, text = await site.get(f"/runs/{folder.name}/events", **{"Last-Event-ID": str(known)})
    assert text.count("data:") == 1
    assert '"event":"verdict"' in text


def _take(raw: bytes, seen: list[dict[str, object]], ids: list[int]) -> None:
    number, data = raw.decode().strip().split("\n")
    ids.append(int(number.removeprefix("id: ")))
    seen.append(json.loads(data.removeprefix("data: ")))


async def test_beyond_loopback_only_the_token_opens_it(guarded: Site) -> None:
    for path in ("/", "/grid.json", "/static/base.css", "/?token=wrong"):
        status, text = await guarded.get(path)
        assert status == 401
        assert "s3cret" not in text
    assert (await guarded.get("/grid.json", Authorization="bearer s3cret"))[0] == 200
    async with guarded.session.get(guarded.address + "/?token=s3cret", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        assert "HttpOnly" in answer.headers["Set-Cookie"]
        assert "SameSite=Strict" in answer.headers["Set-Cookie"]
    assert (await guarded.get("/"))[0] == 200


async def test_another_name_for_loopback_is_refused(site: Site) -> None:
    assert (await site.get("/", Host="evil.example"))[0] == 421
    assert (await site.get("/", Host="localhost:1"))[0] == 200
