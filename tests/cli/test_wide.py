"""``-o wide`` wherever a command lists things for people: a line for each, with columns that text leaves out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.hostile_cluster import STEERING, hostile_cluster
from report import samples
from winready.cli.main import cli
from winready.lint import catalog, matrix
from winready.report import record
from winready_sandbox.faults.table import FAULTS

OLD, NEW = "261101-101500-ab12", "261102-101500-ab12"
BROKEN = samples.CORE[0]
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
WITHOUT = {
    "node addons apply", "node addons delete", "node addons diff", "node bundle", "node drain",
    "node join-command", "node preflight", "node remove", "node upgrade-command", "report", "sandbox break",
    "sandbox down", "sandbox heal", "sandbox prove", "sandbox up", "spec show", "verify", "version",
    "deploy capi", "deploy cronjob", "deploy job",
}  # fmt: skip
"""Commands with a form of output that list nothing, or whose plain form tells all of it."""


def winready(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(cli, list(arguments))


def forms(group: click.Command, path: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """Every command that has forms of output, and these."""
    found = {}
    for option in group.params:
        if "--output" in option.opts and isinstance(option.type, click.Choice):
            found[" ".join(path)] = tuple(option.type.choices)
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            if (command := group.get_command(context, name)) is not None:
                found |= forms(command, (*path, name))
    return found


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str]:
    """Where two runs are, the second of which failed."""
    samples.write_run(tmp_path, OLD)
    samples.write_run(tmp_path, NEW, outcomes={BROKEN: "failed"})
    return "--report-dir", str(tmp_path)


def test_every_command_that_lists_things_has_it() -> None:
    found = forms(cli)
    assert {name for name, choices in found.items() if "wide" not in choices} == WITHOUT


def test_status_tells_of_each_requirement_and_rule(runs: tuple[str, str]) -> None:
    result = winready("status", OLD, *runs, "-o", "wide")
    heads, *lines = result.stdout.splitlines()
    assert heads.split()[:3] == ["REQUIREMENT", "LEVEL", "OUTCOME"]
    told = [line.split()[0] for line in lines if line.startswith(("core.", "rule."))]
    assert [name for name in told if name.startswith("core.")] == list(samples.CORE)
    assert any(name.startswith("rule.") for name in told)
    assert (result.exit_code, lines[-1]) == (0, winready("status", OLD, *runs).stdout.strip())


def test_a_run_shows_the_same_table_beside_its_progress(tmp_path: Path) -> None:
    only = "core.network.windows-to-linux-pod-ip"
    result = winready("run", "--sandbox", "--requirement", only, "--report-dir", str(tmp_path), "-o", "wide")
    assert result.exit_code == 0, result.output
    row = next(line for line in result.stdout.splitlines() if line.startswith(only))
    assert "windows-1, windows-2" in row
    again = winready("status", "--report-dir", str(tmp_path), "-o", "wide")
    assert again.stdout == result.stdout


def test_compare_tells_what_stayed_the_same_as_well(runs: tuple[str, str], tmp_path: Path) -> None:
    result = winready("compare", OLD, NEW, *runs, "-o", "wide")
    assert result.exit_code == 1
    told = [line.split()[:2] for line in result.stdout.splitlines() if " core." in line[:20]]
    changes = {name: change for change, name in told}
    assert changes == {name: "worse" if name == BROKEN else "same" for name in samples.CORE}
    winready("compare", OLD, NEW, *runs, "-o", "wide", "--to", str(tmp_path / "told.txt"))
    assert (tmp_path / "told.txt").read_text() == result.stdout


def test_plan_and_doctor_leave_nothing_out() -> None:
    few = ("--sandbox", "--category", "core.storage")
    told = winready("plan", *few, "-o", "wide").stdout
    row = next(line for line in told.splitlines() if line.startswith("core.storage.reboot-recovery"))
    plain = json.loads(winready("plan", *few, "-o", "json").stdout)
    assert {line.split()[0] for line in told.splitlines() if line.startswith("core.")} == {
        item["id"] for item in plain["requirements"]
    }
    assert "Core.Storage" in row
    assert "critical path: " in told
    heads, *lines = winready("doctor", *few, "-o", "wide").stdout.splitlines()
    assert heads.split() == ["LEVEL", "SUBJECT", "MESSAGE", "NEXT", "STEP", "CONCERNS"]
    findings = json.loads(winready("doctor", *few, "-o", "json").stdout)["findings"]
    assert [line.split()[:2] for line in lines[:-1]] == [[each["level"], each["subject"]] for each in findings]


def test_lint_lists_rules_with_what_they_look_at() -> None:
    heads, *lines = winready("lint", "--rules", "-o", "wide").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(catalog.load())
    assert "LOOKS AT" in heads
    refused = winready("lint", "-o", "wide", ".")
    assert (refused.exit_code, "--rules" in refused.stderr) == (2, True)


def test_the_matrix_tells_ids_gates_and_lint_rules() -> None:
    told = winready("matrix", "-o", "wide").stdout
    assert all(re.search(rf"  {re.escape(feature.id)}  ", told) for feature in matrix.load())
    for more in (("--kubernetes", "1.30-1.36", "--feature", "host-process"), ("--diff", "1.22", "1.26")):
        told = winready("matrix", *more, "-o", "wide").stdout
        assert {"ID", "GATE", "WindowsHostProcessContainers", "hpc-gate,"} <= set(told.split())


def test_the_audit_gives_each_thing_a_row() -> None:
    chosen = ("matrix", "audit", "--from", "1.32", "--to", "1.36")
    told = winready(*chosen, "-o", "wide").stdout
    assert " more" in winready(*chosen).stdout
    names = {item["name"] for item in json.loads(winready(*chosen, "-o", "json").stdout)["gates"]["new"]}
    assert names <= {line.split()[0] for line in told.splitlines() if line.strip()}
    assert "GROUP" in winready("matrix", "audit", "--to", "1.36", "--linux-only", "-o", "wide").stdout


def test_coverage_and_faults_are_tables() -> None:
    heads, *lines = winready("spec", "coverage", "-o", "wide").stdout.splitlines()
    assert "UPSTREAM LEAVES OPEN" in heads
    assert [line.split()[0] for line in lines[:-2]] == list(samples.ALL)
    heads, *lines = winready("sandbox", "faults", "-o", "wide").stdout.splitlines()
    assert heads.split()[:3] == ["FAULT", "PART", "WHERE"]
    assert [line.split()[0] for line in lines] == list(FAULTS)


def test_specs_are_told_with_what_they_verify(tmp_path: Path) -> None:
    listing = tmp_path / "specs.txt"
    listing.write_text("[sig-windows] of no requirement\n")
    source = ("--specs", str(listing), "--kubernetes", "1.36")
    heads, row = winready("upstream", "list", *source, "-o", "wide").stdout.splitlines()
    assert (heads.split(), row.split()[:2]) == (["TEST", "VERIFIES", "SPEC"], ["-", "-"])
    drift = winready("upstream", "drift", *source, "-o", "wide")
    state = next(line for line in drift.stdout.splitlines() if line.startswith("missing"))
    assert (drift.exit_code, " core." in state) == (1, True)


def test_a_running_sandbox_tells_where_it_is_broken(command_line: Any) -> None:
    document = command_line.sandbox("wide", "--fault", "dns.windows.no-search-path@windows-2")
    try:
        told = command_line("sandbox", "status", "--name", document["name"], "-o", "wide").stdout
    finally:
        command_line("sandbox", "down", "--name", document["name"])
    rows = {line.split()[0]: line.split()[-1] for line in told.splitlines() if line.startswith("windows-")}
    assert rows == {"windows-1": "-", "windows-2": "dns.windows.no-search-path"}


def test_documents_stay_as_they_were(runs: tuple[str, str]) -> None:
    assert set(json.loads(winready("status", NEW, *runs, "-o", "json").stdout)) == {
        "run_id", "verdict", "verdict_text", "scope", "exit_code", "verdict_reasons", "not_judged",
        "linux_not_judged", "simulated",
    }  # fmt: skip


def test_what_strangers_wrote_makes_no_row_and_steers_nothing(tmp_path: Path) -> None:
    folder = samples.write_run(tmp_path, OLD, outcomes={BROKEN: "failed"})
    written = record.read(folder)
    first, *others = written.requirements
    evil = msgspec.structs.replace(
        first, reason=f"{STEERING}\ncore.made.up  core  passed\r\n\tto end", next_step="\x1b[2J"
    )
    written.requirements = [evil, *others]
    record.write(written, folder)
    for words in (("status", OLD, "-o", "wide"), ("compare", OLD, OLD, "-o", "wide")):
        told = winready(*words, "--report-dir", str(tmp_path)).stdout
        assert "core.made.up" in told
        assert not CONTROL.search(told)
        assert not [line for line in told.splitlines() if line.startswith("core.made.up")]


def test_a_hostile_cluster_steers_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with hostile_cluster(tmp_path) as kubeconfig:
        for command in ("plan", "doctor"):
            result = winready(command, "-o", "wide", "--kubeconfig", kubeconfig)
            assert result.output
            assert not CONTROL.search(result.output)


def test_tables_do_not_depend_on_the_terminal(runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [("status", OLD, *runs), ("matrix",), ("lint", "--rules"), ("matrix", "audit", "--to", "1.36")]
    told = [winready(*words, "-o", "wide").stdout for words in wanted]
    monkeypatch.setenv("COLUMNS", "40")
    assert [winready(*words, "-o", "wide").stdout for words in wanted] == told
