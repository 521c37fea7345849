"""Products side by side: requirements by category, a column for each product and version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from winready.report.comparing import NOT_JUDGED, NOT_SELECTED, unjudged
from winready.report.meaning import headline
from winready.report.record import Record
from winready.spec.loader import load_standard

RULES = "Rules of the run"
WAIVED = "waived"


class Product(NamedTuple):
    """A run, and what it is shown as."""

    name: str
    run: Record
    draft: bool = False
    """Whether it comes from a bundle that is no certificate."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A product in one version."""

    name: str
    kubernetes: str
    windows: list[str]
    verdict: str
    """As people read it, with how much of the standard it is about."""
    state: str
    """pass, fail, or none where there is no verdict."""
    run_id: str
    started: str
    tool: str
    marks: list[str]
    """What keeps it from being compared with the others: partial, sandbox, interrupted, time scale, draft."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement or rule in all columns."""

    id: str
    category: str
    level: str
    outcomes: list[str]
    """An outcome, ``not selected``, ``not judged`` or ``waived``, for each column."""
    reasons: list[str]
    """Why it did not pass; empty where it did."""


class Products(msgspec.Struct, frozen=True, kw_only=True):
    """The table."""

    columns: list[Column]
    rows: list[Row]
    """By category, in the order of the standard; rules come first."""
    notes: list[str]

    @property
    def groups(self) -> list[tuple[str, list[Row]]]:
        """Rows by category."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.category, []).append(row)
        return list(found.items())


def make_products(products: Sequence[Product]) -> Products:
    """The table of these products, in their order."""
    runs = [product.run for product in products]
    return Products(
        columns=[_column(product) for product in products],
        rows=[*_rules(runs), *_requirements(runs)],
        notes=_notes(runs),
    )


def name_of(run: Record) -> str:
    """What a product is called that nobody named: its cluster."""
    if run.cluster is None:
        return "no cluster"
    return "sandbox" if run.settings.get("sandbox") is True else run.cluster.server.removeprefix("https://")


def _column(product: Product) -> Column:
    run = product.run
    nodes = run.cluster.nodes if run.cluster else []
    judged = run.verdict is not None and not run.interrupted
    return Column(
        name=product.name or name_of(run),
        kubernetes=run.cluster.version if run.cluster else "",
        windows=sorted({node.build for node in nodes if node.windows and node.build}),
        verdict=headline(run),
        state="none" if not judged else "pass" if run.verdict == "Pass" else "fail",
        run_id=run.run_id,
        started=run.started,
        tool=run.tool,
        marks=_marks(product),
    )


def _marks(product: Product) -> list[str]:
    run = product.run
    found = (
        ("draft", product.draft),
        ("sandbox", run.simulated),
        ("interrupted", run.interrupted),
        ("partial", run.scope == "partial"),
        ("time scale", run.time_scale != 1 and not run.simulated),
        ("not all nodes", bool(run.not_judged)),
    )
    return [name for name, so in found if so]


def _requirements(runs: Sequence[Record]) -> Iterable[Row]:
    standard = {item.id: item for item in load_standard().requirements}
    found = [{item.id: item for item in run.requirements} for run in runs]
    said = {item.id: (item.category, item.level) for run in runs for item in run.requirements}
    for name in [*(name for name in standard if name in said), *sorted(set(said) - set(standard))]:
        outcomes, reasons = [], []
        for run, items in zip(runs, found, strict=True):
            item = items.get(name)
            if item is None:
                outcome, reason = NOT_SELECTED, ""
            elif unjudged(item.outcome, interrupted=run.interrupted):
                outcome, reason = NOT_JUDGED, ""
            else:
                outcome, reason = item.outcome, "" if item.outcome == "passed" else item.reason
            outcomes.append(outcome)
            reasons.append(reason)
        category, level = said[name]
        yield Row(id=name, category=category or "Others", level=level, outcomes=outcomes, reasons=reasons)


def _rules(runs: Sequence[Record]) -> Iterable[Row]:
    """Those that a verdict looks at."""
    found = [{rule.id: rule for rule in run.rules if rule.gates == "run"} for run in runs]
    for name in dict.fromkeys(name for rules in found for name in rules):
        outcomes, reasons = [], []
        for run, rules in zip(runs, found, strict=True):
            rule = rules.get(name)
            if rule is None or unjudged(rule.outcome, interrupted=run.interrupted):
                outcomes.append(NOT_JUDGED)
                reasons.append("")
            else:
                outcomes.append(WAIVED if rule.waived_by else rule.outcome)
                reasons.append("" if rule.outcome == "passed" else rule.reason)
        yield Row(id=name, category=RULES, level="rule", outcomes=outcomes, reasons=reasons)


def _notes(runs: Sequence[Record]) -> list[str]:
    """What makes columns less comparable than they look."""
    notes = []
    if len({run.spec.get("digest") for run in runs}) > 1:
        notes.append("the runs follow different texts of the standard")
    if len(tools := sorted({run.tool for run in runs})) > 1:
        notes.append(f"made by {', '.join(tools)}")
    return notes
