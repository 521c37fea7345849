"""The house rules that a machine can watch: import layers, lazy start, module size, names, one reader each."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("aiohttp", "cryptography", "jinja2", "rich", "sqlite3", "yaml", "msgspec")


def test_imports_go_one_way() -> None:
    lint_imports = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run([lint_imports, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_help_imports_nothing_heavy() -> None:
    probe = (
        "import sys; from click.testing import CliRunner; from winready.cli.main import cli\n"
        "result = CliRunner().invoke(cli, ['--help']); assert result.exit_code == 0, result.output\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("asked", ["--version", "--help", "-h"])
def test_what_needs_no_command_is_answered_before_the_command_line_is_loaded(asked: str) -> None:
    probe = f"import sys; sys.argv = ['winready', {asked!r}]; from winready.__main__ import main; main(); "
    probe += "print('click' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert "winready " in result.stdout.splitlines()[0]
    assert result.stdout.splitlines()[-1] == "False"


def test_modules_stay_small() -> None:
    sizes = {path: len(path.read_text().splitlines()) for path in (ROOT / "src").rglob("*.py")}
    assert {str(path.relative_to(ROOT)): size for path, size in sizes.items() if size > 450} == {}


def test_the_parts_of_the_model_have_one_name_each() -> None:
    texts = [path.read_text() for path in (ROOT / "src/winready_sandbox").rglob("*.py")]
    names = Counter(
        name for text in texts for name in re.findall(r"^class (\w*(?:Sandbox|Defects|ControlPlane))\b", text, re.M)
    )
    assert {"Sandbox", "PodSandbox", "NodeDefects", "NetworkDefects"} <= set(names)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    ("form", "readers"),
    [
        (r'"[KMGT]i"|\b[KMG]i\|', {"winready/cluster/quantity.py", "winready_sandbox/quantity.py"}),
        (
            r"v\??\(?(?:1|\\d(?:\+|\{1,\d\}))\)?\\\.",
            # The last two look for a version in the words of a runtime and of a program.
            {
                "winready/spec/versions.py",
                "winready_sandbox/versions.py",
                "winready/cluster/inventory.py",
                "winready_sandbox/control_plane/real/programs.py",
            },
        ),
        # Tags of images have a grammar of their own.
        (
            r"10\\\.0\\\.|\(\"10\.0\.",
            {"winready/spec/windows.py", "winready/lint/images.py", "winready_sandbox/machine/builds.py"},
        ),
    ],
    ids=["quantities", "Kubernetes versions", "Windows builds"],
)
def test_what_many_need_is_read_in_one_place(form: str, readers: set[str]) -> None:
    source = ROOT / "src"
    found = {str(path.relative_to(source)) for path in source.rglob("*.py") if re.search(form, path.read_text())}
    assert found == readers


def test_every_category_of_checks_is_under_the_contract() -> None:
    categories = {
        f"winready.checks.{path.parent.name}" for path in (ROOT / "src/winready/checks").glob("*/__init__.py")
    }
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    independent = {name for one in contracts if one["type"] == "independence" for name in one["modules"]}
    assert categories <= independent
