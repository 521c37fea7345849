#!/usr/bin/env python3
"""The page of figures about trouble, rights, size and speed: read from what the benches and long tests have written.

Figures are kept beside the page (``docs/reliability.json``), so that page and data can be held together; what nobody
has measured is named.

    reliability.py                       the page from the kept figures
    reliability.py --collect build       take over what make chaos, make fuzz and the benches wrote there, first
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA, PAGE = ROOT / "docs" / "reliability.json", ROOT / "docs" / "reliability.md"
PARTS = ("chaos", "fuzz", "rights", "nodes", "speed")
COMMANDS = {
    "chaos": "make chaos",
    "fuzz": "make fuzz",
    "rights": "python bench/bench_rights.py",
    "nodes": "python bench/bench_nodes.py",
    "speed": "make bench",
}
NOT_MEASURED = "Not measured yet."
REPAIRED = (
    "What stands in a part without 'after repair' is as it was measured at first. What that found was repaired, and "
    "the runs with trouble, and no others, were run again: 'after repair'."
)
PROOFS = (
    "A proof runs what its fault can concern. Of the four faults whose proofs are measured two concern six "
    "requirements of the other half as well, and each of those costs what one of the core costs; the other two run "
    "the same requirements with all of them and with half of them."
)
GOALS = {
    "core_network_ratio": ("Core.Network at speed 1, over its critical path", "at most 1.10"),
    "upstream_ratio": ("ten Core.Network cases of op-readiness, over the longest spec and start-up", "at most 1.15"),
    "demo_ratio": ("`run --sandbox` of Core.Network in simulated time, over the wall clock at speed 25", "below 1"),
    "junit_mb": ("memory for a JUnit file of 300 MB", "at most 100 MB"),
    "lint_per_cpu_s": ("manifests linted per CPU second", "at least 2,500"),
    "help_ms": ("`--help` over bare Python, ms", "at most 60"),
    "fleet_open_s": ("10,000 runs opened in the dashboard, index at hand, CPU seconds", "below 1"),
    "fleet_added_mb": ("memory that 9,000 more runs add to the dashboard", "at most 60 MB"),
    "prove_doubling": ("processor time of a proof, with 46 requirements over 24", "at most 1.15"),
    "prove_ratio": ("processor time of a proof, now and earlier", "at most 1.3"),
}
Figures = dict[str, Any]


def collect(folder: Path, known: Figures) -> Figures:
    """The figures that were known, with those that were written since."""
    found = dict(known)
    for part in PARTS:
        file = folder / f"{part}.json"
        if file.exists():
            new = json.loads(file.read_text())
            # Each bench writes its own figure; those of benches that did not run stay.
            found[part] = {**known.get(part, {}), **new} if part == "speed" else new
    return found


def page(figures: Figures) -> str:
    """The whole page."""
    lines = [
        "# Reliability, in figures",
        "",
        "Written by `python tools/reliability.py` from `docs/reliability.json`; `make reliability` measures everything",
        "again and writes both.",
        "Whatever nobody has measured is named as that.",
    ]
    for title, part, tell in (
        ("A hostile API server, crashes, kills and signals", "chaos", _chaos),
        ("Hostile input", "fuzz", _fuzz),
        ("Rights", "rights", _rights),
        ("Many nodes", "nodes", _nodes),
        ("Speed", "speed", _speed),
    ):
        told = tell(figures[part]) if part in figures else [NOT_MEASURED]
        lines += ["", f"## {title}", "", f"By `{COMMANDS[part]}`.", "", *told]
    return "\n".join(lines) + "\n"


def _table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    heads = list(heads)
    return [
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
        *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows),
    ]


def _chaos(figures: Figures) -> list[str]:
    rows = []
    for name, part in figures.items():
        for what, value in part.items():
            if isinstance(value, (int, float)):
                rows.append((name, what.replace("_", " "), value))
            elif what == "troubles":
                rows.append((name, "runs with trouble", len(value)))
    table = _table(("trouble", "what", "figure"), rows)
    return [*table, "", REPAIRED] if any("after repair" in row[1] for row in rows) else table


def _fuzz(figures: Figures) -> list[str]:
    rows = [
        (
            name,
            f"{one['inputs']:,}",
            f"{one['accepted'] / max(one['inputs'], 1):.0%}" if "accepted" in one else "not counted",
            one.get("commands", "not counted"),
            one["findings"],
            f"{one['slowest_s']:.2f}",
            f"{one['peak_mb']:.0f}",
        )
        for name, one in sorted(figures.items())
    ]
    heads = ("reader", "inputs", "read without complaint", "given to the command line", "findings",
             "slowest, CPU s", "peak, MB")  # fmt: skip
    goal = "The goal is 100,000 inputs each, none above 10 s of the processor and 300 MB, and no finding"
    whole = [name for name, one in figures.items() if one["inputs"] >= 100_000]
    return [*_table(heads, rows), "", f"{goal}; {len(whole)} of {len(figures)} readers have had that many so far."]


def _rights(figures: Figures) -> list[str]:
    rows = [
        (name, one["granted"], one["used"], one["asked_besides"], one["named_when_missing"])
        for name, one in sorted(figures.items())
    ]
    heads = ("run", "rights granted", "of them used", "asked for besides", "of them named when taken away")
    note = (
        "Real API servers tell by their audit logs. In the whole cluster nothing was in the way of those runs, so "
        "rights for obstacles are not among the used; in prepared namespaces something was. "
        "The few that no such cluster can show in use are listed, with why, in the tests."
    )
    return [*_table(heads, rows), "", note]


def _nodes(figures: Figures) -> list[str]:
    rows = [
        (
            f"{one['nodes']:,}",
            f"{one['up_cpu_s'] / one['nodes']:.3f}",
            f"{one['seconds']:.0f}",
            f"{one['cpu_s'] / one['nodes']:.2f}",
            f"{one['requests'] / one['nodes']:.1f}",
            f"{one['commands'] / one['nodes']:.1f}",
            f"{one['windows_pods'] / one['nodes']:.1f}",
            f"{one['record_kb']:.0f}",
            f"{one['page_kb']:.0f}",
        )
        for one in figures["sizes"]
    ]
    heads = ("Windows nodes", "CPU seconds per node until the sandbox is up", "cluster seconds of the run",
             "CPU seconds per node, run and sandbox", "requests per node", "commands per node", "Windows pods per node",
             "run.json, KB", "report.html, KB")  # fmt: skip
    lines = _table(heads, rows)
    if largest := max((one["nodes"] for one in figures["sizes"]), default=0):
        lines += ["", f"More than {largest:,} nodes: not measured."] if largest < 1000 else []
    memory = figures.get("memory_mb")
    told = f"{memory:.0f} MB" if memory is not None else "not measured"
    return [*lines, "", f"Memory of a run of {figures['memory_nodes']} nodes, the sandbox in another process: {told}."]


def _speed(figures: Figures) -> list[str]:
    rows = [(what, goal, figures.get(name, "not measured")) for name, (what, goal) in GOALS.items()]
    return [*_table(("what", "goal", "measured"), rows), "", PROOFS]


def main() -> int:
    """Collect if asked to, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collect", type=Path, metavar="DIR")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when the page is not current")
    given = parser.parse_args()
    figures = json.loads(DATA.read_text()) if DATA.exists() else {}
    if given.collect:
        figures = collect(given.collect, figures)
        DATA.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
        figures = json.loads(DATA.read_text())
    text = page(figures)
    if given.check:
        return 0 if PAGE.exists() and PAGE.read_text() == text else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
