"""What SECURITY.md and docs/stability.md promise, as far as a machine can see it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from winready.cli.main import cli
from winready.engine import events, preflight
from winready.lint import catalog
from winready.node import parameters
from winready.report import record
from winready.report.bundle import making
from winready.report.fleet import answers
from winready.spec.loader import load_standard
from winready_sandbox.faults.table import FAULTS

ROOT = Path(__file__).resolve().parent.parent
SIMULATED = ("api", "controllers", "machine", "network", "nodes", "programs")
MODULES = {"subprocess", "multiprocessing", "pty", "ctypes", "runpy"}
STARTERS = re.compile(r"create_subprocess_\w+|system|popen|fork(pty)?|(posix_)?spawn\w*|exec[lv]\w*|subprocess_\w+")
BUILTINS = {"eval", "exec", "compile", "__import__"}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name."""

    def below(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        for word in group.list_commands(context):
            command = group.get_command(context, word)
            assert command is not None
            if isinstance(command, click.Group):
                yield from below(command, f"{name} {word}")
            if not isinstance(command, click.Group) or command.invoke_without_command:
                yield f"{name} {word}", command

    return below(cli, "winready")


def ways_out(path: Path) -> Iterator[str]:
    """What in a module could start a process or run a text."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from {name.name.partition(".")[0] for name in names} & MODULES
            case ast.ImportFrom(module=str(module), names=names):
                yield from {module.partition(".")[0]} & MODULES
                if module in ("os", "asyncio"):
                    yield from (name.name for name in names if STARTERS.fullmatch(name.name))
            case ast.Attribute(value=ast.Name(id="os" | "asyncio"), attr=attribute) if STARTERS.fullmatch(attribute):
                yield attribute
            case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
                yield name


@pytest.mark.parametrize("part", SIMULATED)
def test_no_part_of_the_simulation_can_start_a_process(part: str) -> None:
    modules = list((ROOT / "src" / "winready_sandbox" / part).rglob("*.py"))
    assert modules
    assert {str(path.relative_to(ROOT)): out for path in modules if (out := list(ways_out(path)))} == {}


def test_only_these_parts_of_the_sandbox_start_processes() -> None:
    sandbox = ROOT / "src" / "winready_sandbox"
    starting = {str(path.relative_to(sandbox)) for path in sandbox.rglob("*.py") if list(ways_out(path))}
    # A detached sandbox, the programs of a real control plane, and the host node, which is asked for by name.
    allowed = ("daemon.py", "control_plane/real/", "host/")
    assert "host/keeper.py" in starting
    assert [name for name in sorted(starting) if not name.startswith(allowed)] == []


def test_ways_out_are_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import asyncio, os, os.path, subprocess\nfrom os import execv\nfrom ctypes import CDLL\n"
        "os.system('ls')\nasyncio.create_subprocess_exec('ls')\neval('1')\nos.getpid()\nself.system()\n"
    )
    assert sorted(ways_out(module)) == ["create_subprocess_exec", "ctypes", "eval", "execv", "subprocess", "system"]


def test_no_option_turns_the_verification_of_certificates_off() -> None:
    options = {word for _, command in commands() for option in command.params for word in option.opts}
    assert "--kubeconfig" in options
    # `matrix --verify` has the cluster verify features; it says nothing about connections.
    assert [word for word in options - {"--verify"} if re.search("insecure|tls|ssl|verify|certificate", word)] == []


def test_the_commands_with_json_are_named() -> None:
    section = (ROOT / "docs" / "stability.md").read_text().partition("### JSON")[2].partition("### ")[0]
    named = {re.sub(r" --.*", "", line) for line in re.findall(r"`(winready [^`]+)`", section)}
    choices = {name: [option.type for option in command.params] for name, command in commands()}
    assert named == {
        name
        for name, types in choices.items()
        if any(isinstance(kind, click.Choice) and "json" in kind.choices for kind in types)
    }


def test_the_schemas_are_named() -> None:
    named = set(re.findall(r"`(winready-\w+/\d+)`", (ROOT / "docs" / "stability.md").read_text()))
    data = [ROOT / "src" / "winready" / name for name in ("spec/standard.yaml", "upstream/mapping.yaml")]
    files = [re.findall(r"^schema: (\S+)$", path.read_text(), re.MULTILINE)[0] for path in data]
    assert named == {
        record.SCHEMA,
        events.SCHEMA,
        making.SCHEMA,
        parameters.SCHEMA,
        preflight.SCHEMA,
        answers.SCHEMA,
        *files,
    }


def test_no_id_is_taken_back() -> None:
    standard = load_standard()
    there = {
        *(f"requirement {each.id} {each.key}" for each in standard.requirements),
        *(f"rule {each.id}" for each in standard.rules),
        *(f"lint {name}" for name in catalog.load()),
        *(f"fault {name}" for name in FAULTS),
    }
    promised = set((ROOT / "tests" / "promised-ids.txt").read_text().splitlines())
    assert promised - there == set(), "docs/stability.md says how something is given up"


def test_every_interpreter_is_started_apart_from_the_current_folder() -> None:
    lists = [
        (path.name, [ast.unparse(each).strip("'") for each in node.elts])
        for path in sorted((ROOT / "src").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.List)
    ]
    started = [(name, words) for name, words in lists if "sys.executable" in words]
    assert started
    assert [name for name, words in started if not set(words) & {"-P", "-I", "-IS"}] == []
