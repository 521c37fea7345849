"""Folders of op-readiness test cases: what is read, what is refused, and how they run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cli.conftest import SPEED, CommandLine
from upstream.conftest import PASSES, MakeE2e
from winready.spec.loader import SpecificationError
from winready.spec.versions import Version
from winready.upstream.foreign import counted_twice, read_folder, resolve
from winready.upstream.listing import Listing

MOUNTS = "[sig-node] Mount propagation should propagate mounts within defined scopes"
FILES = {
    "core-network": """category: core.network
testCases:
  - description: Pods reach each other.
    focus: ['should have stable networking for Linux and Windows pods']
    skip: ['']
  - description: Services are made again.
    focus:
      - 'should have the ability to delete and recreate services'
  - description: Services are made.
    focus: ['should be able to create a functioning NodePort service']
    skipProviders: [local]
""",
    "core-storage": """category: Core.Storage
testCases:
  - description: Files are shared.
    focus: ['should propagate mounts within defined scopes']
  - description: Pods reach each other, again.
    focus: ['stable networking for Linux and Windows pods$']
    kubernetesVersions: ['1.36', 'v1.37.0']
  - description: Nodes reboot.
    focus: ['should run as a reboot process on the host/node']
""",
    "ext": "category: Extend.Worker\ntestCases:\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "specs" / name).mkdir(parents=True)
        (tmp_path / "specs" / name / "spec.yaml").write_text(text)
    return tmp_path / "specs"


def test_a_folder_becomes_a_specification(folder: Path) -> None:
    read = read_folder(folder, "skeleton")
    assert [item.category for item in read.specification.requirements] == ["Core.Network"] * 3 + ["Core.Storage"] * 3
    assert read.specification.requirements[0].id == "core.network.pods-reach-each-other"
    assert any("Extend.Worker has no test case" in note for note in read.notes)
    without = read_folder(folder, "local")
    assert len(without.cases) == 5
    assert any("left out for provider local: Services are made." in note for note in without.notes)


def test_each_defect_is_said_with_its_place(folder: Path) -> None:
    read = read_folder(folder, "skeleton")
    texts = (
        "[sig-windows] Hybrid cluster network for all supported CNIs should have stable networking for Linux and "
        "Windows pods",
        "[sig-network] Services should be able to create a functioning NodePort service [Conformance]",
        "[sig-windows] Services should be able to create a functioning NodePort service for Windows",
        MOUNTS,
    )
    listing = Listing("e2e.test", texts)
    table, complaints = resolve(read.cases, listing, Version(1, 36))
    assert "selects no test" in complaints["core.network.services-are-made-again"]
    assert "core-network/spec.yaml:6" in complaints["core.network.services-are-made-again"]
    assert "for Linux only (it mounts tmpfs" in complaints["core.storage.files-are-shared"]
    assert table.tests[texts[0]].placement == "pinned"
    assert table.tests[texts[0]].linux_pods
    assert table.tests[texts[1]].placement == "steered"
    assert len(table.requirements["core.network.services-are-made"].proofs[0]) == 2
    assert any("one test counts for 2 cases" in note for note in counted_twice(read.cases, listing))
    _, older = resolve(read.cases, listing, Version(1, 30))
    assert "for Kubernetes 1.36, v1.37.0 only" in older["core.storage.pods-reach-each-other-again"]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("category: Core.Network\ntestCases:\n  - description: x\n    focus: ['(']\n", 4, "not a regular expression"),
        (
            f"category: Core.Network\ntestCases:\n  - description: x\n    focus: ['{'(' * 5000}']\n",
            4,
            "nested too deeply",
        ),
        ("category: Core.Network\ntestCases:\n  - description: x\n    focus: ['']\n", 4, "selects every test"),
        ("category: Core.Network\ntestCases:\n  - description: x\n    focsu: ['a']\n", 4, "did you mean 'focus'?"),
        ("category: Core.Network\ntestCases:\n  - description: x\n    focus: a\n", 4, "expected a list"),
        ("testCases: [", 1, "spec.yaml"),
        ("category: [1]\n", 1, "expected text"),
        ("", 1, "expected one document"),
    ],
)
def test_mistakes_have_file_and_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    (tmp_path / "spec.yaml").write_text(text)
    with pytest.raises(SpecificationError) as caught:
        read_folder(tmp_path, "skeleton")
    together = str(caught.value)
    assert f"spec.yaml:{line}:" in together
    assert says in together


def test_a_folder_without_cases_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match=r"there is no spec\.yaml"):
        read_folder(tmp_path / "missing", "skeleton")


def test_a_folder_runs_from_the_command_line(
    command_line: CommandLine, kubeconfig: str, folder: Path, tmp_path: Path, make_e2e: MakeE2e
) -> None:
    program = make_e2e({MOUNTS: PASSES})
    # As op-readiness is used: e2e.test is in the folder where one stands, and all paths are relative.
    result = replace(command_line, cwd=program.parent)(
        *["run", "--kubeconfig", kubeconfig, "--time-scale", SPEED, "-o", "json"],
        *["--test-directory", f"../{folder.name}", "--provider", "local", "--verbose"],
        ARTIFACTS="../artifacts",
    )
    document = json.loads(result.stdout)
    outcomes = {item["id"]: item["outcome"] for item in document["requirements"]}
    assert outcomes == {
        "core.network.pods-reach-each-other": "passed",
        "core.network.services-are-made-again": "blocked",
        "core.storage.files-are-shared": "blocked",
        "core.storage.pods-reach-each-other-again": "passed",
        "core.storage.nodes-reboot": "blocked",
    }
    reasons = {item["id"]: item["reason"] for item in document["requirements"]}
    assert reasons["core.storage.nodes-reboot"] == "it disturbs nodes and was not allowed"
    assert result.returncode == 3
    assert document["spec"]["version"] == "op-readiness"
    assert "one test counts for 2 cases" in result.stderr
    assert any("one test counts for 2 cases" in note for note in document["settings"]["notes"])
    assert "Starting e2e run" in result.stderr
    assert list((tmp_path / "artifacts").glob("*/upstream/*/output.log"))
    bad = command_line("run", "--kubeconfig", kubeconfig, "--test-directory", str(tmp_path / "nowhere"))
    assert bad.returncode == 2
    assert "there is no spec.yaml" in bad.stderr
