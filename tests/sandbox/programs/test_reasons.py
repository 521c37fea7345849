"""Grown only where something needs it: every command and option of the simulated programs has a reason to be there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from sandbox.programs.commands import Commands, catalogue
from winready.spec.loader import load_standard
from winready_sandbox.machine import images
from winready_sandbox.machine.executables import program_of
from winready_sandbox.machine.image_trees import BUILDERS, tree
from winready_sandbox.machine.tree import Directory, File, Node
from winready_sandbox.programs.powershell.operators import FAMILIES

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "sandbox-fidelity.md"
KINDS = ("brief", "fact", "file", "image")


@dataclass(frozen=True)
class Reason:
    """Why some commands are there."""

    kind: str
    source: str
    commands: Commands


def _reasons() -> list[Reason]:
    found = []
    for entry in yaml.safe_load((Path(__file__).parent / "reasons.yaml").read_text()):
        (kind,) = [kind for kind in KINDS if kind in entry]
        assert set(entry) == {kind, "why", "commands"}
        words = [line.split() for line in entry["commands"]]
        commands = {f"{kind_} {name}": set(options) for kind_, name, *options in words}
        assert len(commands) == len(words), f"{entry[kind]} names something twice"
        found.append(Reason(kind, entry[kind], commands))
    return found


REASONS = _reasons()


def executed() -> Commands:
    """What specs executed, by the page; operators by family."""
    rows = re.findall(r"^\| `(\w+ [^`]+)` \| ([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    families = {f"operator {each}": f"operators {name}" for name, group in FAMILIES.items() for each in group}
    found: Commands = {}
    for command, options in rows:
        found.setdefault(families.get(command, command), set()).update(re.findall("`([^`]+)`", options))
    return found


def test_everything_has_a_reason() -> None:
    known = [executed(), *(reason.commands for reason in REASONS)]
    nothing: list[str] = []
    for command, options in catalogue().items():
        given = [commands[command] for commands in known if command in commands]
        if not given:
            nothing.append(command)
        nothing += [f"{command} {option}" for option in sorted(options - set().union(*given))]
    assert nothing == [], "delete it, or say in reasons.yaml who needs it"


def test_no_reason_is_left_of_what_is_gone() -> None:
    there = catalogue()
    for reason in REASONS:
        for command, options in reason.commands.items():
            assert command in there, f"{reason.source} names {command}, which is gone"
            assert options <= there[command], f"{reason.source} names options of {command} that are gone"


def test_what_specs_execute_is_there() -> None:
    there = catalogue()
    assert len(executed()) > 40
    assert sorted(set(executed()) - set(there)) == []


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: f"{reason.kind} {reason.source}")
def test_whoever_is_cited_exists_and_says_so(reason: Reason) -> None:
    names = [command.split(" ", 1) for command in reason.commands]
    match reason.kind:
        case "brief":
            assert reason.source in {each.key for each in load_standard().requirements}
        case "fact":
            mark = f"def test_fact_{reason.source.replace('.', '_')}_"
            assert any(mark in path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
        case "file":
            text = (ROOT / reason.source).read_text().lower()
            for kind, name in names:
                said = any(each in text for each in FAMILIES[name]) if kind == "operators" else _said(name, text)
                assert said, f"{reason.source} does not say {name}"
        case "image":
            family = images.FAMILIES[reason.source]
            files = {
                found for variant in (family.linux, family.windows) if variant for found in _files(tree(variant.tree))
            }
            programs = {name for kind, name in names if kind == "program"}
            assert programs <= files


def _said(name: str, text: str) -> bool:
    return all(part in text for part in name.lower().removesuffix(".exe").split("::"))


def _files(node: Node) -> set[str]:
    """The programs in a tree."""
    if isinstance(node, Directory):
        return {found for _, child in node.items() for found in _files(child)}
    if isinstance(node, File):
        return {name for os in ("linux", "windows") if (name := program_of(os, node.data)) is not None}
    return set()


def test_every_program_is_in_an_image() -> None:
    carried = {name for builder in BUILDERS for name in _files(tree(builder))}
    applets = {"wget"}  # of busybox, which looks it up by name
    assert {command.split(" ")[1] for command in catalogue() if command.startswith("program ")} - carried == applets
