"""A report folder elsewhere, by the command line: sent, read, pushed and pruned over ``file://`` as over any store."""

from __future__ import annotations

import json
import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from report import samples
from winready.cli.main import cli

FIRST, SECOND, THIRD = "261101-100000-aaaa", "261102-100000-bbbb", "261103-100000-cccc"
DNS = "core.network.dns-internal"
QUICK = ("run", "--sandbox", "--requirement", "core.network.windows-to-linux-pod-ip")


class Ground:
    """A share, a folder with runs, and a user with a home of his own."""

    def __init__(self, folder: Path) -> None:
        self.share, self.local, self.home = folder / "share", folder / "local", folder / "home"
        self.share.mkdir()
        self.address = f"file://{self.share}"

    def do(self, *words: str, place: str | None = None) -> Result:
        return CliRunner().invoke(cli, [*words, "--report-dir", place or self.address])

    def ok(self, *words: str) -> str:
        result = self.do(*words)
        assert result.exit_code == 0, result.output
        return result.output

    def pushed(self, *runs: str) -> str:
        return self.ok("history", "push", *runs, "--from", str(self.local))

    def listed(self) -> Any:
        result = self.do("history", "-o", "json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def names(self) -> list[str]:
        return [run["folder"] for group in self.listed()["clusters"] for run in group["runs"]]

    def spooled(self) -> list[Path]:
        return sorted(path.parent for path in self.home.glob("state/winready/spool/*/*/journal.jsonl"))

    def objects(self) -> dict[str, bytes]:
        found = (path for path in self.share.rglob("*") if path.is_file())
        return {path.relative_to(self.share).as_posix(): path.read_bytes() for path in found}


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    made = Ground(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(made.home / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(made.home / "cache"))
    monkeypatch.delenv("ARTIFACTS", raising=False)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def filled(ground: Ground) -> Ground:
    samples.write_run(ground.local, FIRST)
    samples.write_run(ground.local, SECOND, outcomes={DNS: "failed"})
    ground.pushed()
    return ground


def test_a_run_is_sent_and_everybody_reads_it_there(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    result = ground.do(*QUICK)
    assert result.exit_code == 0, result.output
    (run,) = os.listdir(ground.share)
    assert f"sent: {ground.address}/{run}" in result.stdout
    (spooled,) = ground.spooled()
    journal = b"".join(content for key, content in sorted(ground.objects().items()) if "journal-" in key)
    assert journal == (spooled / "journal.jsonl").read_bytes()
    for name in ("run.json", "junit.xml", "report.html"):
        assert ground.objects()[f"{run}/{name}"] == (spooled / name).read_bytes()
    shutil.rmtree(ground.home)
    assert "Pass (partial" in ground.ok("status")
    assert "Pass (partial" in CliRunner().invoke(cli, ["status", f"{ground.address}/{run}"]).output
    assert json.loads(ground.do("report", run, "-o", "json").stdout)["run_id"] == run
    monkeypatch.setenv("ARTIFACTS", ground.address)
    assert "Pass (partial" in CliRunner().invoke(cli, ["status"]).output
    bundle = ground.share.parent / "bundle.tar.gz"
    product = ("--vendor", "v", "--product-name", "p", "--product-version", "1", "--contact", "c@d")
    ground.ok("certify", run, "--draft", "--to", str(bundle), *product)
    verified = CliRunner().invoke(cli, ["verify", str(bundle)])
    assert (verified.exit_code, "Intact" in verified.output) == (3, True)
    shutil.copy(bundle, ground.share)
    there = CliRunner().invoke(cli, ["verify", f"{ground.address}/bundle.tar.gz"])
    assert (there.exit_code, there.stdout) == (3, verified.stdout)
    itself = CliRunner().invoke(cli, ["verify", f"{ground.address}/{run}"])
    assert (itself.exit_code, "Consistent, but no certificate" in itself.stdout) == (3, True)
    record = ground.share / run / "run.json"
    record.write_text(record.read_text().replace('"verdict": "Pass"', '"verdict": "Fail"'))
    assert CliRunner().invoke(cli, ["verify", f"{ground.address}/{run}"]).exit_code == 1


def test_the_newest_run_is_found_without_fetching_the_others(filled: Ground) -> None:
    assert "Fail" in filled.do("status").output
    assert [path.parent.name for path in filled.home.glob("cache/winready/mirror/*/*/run.json")] == [SECOND]
    shutil.rmtree(filled.share)
    filled.share.mkdir()
    empty = filled.do("status")
    assert (empty.exit_code, f"there is no finished run in {filled.address}" in empty.output) == (2, True)
    watched = filled.do("status", "--watch")
    assert (watched.exit_code, f"no run goes on in {filled.address}" in watched.output) == (2, True)


def test_history_and_compare_read_what_others_sent(filled: Ground) -> None:
    assert filled.names() == [SECOND, FIRST]
    worse = filled.do("compare", FIRST, SECOND)
    assert worse.exit_code == 1
    assert DNS in worse.output
    watched = filled.do("status", SECOND, "--watch")
    assert (watched.exit_code, "1 failed" in watched.output) == (1, True)
    again = filled.do("run", "--sandbox", "--rerun-failed", FIRST)
    assert (again.exit_code, f"everything passed in run {FIRST}" in again.output) == (2, True)
    by_address = [f"{filled.address}/{run}" for run in (FIRST, SECOND)]
    assert CliRunner().invoke(cli, ["compare", *by_address]).output == worse.output
    grid = json.loads(filled.do("compare", "--grid", "-o", "json").stdout)
    assert [column["run_id"] for column in grid["columns"]] == [SECOND]


def test_a_run_that_is_pushed_a_month_late_appears_and_one_that_is_gone_goes(filled: Ground) -> None:
    assert filled.names() == [SECOND, FIRST]
    samples.write_run(filled.local, "261001-100000-0001")
    filled.pushed("261001-100000-0001")
    assert filled.names() == [SECOND, FIRST, "261001-100000-0001"]
    shutil.rmtree(filled.share / FIRST)
    assert filled.names() == [SECOND, "261001-100000-0001"]
    missing = filled.do("status", FIRST)
    assert missing.exit_code == 2
    assert f"there is no run '{FIRST}' in {filled.address}" in missing.output


def test_pushing_again_compares_and_sends_nothing(filled: Ground) -> None:
    before = {path: path.stat().st_mtime_ns for path in filled.share.rglob("*")}
    assert f"{FIRST}: all 4 objects were there already" in filled.pushed()
    assert {path: path.stat().st_mtime_ns for path in filled.share.rglob("*")} == before


def test_pushing_brings_exactly_what_is_missing(filled: Ground) -> None:
    whole = filled.objects()
    for name in ("run.json", "journal-000000000000.jsonl"):
        (filled.share / FIRST / name).unlink()
        assert f"{FIRST}: 1 objects sent, 3 were there already" in filled.pushed(FIRST)
        assert filled.objects() == whole


def test_a_part_that_is_missing_in_the_middle_is_put_back(ground: Ground) -> None:
    story = (samples.write_run(ground.local, FIRST) / "journal.jsonl").read_bytes()
    ends = [index + 1 for index, byte in enumerate(story) if byte == 10]
    (ground.share / FIRST).mkdir()
    for start, end in ((0, ends[2]), (ends[5], ends[7])):
        (ground.share / FIRST / f"journal-{start:012d}.jsonl").write_bytes(story[start:end])
    ground.pushed(FIRST)
    parts = sorted((ground.share / FIRST).glob("journal-*"))
    assert [int(part.name[8:20]) for part in parts] == [0, ends[2], ends[5], ends[7]]
    assert b"".join(part.read_bytes() for part in parts) == story


@pytest.mark.parametrize("name", ["run.json", "journal-000000000000.jsonl", "report.html"])
def test_an_object_with_other_contents_is_named_and_left_as_it_is(filled: Ground, name: str) -> None:
    (filled.share / FIRST / name).write_bytes(b"something else\n")
    result = filled.do("history", "push", "--from", str(filled.local))
    assert result.exit_code == 3
    assert f"{filled.address}/{FIRST}/{name} is there with other contents" in result.output
    assert f"{SECOND}: all 4 objects were there already" in result.output
    assert (filled.share / FIRST / name).read_bytes() == b"something else\n"


@pytest.mark.parametrize("name", ["report.html", "junit.xml"])
def test_a_link_in_a_run_folder_sends_nobody_elses_file(ground: Ground, name: str) -> None:
    secret = ground.local.parent / "secret"
    secret.write_text("hunter2hunter2")
    folder = samples.write_run(ground.local, FIRST)
    samples.write_run(ground.local, SECOND)
    (folder / name).unlink()
    (folder / name).symlink_to(secret)
    result = ground.do("history", "push", "--from", str(ground.local))
    assert result.exit_code == 3
    assert f"{folder / name} is a link" in result.output
    assert ground.names() == [SECOND]
    assert not any(b"hunter2" in content for content in ground.objects().values())


def test_a_killed_run_is_told_by_the_parts_that_it_sent(ground: Ground) -> None:
    folder = samples.write_run(ground.local, FIRST)
    for name in ("run.json", "junit.xml", "report.html"):
        (folder / name).unlink()
    story = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(story[:-3]) + b'{"cut')
    assert "it has no record yet" in ground.pushed()
    assert ground.listed()["unfinished"] == [{"run": FIRST, "in_progress": False}]
    told = ground.do("status", FIRST)
    assert told.exit_code == 3
    assert f"run {FIRST} was cut off; this is what its journal tells" in told.output
    assert "requirements" in ground.do("report", FIRST, "-o", "json").output


@pytest.mark.parametrize("at", ["1e308", "-1e308", "1e12", "0"])
def test_a_killed_run_whose_clock_makes_no_sense_is_not_in_progress_for_ever(ground: Ground, at: str) -> None:
    folder = samples.write_run(ground.local, FIRST)
    (folder / "run.json").unlink()
    first, second, *_ = (folder / "journal.jsonl").read_text().splitlines()
    later = re.sub('"at_s":[^,}]*', f'"at_s":{at}', second)
    (folder / "journal.jsonl").write_text(f"{first}\n{later}\n")
    ground.pushed()
    assert ground.listed()["unfinished"] == [{"run": FIRST, "in_progress": False}]


def test_a_run_that_was_heard_of_a_moment_ago_is_in_progress(ground: Ground) -> None:
    folder = samples.write_run(ground.local, FIRST)
    (folder / "run.json").unlink()
    first, second, *_ = (folder / "journal.jsonl").read_text().splitlines()
    begun = re.sub('"time":"[^"]*"', f'"time":"{datetime.now(UTC).isoformat()}"', first)
    (folder / "journal.jsonl").write_text(f"{begun}\n{second}\n")
    ground.pushed()
    assert ground.listed()["unfinished"] == [{"run": FIRST, "in_progress": True}]
    kept = ground.do("history", "prune", "--keep", "1h", "--yes")
    assert f"kept: {FIRST}: it is in progress" in kept.output
    assert (ground.share / FIRST).is_dir()


def test_a_store_that_is_away_costs_no_verdict_and_pushing_brings_the_run(ground: Ground) -> None:
    ground.share.rmdir()
    result = ground.do(*QUICK)
    assert result.exit_code == 0, result.output
    assert result.output.count("results cannot be sent") == 1
    (spooled,) = ground.spooled()
    assert f"to send the rest: winready history push {spooled.name} --report-dir {ground.address}" in result.output
    again = ground.do("history", "push")
    assert again.exit_code == 2
    assert "there is no folder" in again.output
    ground.share.mkdir()
    assert f"{spooled.name}: 4 objects sent" in ground.ok("history", "push")
    assert "nothing waits" in ground.ok("history", "push")
    assert ground.names() == [spooled.name]


def test_a_share_without_rights_is_said_once_and_the_verdict_stands(ground: Ground) -> None:
    # Root may write anywhere; a file in the place of the folder stops everybody.
    ground.share.rmdir()
    ground.share.write_text("")
    result = ground.do(*QUICK)
    assert result.exit_code == 0, result.output
    assert result.output.count("results cannot be sent") == 1


def test_foreign_and_hostile_objects_are_named_and_not_followed(filled: Ground) -> None:
    outside = filled.share.parent / "outside"
    outside.mkdir()
    (outside / "run.json").write_bytes((filled.share / FIRST / "run.json").read_bytes())
    (filled.share / "261105-100000-dddd").symlink_to(outside)
    (filled.share / "notes.txt").write_text("buy milk")
    (filled.share / "\x1b[31mred").mkdir()
    (filled.share / "\x1b[31mred" / "run.json").write_text("{}")
    (filled.share / THIRD).mkdir()
    (filled.share / THIRD / "run.json").write_text("[" * 100_000)
    with (filled.share / THIRD / "report.html").open("wb") as file:
        file.truncate(1 << 40)
    huge = filled.share / "261104-100000-eeee"
    huge.mkdir()
    with (huge / "run.json").open("wb") as file:
        file.truncate(1 << 40)
    result = filled.do("history")
    assert result.exit_code == 0
    assert "belong to no run" in result.stderr
    assert "notes.txt" in result.stderr
    assert "\x1b" not in result.output
    assert "261104-100000-eeee/run.json in" in result.stderr
    assert f"run {THIRD} cannot be read and is left out" in result.stderr
    assert filled.names() == [SECOND, FIRST]
    mirrored = {path.name for path in filled.home.glob("cache/winready/mirror/*/*") if path.is_dir()}
    assert mirrored == {FIRST, SECOND, THIRD}


def test_a_mirror_that_was_damaged_or_deleted_is_made_again(filled: Ground) -> None:
    before = filled.names()
    for name in (".mirror.json", ".history.sqlite3", f"{FIRST}/run.json"):
        (path,) = filled.home.glob(f"cache/winready/mirror/*/{name}")
        path.write_bytes(b"\0junk") if name.startswith(".") else path.unlink()
        assert filled.names() == before
    shutil.rmtree(filled.home / "cache")
    assert filled.names() == before
    (mirror,) = (filled.home / "cache/winready/mirror").iterdir()
    assert mirror.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("history", "--report-dir", "ftp://x/y"), "write s3://BUCKET/PREFIX"),
        (("run", "--sandbox", "--report-dir", "s3://KEY:hunter2hunter2@runs/x"), "environment"),
        (("status", "s3://UPPER/x"), "names no bucket"),
        (("status", "file:///"), "names no run"),
        (("history", "push"), "say where to"),
        (("history", "push", "--report-dir", "somewhere"), "say where to"),
        (("history", "push", "nothing", "--report-dir", "file:///tmp"), "there is no run 'nothing'"),
        (("history", "push", "--from", "/nowhere", "--report-dir", "file:///tmp"), "there is no folder /nowhere"),
        (("run", "--sandbox", "--prow", "folder"), "--prow is an address"),
        (("history", "prune"), "say what to keep"),
        (("history", "--report-dir", "x", "prune", "--keep", "1d"), "write --report-dir after 'history prune'"),
        (("history", "prune", "--keep", "soon"), "is no age"),
        (("history", "prune", "--keep", "1d", "--report-dir", "/nowhere"), "there is no folder"),
    ],
)
def test_mistakes_are_answered_with_what_to_write(ground: Ground, words: tuple[str, ...], says: str) -> None:
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 2, result.output
    assert says in result.output
    assert "hunter2" not in result.output
    assert "Traceback" not in result.output


