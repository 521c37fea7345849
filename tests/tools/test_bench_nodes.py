"""The bounds of many nodes: figures within them pass, and each that leaves them is named."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

bench_nodes: Any = importlib.import_module("bench.bench_nodes")
Figures = dict[str, float]
TEN: Figures = {"nodes": 10, "up_cpu_s": 0.4, "seconds": 275.0, "cpu_s": 3.0, "requests": 66, "commands": 466,
                "windows_pods": 20, "record_kb": 342, "page_kb": 488}  # fmt: skip
MANY: Figures = {"nodes": 100, "up_cpu_s": 4.0, "seconds": 293.0, "cpu_s": 30.0, "requests": 245, "commands": 2954,
                 "windows_pods": 200, "record_kb": 400, "page_kb": 560}  # fmt: skip


def test_figures_that_grow_with_the_nodes_are_within_the_bounds() -> None:
    assert bench_nodes.judged([TEN, MANY], 120.0) == []
    assert bench_nodes.judged([TEN, MANY], None) == []


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("requests", 10 * 13, "10 nodes: 13.0 requests per node (limit 12)"),
        ("commands", 10 * 81, "81.0 commands per node"),
        ("windows_pods", 10 * 5, "5.0 windows_pods per node"),
    ],
)
def test_a_run_that_asks_too_much_of_each_node_is_named(name: str, value: float, told: str) -> None:
    (wrong,) = bench_nodes.judged([{**TEN, name: value}], None)
    assert told in wrong


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("requests", 66 + 90 * 4, "requests from 10 to 100 nodes: 4.00 for each further node (limit 3)"),
        ("commands", 466 + 90 * 41, "commands from 10 to 100 nodes: 41.00 for each further node (limit 40)"),
        ("seconds", 275 + 90 * 5, "seconds from 10 to 100 nodes: 5.00 for each further node (limit 0.5)"),
        ("record_kb", 342 + 90 * 9, "record_kb from 10 to 100 nodes: 9.00"),
        ("page_kb", 488 + 90 * 17, "page_kb from 10 to 100 nodes: 17.00"),
        ("cpu_s", 3.0 * 10 * 3, "cpu_s from 10 to 100 nodes: 3.0 times as much for each node (limit 2)"),
        ("up_cpu_s", 0.4 * 10 * 4, "up_cpu_s from 10 to 100 nodes: 4.0 times"),
    ],
)
def test_each_figure_that_grows_too_fast_is_named(name: str, value: float, told: str) -> None:
    (wrong,) = bench_nodes.judged([TEN, {**MANY, name: value}], None)
    assert told in wrong


def test_too_much_memory_is_named() -> None:
    assert bench_nodes.judged([TEN], 301.0) == ["memory of a run: 301 MB (limit 300)"]


def test_a_run_of_few_nodes_is_measured_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "build" / "nodes.json"
    monkeypatch.setattr(sys, "argv", ["bench", "--sizes", "2", "--without-memory", "--output", str(output)])
    monkeypatch.setattr(bench_nodes, "PER_NODE", {"commands": 0.0})
    with pytest.raises(SystemExit, match=r"nodes: 2 nodes: .* commands per node"):
        bench_nodes.main()
    (measured,) = json.loads(output.read_text())["sizes"]
    assert measured.keys() == TEN.keys()
    assert measured["commands"] >= 2
    assert "nodes: nodes 2," in capsys.readouterr().out
