"""``winready history`` and its index: rebuildable, and never in the way."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from report import samples
from winready.cli.main import cli
from winready.report.changes import flaky
from winready.report.history import History, Outcome
from winready.report.indexing import NAME

DNS, CUSTOM = "core.network.dns-internal", "core.network.dns-custom"


def history(base: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["history", "--report-dir", str(base), *arguments])


def listed(base: Path, *arguments: str) -> Any:
    result = history(base, "-o", "json", *arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    samples.write_run(tmp_path, "261101-100000-aaaa")
    samples.write_run(tmp_path, "261102-100000-bbbb", outcomes={DNS: "failed"})
    samples.write_run(tmp_path, "261103-100000-cccc", outcomes={CUSTOM: "blocked"})
    samples.write_run(tmp_path, "261104-100000-dddd", settings={"sandbox": True})
    return tmp_path


def test_a_simulated_cluster_is_known_as_one_whoever_started_it(tmp_path: Path) -> None:
    simulated = msgspec.structs.replace(samples.inventory("https://127.0.0.1:6443", uid="u"), simulated=True)
    samples.write_run(tmp_path, "261101-100000-aaaa", found=simulated)
    samples.write_run(tmp_path, "261102-100000-bbbb")
    groups = {group["label"]: group for group in listed(tmp_path)["clusters"]}
    assert groups["https://127.0.0.1:6443 (sandbox)"]["simulated"] is True
    assert groups["https://cluster.example:6443"]["simulated"] is False


def test_runs_are_grouped_by_cluster_with_what_changed(runs: Path) -> None:
    clusters = listed(runs)["clusters"]
    assert [group["label"] for group in clusters] == ["sandbox", "https://cluster.example:6443"]
    newest, middle, oldest = clusters[1]["runs"]
    assert (newest["better"], newest["worse"]) == ([DNS], [CUSTOM])
    assert (middle["better"], middle["worse"]) == ([], [DNS])
    assert (oldest["verdict_text"], oldest["better"], oldest["worse"]) == ("Pass", [], [])
    text = history(runs).stdout
    assert f"▼ worse: {CUSTOM}" in text
    assert "23 passed, 1 failed" in text


def test_one_cluster_under_two_addresses_is_one_cluster(tmp_path: Path) -> None:
    for number, server in enumerate(("https://old:6443", "https://new:6443"), 1):
        samples.write_run(tmp_path, f"26110{number}-100000-aaaa", found=samples.inventory(server, uid="u-1"))
    (group,) = listed(tmp_path)["clusters"]
    assert (group["label"], len(group["runs"])) == ("https://new:6443", 2)


def test_a_cluster_can_be_chosen_and_an_unknown_one_is_said(runs: Path) -> None:
    assert [group["cluster"] for group in listed(runs, "--cluster", "SANDBOX")["clusters"]] == ["sandbox"]
    assert len(listed(runs, "--cluster", "example", "--limit", "1")["clusters"][0]["runs"]) == 1
    result = history(runs, "--cluster", "moon")
    assert (result.exit_code, "moon" in result.stderr) == (2, True)


@pytest.mark.parametrize("damage", [b"", b"this is no database", b"SQLite format 3\x00" + b"\xff" * 8000])
def test_a_damaged_index_is_made_anew(runs: Path, damage: bytes) -> None:
    before = listed(runs)
    assert (runs / NAME).is_file()
    (runs / NAME).write_bytes(damage)
    assert listed(runs) == before


def test_a_page_of_the_index_that_rots_does_not_show(runs: Path) -> None:
    before = listed(runs)
    with History(runs) as index:
        index._database.execute("pragma wal_checkpoint(truncate)")
    data = bytearray((runs / NAME).read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 64] = b"\xee" * 64
    (runs / NAME).write_bytes(bytes(data))
    assert listed(runs) == before


def test_an_index_that_cannot_be_written_lives_in_memory(runs: Path) -> None:
    (runs / NAME).mkdir()
    (runs / NAME / "in the way").touch()
    assert len(listed(runs)["clusters"]) == 2


def test_an_index_that_somebody_holds_is_left_alone(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listed(runs)
    monkeypatch.setattr("winready.report.indexing.PATIENCE", 0.1)
    holder = sqlite3.connect(runs / NAME, isolation_level=None)
    holder.execute("pragma locking_mode = exclusive")
    holder.execute("begin exclusive")
    inode = (runs / NAME).stat().st_ino
    assert listed(runs) == before
    assert (runs / NAME).stat().st_ino == inode
    holder.close()


ENDLESS = "with recursive c(x) as (select 1 union all select x + 1 from c) select 'a' as folder, x as outcome from c"


@pytest.mark.parametrize(
    "change",
    [
        ["alter table results rename to hidden", f"create view results as {ENDLESS}"],
        ["update runs set exit_code = 'many'"],
        ["update runs set duration_s = x'ff'"],
        ["update runs set verdict_text = x'ff'"],
        ["update results set duration_s = 'long'"],
        ["create trigger later after delete on runs begin delete from results; end"],
    ],
)
def test_an_index_that_somebody_else_made_is_made_anew(runs: Path, change: list[str]) -> None:
    before = listed(runs)
    database = sqlite3.connect(runs / NAME)
    for statement in change:
        database.execute(statement)
    database.commit()
    database.close()
    assert listed(runs) == before


def test_what_is_indexed_is_not_read_again(runs: Path) -> None:
    listed(runs)
    with History(runs) as index:
        assert not index.pending()
        assert len(index.runs()) == len(list(runs.glob("*/run.json")))


def test_a_link_in_the_place_of_the_index_is_not_followed(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file"
    (runs / NAME).unlink(missing_ok=True)
    (runs / NAME).symlink_to(elsewhere)
    assert len(listed(runs)["clusters"]) == 2
    assert not elsewhere.exists()


def test_pipes_and_what_is_too_large_are_named_and_stop_nothing(runs: Path) -> None:
    (runs / "261102-100000-bbbb" / "run.json").unlink()
    os.mkfifo(runs / "261102-100000-bbbb" / "run.json")
    os.truncate(runs / "261103-100000-cccc" / "run.json", 1 << 40)
    result = history(runs)
    assert result.exit_code == 0
    assert "261102-100000-bbbb cannot be read and is left out: [Errno 22] it is no plain file" in result.stderr
    assert "261103-100000-cccc cannot be read and is left out: [Errno 27] File too large" in result.stderr
    for name in ("261102-100000-bbbb", "261103-100000-cccc"):
        told = CliRunner().invoke(cli, ["report", str(runs / name), "-o", "json"])
        assert told.exit_code == 0
        assert json.loads(told.stdout)["run_id"] == name
        assert "this is what the run's journal tells" in told.stderr
    os.truncate(runs / "261103-100000-cccc" / "journal.jsonl", 1 << 40)
    refused = CliRunner().invoke(cli, ["report", str(runs / "261103-100000-cccc")])
    assert (refused.exit_code, "File too large" in refused.stderr) == (2, True)


def test_a_copy_of_a_run_is_another_run(runs: Path) -> None:
    shutil.copytree(runs / "261101-100000-aaaa", runs / "copy")
    newest = CliRunner().invoke(cli, ["status", "--report-dir", str(runs), "-o", "json"])
    assert json.loads(newest.stdout)["run_id"] == "261104-100000-dddd"
    assert "  copy " in history(runs).stdout
    for _ in range(2):
        assert [len(group["runs"]) for group in listed(runs)["clusters"]] == [1, 4]


def test_a_damaged_run_is_named_and_stops_nothing(runs: Path) -> None:
    listed(runs)
    (runs / "261102-100000-bbbb" / "run.json").write_bytes(b'{"run_id": "x", "requirements": 7')
    (runs / "stray").mkdir()
    (runs / "stray" / "run.json").write_bytes(b"\xff\xfe")
    whole = (runs / "261101-100000-aaaa" / "run.json").read_bytes()
    for name, old, new in (("odd", b'"outcome": "passed"', b'"outcome": "great"'), ("newer", b"run/1", b"run/2")):
        (runs / name).mkdir()
        (runs / name / "run.json").write_bytes(whole.replace(old, new))
    result = history(runs)
    assert result.exit_code == 0
    assert "261102-100000-bbbb cannot be read" in result.stderr
    for name in ("stray", "odd", "newer"):
        assert f"{name} cannot be read" in result.stderr
    assert "261103-100000-cccc" in result.stdout
    assert "261102-100000-bbbb" not in result.stdout


def test_runs_that_were_deleted_or_changed_are_noticed(runs: Path) -> None:
    listed(runs)
    for file in (runs / "261104-100000-dddd").iterdir():
        file.unlink()
    samples.write_run(runs, "261105-100000-eeee", outcomes={DNS: "error"})
    (group,) = listed(runs)["clusters"]
    assert group["runs"][0]["run_id"] == "261105-100000-eeee"


def test_runs_without_a_verdict_are_told_apart(tmp_path: Path) -> None:
    for name in ("261105-100000-eeee", "261106-100000-ffff"):
        folder = samples.write_run(tmp_path, name)
        (folder / "run.json").unlink()
    with samples.written_journal(folder):
        text = history(tmp_path).stdout
        assert "run 261106-100000-ffff is in progress" in text
        assert "run 261105-100000-eeee was cut off; 'winready run --resume 261105-100000-eeee' does the rest" in text
    assert [item["in_progress"] for item in listed(tmp_path)["unfinished"]] == [False, False]


def test_a_rule_that_decided_is_named(tmp_path: Path) -> None:
    samples.write_run(tmp_path, found=samples.inventory(windows=1))
    said = history(tmp_path).stdout
    assert "      ✗ rule.cluster-size failed\n" in said
    assert "RULES FAILED" in history(tmp_path, "-o", "wide").stdout
    ((run,),) = (group["runs"] for group in json.loads(history(tmp_path, "-o", "json").stdout)["clusters"])
    assert run["rules"] == ["rule.cluster-size"]


def test_no_run_at_all_is_no_error(tmp_path: Path) -> None:
    result = history(tmp_path / "none")
    assert result.exit_code == 0
    assert "no finished run" in result.stdout


def test_flaky_is_what_turns_twice() -> None:
    def story(*outcomes: str) -> list[dict[str, Outcome]]:
        return [{"x": Outcome(name, "", 1.0)} for name in outcomes]

    assert flaky(story("passed", "failed", "passed")) == ["x"]
    assert flaky(story("passed", "failed", "failed")) == []
    assert flaky(story("passed", "blocked", "passed", "failed")) == []


def test_features_and_workloads_are_told_with_what_changed(tmp_path: Path) -> None:
    never = samples.feature("privileged", works=False, support="never")
    yet = samples.feature("privileged", "failed", support="never", contradiction="yet it works here")
    samples.write_run(tmp_path, "261101-100000-aaaa", ids=[DNS], features=[samples.feature("probes"), never])
    samples.write_run(tmp_path, "261102-100000-bbbb", ids=[DNS], workloads=[samples.workload("web")])
    failed = samples.feature("probes", "failed", works=False)
    web = samples.workload("web", "blocked")
    samples.write_run(tmp_path, "261103-100000-cccc", ids=[DNS], features=[failed, yet], workloads=[web])
    newest, middle, _ = listed(tmp_path)["clusters"][0]["runs"]
    assert (newest["features"]["better"], newest["features"]["worse"]) == (["privileged"], ["probes"])
    assert newest["workloads"] == {
        "counts": "0 of 1 workload ready", "better": [], "worse": ["web (Deployment shop/web)"],
    }  # fmt: skip
    assert (middle["features"], newest["worse"], newest["better"]) == (None, [], [])
    text = history(tmp_path).stdout
    assert "features: 0 of 2 features shown as documented, 2 failed, 1 contradiction" in text
    assert "▼ features worse: probes" in text
    assert "▲ features better: privileged" in text
    assert "▼ workloads worse: web (Deployment shop/web)" in text


def test_an_index_of_an_earlier_version_is_made_anew(runs: Path) -> None:
    before = listed(runs)
    database = sqlite3.connect(runs / NAME)
    database.executescript("drop table features; drop table workloads; pragma user_version = 3")
    database.close()
    assert listed(runs) == before


def test_many_new_runs_are_told_as_they_are_taken_in(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("winready.report.history.AT_ONCE", 3)
    monkeypatch.setattr("winready.report.history.BATCH", 2)
    result = history(runs, "-o", "json")
    assert result.stderr.splitlines() == ["note: 2 of 4 new runs taken in", "note: 4 of 4 new runs taken in"]
    assert len(json.loads(result.stdout)["clusters"]) == 2
    assert history(runs).stderr == ""


def test_folders_that_are_links_lead_nowhere_else(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    samples.write_run(elsewhere, "261109-100000-aaaa")
    (runs / "out").symlink_to(elsewhere / "261109-100000-aaaa")
    (runs / "half").mkdir()
    (runs / "half" / "run.json").symlink_to(elsewhere / "261109-100000-aaaa" / "run.json")
    (runs / "within").symlink_to(runs / "261101-100000-aaaa")
    names = {run["folder"] for group in listed(runs)["clusters"] for run in group["runs"]}
    assert "within" in names
    assert not {"out", "half"} & names
