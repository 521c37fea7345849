"""Every command line of our checks is judged by a foreign program, or the reason why not is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

import winready
from windows import test_answers_given, test_answers_scripts, test_kubeadm_join
from windows.command_lines import JUDGED, LACKING, Line, of_a_whole_run, script, shape, written
from windows.ground import Ground

pytestmark = pytest.mark.windows_programs


@pytest.fixture(scope="module")
def lines() -> set[Line]:
    return of_a_whole_run()


@pytest.mark.timeout(300)
def test_no_line_of_a_whole_run_is_new(lines: set[Line]) -> None:
    assert sorted({str(line) for line in lines if not shape(str(line))}) == []


@pytest.mark.timeout(300)
def test_no_shape_is_of_yesterday(lines: set[Line]) -> None:
    assert {*JUDGED, *LACKING} - {shape(str(line)) for line in lines} == set()


SHOWN_ONLY = {"powershell.exe -Command"}
"""How evidence names a script that goes in encoded."""


def test_what_runs_only_in_broken_clusters_is_known_as_well(lines: set[Line]) -> None:
    known = {str(line) for line in lines}
    source = Path(winready.__file__).parent
    found = {words for part in ("checks", "cluster") for words in written(source / part)}
    new = [words for words in found if not any(f"{line} ".startswith(f"{words} ") for line in known)]
    assert set(new) == SHOWN_ONLY


def test_whoever_is_said_to_judge_does() -> None:
    judges = {*vars(test_answers_given), *vars(test_answers_scripts), *vars(test_kubeadm_join)}
    assert set(JUDGED.values()) - judges == set()


PARSE = r"""
foreach ($file in [IO.Directory]::GetFiles('C:\scripts')) {
    $errors = $null
    [void][Management.Automation.Language.Parser]::ParseFile($file, [ref]$null, [ref]$errors)
    foreach ($one in $errors) { "$($file): $one" }
}
"parsed $([IO.Directory]::GetFiles('C:\scripts').Count)"
"""


def test_every_script_is_one_for_a_real_powershell(lines: set[Line], machine: Ground) -> None:
    scripts = sorted({script(line) for line in lines} - {""})
    assert len(scripts) > 20
    for number, text in enumerate(scripts):
        machine.put(rf"C:\scripts\{number}.ps1", text)
    (result,) = machine.powershell(PARSE)
    assert result.out == f"parsed {len(scripts)}\n"
    machine.put(r"C:\scripts\wrong.ps1", "try { 1 }")
    (result,) = machine.powershell(PARSE)
    assert "wrong.ps1: " in result.out


@pytest.mark.parametrize("line", ["cmd /c copy a b", "/agnhost mounttest", "cmd /c type C:\\a | find", "whoami.exe"])
def test_another_line_would_be_noticed(line: str) -> None:
    assert shape(line) == ""
