"""Who reached whom: every network probe of a run, from the node that asked to the place that should have answered.

Of many nodes, those that what went wrong leads to stand alone; the others are one row and one column per system.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from winready.cluster.evidence import Probe
from winready.report.record import Record

SERVICES, INSIDE, OUTSIDE = "services by address", "cluster names", "outside names"
MOST, ALONE = 16, 12
"""How many nodes are still shown one by one, and how many of more than that, if anything is wrong with them."""
_ADDRESS = re.compile(r"\[(?P<six>[0-9a-f:]+)\](?::\d+)?|(?P<four>\d+\.\d+\.\d+\.\d+)(?::\d+)?", re.IGNORECASE)


@dataclass
class Cell:
    """What one node found when it asked at one place."""

    good: int = 0
    bad: list[tuple[str, Probe]] = field(default_factory=list)
    """Requirement and probe, for each question that was not answered as it should."""

    @property
    def total(self) -> int:
        """How many questions were put."""
        return self.good + len(self.bad)


@dataclass
class Matrix:
    """Rows are nodes that asked, columns are places, in groups."""

    rows: list[tuple[str, str]]
    """(node, operating system)"""
    groups: list[tuple[str, list[str]]]
    cells: dict[tuple[str, str, str], Cell]
    """By (asking node, group, place)."""
    condensed: bool = False
    """Whether nodes with which nothing is wrong stand together."""

    def cell(self, node: str, group: str, place: str) -> Cell | None:
        """The cell, if anything was asked there."""
        return self.cells.get((node, group, place))


def make_matrix(record: Record) -> Matrix:
    """The matrix of a run; without rows when no network probe was made."""
    systems = {node.name: node.os for node in record.cluster.nodes} if record.cluster else {}
    cells: dict[tuple[str, str, str], Cell] = {}
    for requirement, probe, group, place in _asked(record):
        cell = cells.setdefault((probe.node, group, place), Cell())
        if probe.ok:
            cell.good += 1
        else:
            cell.bad.append((requirement, probe))
    named = {key[0] for key in cells} | {place for _, group, place in cells if group != "elsewhere"}
    if len(named) > MOST:
        cells, systems = _condensed(cells, systems, named)
    rows = sorted({key[0] for key in cells}, key=lambda name: (systems.get(name, ""), name))
    groups: dict[str, list[str]] = {"pods on": [], "NodePort of": [], "elsewhere": []}
    for _, group, place in cells:
        if place not in groups[group]:
            groups[group].append(place)
    for group in ("pods on", "NodePort of"):
        groups[group].sort(key=lambda name: (systems.get(name, ""), name))
    groups["elsewhere"].sort(key=(SERVICES, INSIDE, OUTSIDE).index)
    return Matrix(
        [(name, systems.get(name, "")) for name in rows],
        [(name, to) for name, to in groups.items() if to],
        cells,
        len(named) > MOST,
    )


def _condensed(
    cells: dict[tuple[str, str, str], Cell], systems: dict[str, str], named: set[str]
) -> tuple[dict[tuple[str, str, str], Cell], dict[str, str]]:
    """The same questions between fewer parties: nodes with which nothing is wrong answer for each other."""
    bad = {key: len(cell.bad) for key, cell in cells.items() if cell.bad}
    alone: set[str] = set()
    while bad and len(alone) < ALONE:
        blamed: Counter[str] = Counter()
        for (node, group, place), number in bad.items():
            for name in {node, place if group != "elsewhere" else node}:
                blamed[name] += number
        worst = min(blamed, key=lambda name: (-blamed[name], name))
        alone.add(worst)
        bad = {key: number for key, number in bad.items() if worst not in (key[0], key[2])}
    counts = Counter(systems.get(name, "") for name in named - alone)
    every = "other" if alone else "all"
    called = {os: f"{every} {number} {os.capitalize()} nodes" for os, number in counts.items()}

    def label(name: str) -> str:
        return name if name in alone else called[systems.get(name, "")]

    merged: dict[tuple[str, str, str], Cell] = {}
    for (node, group, place), cell in cells.items():
        key = label(node), group, place if group == "elsewhere" else label(place)
        into = merged.setdefault(key, Cell())
        into.good += cell.good
        into.bad += cell.bad
    return merged, systems | {called[os]: os for os in counts}


def _asked(record: Record) -> Iterator[tuple[str, Probe, str, str]]:
    nodes = record.cluster.nodes if record.cluster else []
    hosts = {address: node.name for node in nodes for address in node.addresses}
    for result in record.requirements:
        pods = {address: pod.node for pod in result.evidence.everybody for address in pod.addresses}
        for probe in result.evidence.probes:
            if not probe.node or not probe.target:
                continue
            match = _ADDRESS.fullmatch(probe.target)
            address = (match["six"] or match["four"]) if match else ""
            if address in hosts:
                yield result.id, probe, "NodePort of", hosts[address]
            elif address in pods:
                yield result.id, probe, "pods on", pods[address]
            elif address:
                yield result.id, probe, "elsewhere", SERVICES
            else:
                name = probe.target.rsplit(":", 1)[0]
                inside = ".svc." in name or "." not in name.rstrip(".")
                yield result.id, probe, "elsewhere", INSIDE if inside else OUTSIDE
