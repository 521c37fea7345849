"""``winready upstream list`` and ``drift`` as a user runs them, on listings made from the mapping itself."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from winready.cli.main import cli
from winready.spec.versions import Version
from winready.upstream.mapping import load_mapping

Change = Callable[[list[str]], list[str]]
HYBRID = "should have stable networking for Linux and Windows pods"


def listing(path: Path, version: str, change: Change = list) -> str:
    texts = [test.text(Version.parse(version)) for test in load_mapping().tests.values()]
    known = [text for text in texts if text]
    path.write_bytes(gzip.compress("\n".join(change([*known, "[sig-apps] Job should run"])).encode()))
    return str(path)


def upstream(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["upstream", *arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("minor", range(23, 38))
def test_a_listing_with_the_texts_of_its_version_shows_no_drift(tmp_path: Path, minor: int) -> None:
    specs = listing(tmp_path / "specs", f"1.{minor}")
    code, output = upstream("drift", "--specs", specs, "--kubernetes", f"v1.{minor}.4")
    assert code == 0, output
    assert "missing" not in output


def test_a_renamed_test_is_drift_with_its_nearest_name(tmp_path: Path) -> None:
    specs = listing(
        tmp_path / "specs",
        "1.36",
        lambda texts: [text.replace("stable networking", "steady networking") for text in texts],
    )
    code, output = upstream("drift", "--specs", specs, "--kubernetes", "1.36", "-o", "json")
    document = json.loads(output)
    assert code == 1
    assert document["drifted"] == 1
    found = next(item for item in document["tests"] if item["drifted"])
    assert found["test"] == "hybrid-network"
    assert found["state"] == "missing"
    assert "steady networking" in found["nearest"][0]
    assert "core.network.windows-to-linux-pod-ip" in found["requirements"]
    assert "nearest:" in upstream("drift", "--specs", specs, "--kubernetes", "1.36")[1]


@pytest.mark.parametrize(
    ("change", "state", "code"),
    [
        (lambda texts: [f"{text} [Serial]" if HYBRID in text else text for text in texts], "retagged", 1),
        (lambda texts: [*texts, *(text for text in texts if HYBRID in text)], "ambiguous", 1),
        (lambda texts: [text for text in texts if HYBRID not in text], "missing", 1),
    ],
)
def test_other_ways_to_drift(tmp_path: Path, change: Change, state: str, code: int) -> None:
    specs = listing(tmp_path / "specs", "1.36", change)
    result, output = upstream("drift", "--specs", specs, "--kubernetes", "1.36")
    assert result == code
    assert f"{state:<10} hybrid-network" in output


def test_tags_in_another_order_select_the_same_test(tmp_path: Path) -> None:
    def swap(texts: list[str]) -> list[str]:
        return [text.replace("[NodeConformance] [Conformance]", "[Conformance] [NodeConformance]") for text in texts]

    specs = listing(tmp_path / "specs", "1.36", swap)
    code, output = upstream("drift", "--specs", specs, "--kubernetes", "1.36", "--all")
    assert code == 0
    assert "moved      configmap-volume" in output


def test_a_version_beyond_the_table_is_compared_with_its_end_and_said(tmp_path: Path) -> None:
    specs = listing(tmp_path / "specs", "1.37")
    code, output = upstream("drift", "--specs", specs, "--kubernetes", "1.39")
    assert code == 0
    assert "made for Kubernetes 1.23-1.37" in output
    specs = listing(tmp_path / "specs", "1.28")
    assert upstream("drift", "--specs", specs, "--kubernetes", "1.39")[0] == 1


def test_list_shows_texts_and_what_they_verify(tmp_path: Path) -> None:
    specs = listing(tmp_path / "specs", "1.36")
    code, output = upstream("list", "--specs", specs, "--grep", "hybrid CLUSTER")
    assert code == 0
    assert HYBRID in output
    assert "Job should run" not in output
    mapped = json.loads(upstream("list", "--specs", specs, "--kubernetes", "1.36", "--mapped", "-o", "json")[1])
    by_test = {row["test"]: row["requirements"] for row in mapped["specs"]}
    assert "core.network.linux-to-windows-pod-ip" in by_test["hybrid-network"]
    assert "Job should run" not in str(mapped)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["drift"], "--e2e-binary F, or --specs FILE"),
        (["drift", "--specs", "x"], "--specs needs --kubernetes"),
        (["drift", "--specs", "missing.txt", "--kubernetes", "1.36"], "cannot be read"),
        (["drift", "--specs", "x", "--kubernetes", "new"], "is not a Kubernetes version"),
        (["drift", "--specs", "x", "--e2e-binary", "y", "--kubernetes", "1.36"], "exclude each other"),
        (["list", "--e2e-binary", "missing"], "there is no file missing"),
    ],
)
def test_wrong_usage_is_said_and_ends_with_2(arguments: list[str], says: str) -> None:
    code, output = upstream(*arguments)
    assert code == 2
    assert says in output
    assert "Traceback" not in output