def test_a_store_without_its_package_says_how_to_install_it(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    result = ground.do("history", place="s3://shop-runs/fleet")
    assert result.exit_code == 2
    assert "pip install 'winready[store]'" in result.output


def test_prow_builds_are_written_beside_the_runs(filled: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    builds = filled.share.parent / "builds"
    builds.mkdir()
    words = ("history", "push", FIRST, "--from", str(filled.local), "--prow", f"file://{builds}")
    filled.ok(*words)
    filled.ok(*words)
    (build,) = builds.iterdir()
    assert build.name == f"261101100000{0xAAAA:05d}"
    assert json.loads((build / "finished.json").read_text())["result"] == "SUCCESS"
    assert (build / "artifacts" / "junit_winready.xml").is_file()
    monkeypatch.setenv("BUILD_ID", "1234567890123456789")
    filled.ok(*words)
    assert (builds / "1234567890123456789" / "started.json").is_file()


@pytest.mark.parametrize("where", ["store", "folder"])
def test_pruning_shows_first_and_keeps_what_matters(ground: Ground, where: str) -> None:
    samples.write_run(ground.local, "251001-100000-0001")
    samples.write_run(ground.local, "251002-100000-0002", outcomes={DNS: "failed"})
    samples.write_run(ground.local, "251003-100000-0003", settings={"sandbox": True})
    samples.write_run(ground.local, "251004-100000-0004", outcomes={DNS: "failed"})
    cut_off = samples.write_run(ground.local, "251005-100000-0005")
    (cut_off / "run.json").unlink()
    ground.pushed()
    place = ground.address if where == "store" else str(ground.local)
    base = ground.share if where == "store" else ground.local

    def prune(*words: str) -> Any:
        result = ground.do("history", "prune", *words, "-o", "json", place=place)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    assert prune("--keep", "100y")["would_delete"] == []
    planned = prune("--keep", "1d")
    # The samples began a while ago whatever they are called; names tell the age of those that were cut off.
    doomed = ["251002-100000-0002", "251004-100000-0004", "251005-100000-0005"]
    assert (planned["deleted"], sorted(planned["would_delete"])) == ([], doomed)
    assert len([path for path in base.iterdir() if path.is_dir()]) == 5
    wide = ground.do("history", "prune", "--keep", "1d", "-o", "wide", place=place).stdout.splitlines()
    assert [line.split()[0] for line in wide if line.endswith("would be deleted")] == doomed
    assert prune("--keep", "1d", "--keep-last", "1", "--yes")["deleted"] == ["251002-100000-0002"]
    text = ground.do("history", "prune", "--keep", "1d", place=place).output
    assert "kept: 251001-100000-0001: it is the last Pass of its cluster" in text
    assert "2 of 4 runs" in text
    assert "--yes deletes them" in text
    assert len(prune("--keep", "1d", "--drop-last-pass", "--yes")["deleted"]) == 4
    assert [path for path in base.iterdir() if not path.name.startswith(".")] == []
    assert prune("--keep", "1d") == {"deleted": [], "would_delete": [], "kept": []}


def test_pruning_leaves_a_run_in_progress_alone(ground: Ground) -> None:
    folder = samples.write_run(ground.local, "251001-100000-0001")
    (folder / "run.json").unlink()
    with samples.written_journal(folder):
        result = ground.do("history", "prune", "--keep", "1d", "--yes", place=str(ground.local))
    assert "it is in progress" in result.output
    assert folder.is_dir()
