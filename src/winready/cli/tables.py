"""``-o wide``: tables with a line for each thing, and columns for what the plain form leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from winready.cli.options import print_document, say
from winready.report.printable import printable

if TYPE_CHECKING:
    from winready.cluster.evidence import Evidence
    from winready.engine.outcomes import FeatureResult, RequirementResult, RuleResult
    from winready.engine.workloads import WorkloadResult
    from winready.lint.output.matrix import Page
    from winready.report.record import Record

WIDE = "wide"
RESULT = ("REQUIREMENT", "LEVEL", "OUTCOME", "VERIFIER", "TOOK", "PROBES", "WINDOWS NODES", "REASON")
RULE = ("RULE", "OUTCOME", "GATES", "WAIVED BY", "REASON")
FEATURE = ("FEATURE", "AREA", "OUTCOME", "WORKS", "SHOWN BY", "TOOK", "PROBES", "WINDOWS NODES", "DOCUMENTED", "REASON")
WORKLOAD = ("WORKLOAD", "READY", "FEATURES SHOWN", "MANIFEST", "REASON")


def table_text(*rows: Sequence[str]) -> str:
    """Rows in columns as wide as their widest cell, the first row being the heads; what is empty is a dash."""
    # A line break in a text of strangers would look like one more row.
    cells = [[" ".join(printable(cell).split()) or "-" for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def print_table(*rows: Sequence[str]) -> None:
    """The same on standard output."""
    say(table_text(*rows), nl=False)


def page_text(page: Page) -> Iterator[str]:
    """A page of the matrix with its tables unfolded."""
    yield f"{page.title}\n"
    if page.intro:
        yield f"\n{page.intro}\n"
    for section in page.sections:
        yield f"\n{section.title}\n"
        yield table_text([name.upper() for name in section.columns], *section.rows)


def print_record(record: Record, output: str) -> None:
    """A run for whoever asked for more than its verdict: as tables, or as a document."""
    if output == WIDE:
        say("\n".join(run_tables(record)))
    else:
        print_document(record, output)


def run_tables(record: Record) -> Iterator[str]:
    """Everything that was judged, and the verdict."""
    from winready.report.words import not_judged_lines

    parts: tuple[tuple[Sequence[str], list[tuple[str, ...]]], ...] = (
        (RESULT, [_result(each) for each in record.requirements]),
        (RULE, [_rule(each) for each in record.rules]),
        (FEATURE, [_feature(each) for each in record.features]),
        (WORKLOAD, [_workload(each) for each in record.workloads]),
    )
    yield from (table_text(heads, *rows) for heads, rows in parts if rows)
    judged = {each.id for each in record.requirements}
    if lost := [each for each in record.selected if each not in judged]:
        yield f"not judged: {', '.join(lost)}"
    yield from not_judged_lines(record)
    if record.simulated:
        yield "simulated cluster (sandbox)"
    yield record.verdict_text


def yes(value: bool | None) -> str:
    """A cell that tells whether."""
    return "" if value is None else "yes" if value else "no"


def listed(names: Iterable[str]) -> str:
    """A cell of several names."""
    return ", ".join(names)


def _result(result: RequirementResult) -> tuple[str, ...]:
    evidence = result.evidence
    took = _took(result.duration_s)
    head = (result.id, result.level, result.outcome, result.verifier, took, _probes(evidence), _nodes(evidence))
    return *head, _why(result)


def _rule(rule: RuleResult) -> tuple[str, ...]:
    return rule.id, rule.outcome, rule.gates, rule.waived_by or "", rule.reason


def _feature(result: FeatureResult) -> tuple[str, ...]:
    evidence = result.evidence
    shown_by = listed([*result.requirements, *result.tests]) or result.way
    head = (result.id, result.area, result.outcome, yes(result.works), shown_by, _took(result.duration_s))
    return *head, _probes(evidence), _nodes(evidence), result.documented, _why(result)


def _workload(result: WorkloadResult) -> tuple[str, ...]:
    from winready.report.words import workload_reason

    shown = f"{result.shown} of {len(result.features)}"
    return result.title, yes(result.ready), shown, f"{result.path}:{result.line}", workload_reason(result)


def _why(result: RequirementResult | FeatureResult) -> str:
    """Why it came out so, and what to do, in the one column of free text."""
    next_step = f"next step: {result.next_step}" if result.next_step else ""
    contradiction = "" if result.outcome == "passed" else getattr(result, "contradiction", "")
    return "; ".join(filter(None, (result.reason, contradiction, next_step)))


def _took(seconds: float) -> str:
    from winready.report.words import duration

    return duration(seconds) if seconds else ""


def _probes(evidence: Evidence) -> str:
    """How many questions were answered as they should be, of how many."""
    counted = sum(evidence.counted.values())
    good, total = sum(probe.ok for probe in evidence.probes) + counted, len(evidence.probes) + counted
    return f"{good}/{total}" if total else ""


def _nodes(evidence: Evidence) -> str:
    from winready.report.folding import ranges

    return ranges(evidence.windows_nodes)
