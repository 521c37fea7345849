"""The page of figures: it is made of the data beside it, and names what nobody has measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reliability

MEASURED: dict[str, Any] = {
    "chaos": {"kills": {"runs": 20, "results_lost": 0, "troubles": []}},
    "fuzz": {"kubeconfig": {"inputs": 100000, "accepted": 25000, "commands": 25, "findings": 0, "slowest_s": 0.2,
                            "peak_mb": 61.0}},
    "rights": {"core": {"granted": 38, "used": 37, "asked_besides": 0, "named_when_missing": 38}},
    "nodes": {
        "sizes": [
            {"nodes": 10, "seconds": 200.0, "cpu_s": 5, "up_cpu_s": 0.5, "requests": 60, "commands": 400,
             "windows_pods": 20, "record_kb": 300, "page_kb": 400},
        ],
        "memory_nodes": 100,
        "memory_mb": None,
    },
    "speed": {"junit_mb": 18.0},
}  # fmt: skip


def test_the_page_is_made_of_the_data_beside_it() -> None:
    figures = json.loads(reliability.DATA.read_text())
    assert reliability.PAGE.read_text() == reliability.page(figures)
    assert figures.keys() <= set(reliability.PARTS)


def test_what_nobody_measured_is_named() -> None:
    assert reliability.page({}).count(reliability.NOT_MEASURED) == len(reliability.PARTS)
    page = reliability.page(MEASURED)
    assert reliability.NOT_MEASURED not in page
    assert "| `--help` over bare Python, ms | at most 60 | not measured |" in page
    assert "the sandbox in another process: not measured" in page
    assert "More than 10 nodes: not measured." in page
    assert "| kills | results lost | 0 |" in page
    assert reliability.REPAIRED not in page
    repaired = {
        "chaos": {"crashes": {"runs": 200, "verdict_changed": 15, "verdict_changed_after_repair": 0, "troubles": []}}
    }
    assert "| crashes | verdict changed | 15 |" in reliability.page(repaired)
    assert "| crashes | verdict changed after repair | 0 |" in reliability.page(repaired)
    assert reliability.REPAIRED in reliability.page(repaired)
    assert "| kubeconfig | 100,000 | 25% | 25 | 0 | 0.20 | 61 |" in page
    assert "| 10 | 0.050 | 200 | 0.50 | 6.0 | 40.0 | 2.0 | 300 | 400 |" in page


def test_figures_are_collected_and_what_was_not_measured_again_stays(tmp_path: Path) -> None:
    (tmp_path / "fuzz.json").write_text(json.dumps(MEASURED["fuzz"]))
    found = reliability.collect(tmp_path, {"speed": {"help_ms": 50}})
    assert found == {"speed": {"help_ms": 50}, "fuzz": MEASURED["fuzz"]}
    (tmp_path / "speed.json").write_text(json.dumps({"junit_mb": 18}))
    found = reliability.collect(tmp_path, {"speed": {"help_ms": 50, "junit_mb": 90}})
    assert found["speed"] == {"help_ms": 50, "junit_mb": 18}


@pytest.mark.parametrize("part", reliability.PARTS)
def test_each_part_tells_how_it_is_measured(part: str) -> None:
    assert f"By `{reliability.COMMANDS[part]}`." in reliability.page({})
