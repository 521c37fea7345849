"""Every reader against some hundred hostile inputs, the same ones each time; `make fuzz` has more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fuzz import running, targets
from fuzz.commands import COMMANDS, WAITING
from fuzz.reach import reach
from fuzz.running import LONGEST, MOST_MEGABYTES, Outcome, fuzz, made
from fuzz.seeding import SEEDS
from fuzz.targets import TARGETS, Target
from fuzz.workers import fuzzed
from winready.node.bundle import SUMS
from winready.node.opened import open_bundle
from winready.node.parameters import ParametersError

ROOT = Path(__file__).resolve().parents[2]
INPUTS = 200
SLOW = {"manifests": 120, "run": 120}
"""Targets of which some inputs have to do."""
FOUND = {"deep.yaml"}
"""Seeds that are kept because a reader once stumbled over them, and that it refuses now."""


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_makes_a_reader_stumble(name: str) -> None:
    # Input 0 goes through the command line in a process of its own, which `test_the_command_line` is about.
    outcome = fuzz(name, range(1, 1 + SLOW.get(name, INPUTS)))
    assert outcome.told == []
    assert 0 < outcome.accepted <= outcome.inputs
    assert outcome.commands > 0 or name not in COMMANDS or name in WAITING


@pytest.mark.parametrize("name", ["journal", "bundle", "lint-config"])
def test_the_command_line_is_given_some_of_them_in_a_process_of_its_own(name: str) -> None:
    outcome = fuzz(name, range(1))
    assert (outcome.told, outcome.commands) == ([], 1)


@pytest.mark.parametrize("name", TARGETS)
def test_an_input_is_known_by_its_number(name: str) -> None:
    assert made(name, 7) == made(name, 7)
    assert len({made(name, number) for number in range(20)}) > 10


def test_every_seed_is_read_and_those_that_were_no_finding_without_complaint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    alone = {"specification", "kubeconfig", "exec", "watch", "scripts", "node", "bundle"}
    for folder in sorted(SEEDS.iterdir()):
        for seed in folder.iterdir() if folder.name not in alone else ():
            place = tmp_path / folder.name / seed.name
            place.mkdir(parents=True)
            if seed.name in FOUND:
                with pytest.raises(TARGETS[folder.name].errors):
                    TARGETS[folder.name].read(seed.read_bytes(), place)
            else:
                TARGETS[folder.name].read(seed.read_bytes(), place)


def _waits(data: bytes, folder: Path) -> None:
    if data == b"3":
        os.kill(os.getpid(), signal.SIGKILL)
    if data == b"5":
        while True:
            pass
    if data == b"6":
        (folder.parent.parent / f"{folder.parent.name}-outside").write_text("x")


def test_whatever_an_input_does_is_noticed_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(lambda random: b"", _waits, ())
    monkeypatch.setitem(targets.TARGETS, "odd", target)
    monkeypatch.setattr(running, "made", lambda name, number: str(number).encode())
    monkeypatch.setattr(running, "LONGEST", 0.3)
    found = Outcome()
    fuzzed(iter([("odd", range(8))]), 1, lambda name, outcome: found.add(outcome))
    assert (found.inputs, found.findings) == (8, 3)
    told = "\n".join(found.told)
    assert "input 3: ended its process (-9)" in told
    assert "input 5: took more than" in told
    assert "input 6: wrote outside" in told


def test_the_long_one_writes_its_figures_and_goes_on_where_it_was(tmp_path: Path) -> None:
    figures = tmp_path / "fuzz.json"
    command = [sys.executable, "-m", "fuzz", "listing", "--output", str(figures)]
    for inputs, more in (("20", []), ("30", ["--go-on"])):
        ended = subprocess.run(
            [*command, "--inputs", inputs, *more], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert json.loads(figures.read_text())["listing"]["inputs"] == int(inputs)
    assert "listing" in ended.stdout
    assert (LONGEST, MOST_MEGABYTES) == (10, 300)


def test_inputs_get_into_the_reader() -> None:
    told = reach("listing", range(60))
    assert "winready/upstream/listing.py" in told
    assert "of 60 accepted" in told


@pytest.mark.parametrize(
    ("at", "value"), [(6, b"\x88\x00"), (8, b"\x01\x00"), (10, b"\x63\x00"), (20, b"\xff\xff\x0f\x00\xff\xff\x0f\x00")]
)
def test_a_bundle_whose_files_cannot_be_unpacked_is_damaged(tmp_path: Path, at: int, value: bytes) -> None:
    """Of a later version, encrypted, packed in a way that nobody knows, or longer than the archive."""
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(SUMS, "x" * 100)
    data = bytearray(path.read_bytes())
    start = data.index(b"PK\x01\x02") + at
    data[start : start + len(value)] = value
    path.write_bytes(bytes(data))
    with pytest.raises(ParametersError, match=r"damaged|neither"):
        open_bundle(path)


def test_a_bundle_with_a_broken_stream_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(SUMS, bytes(range(256)) * 4)
    data = bytearray(path.read_bytes())
    start = 30 + len(SUMS)
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(bytes(data))
    with pytest.raises(ParametersError, match="cannot be unpacked"):
        open_bundle(path)
