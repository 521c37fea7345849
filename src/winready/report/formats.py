"""A finished run in other people's formats: for spreadsheets, pull requests and machines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence

import msgspec
import yaml

from winready.engine.outcomes import FeatureResult, RequirementResult
from winready.report import junit, record, sonobuoy, words
from winready.report.html import page
from winready.report.printable import printable
from winready.report.record import Record

COLUMNS = (
    "run", "kind", "id", "category", "level", "outcome", "reason", "next_step", "expected", "observed",
    "duration_s", "verifier", "windows_nodes", "probes", "probes_failed", "verdict",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_text(run: Record) -> str:
    """What a terminal shows of it."""
    lines = [*words.cluster_lines(run), "", *(words.result_line(item) for item in run.requirements), ""]
    return "".join(f"{printable(line)}\n" for line in [*lines, *(line for _, line in words.summary_lines(run))])


def as_csv(run: Record) -> str:
    """One row per requirement, rule, feature and workload, for spreadsheets: no cell is ever taken for a formula."""
    rows = [*(_requirement_row(run, item) for item in run.requirements), *_rule_rows(run)]
    return table(COLUMNS, [*rows, *(_feature_row(run, item) for item in run.features), *_workload_rows(run)])


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as CSV that a spreadsheet opens without running any of it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerows([_cell(value) for value in row] for row in (columns, *rows))
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str):
        value = printable(value)
        return f"'{value}" if value.lstrip(" ").startswith(_FORMULA) else value
    return value


def _requirement_row(run: Record, item: RequirementResult) -> list[object]:
    probes = item.evidence.probes
    nodes = item.evidence.windows_nodes
    return [
        run.run_id, "requirement", item.id, item.category, item.level, item.outcome, item.reason, item.next_step,
        item.expected, item.observed, item.duration_s, item.verifier, " ".join(nodes), len(probes),
        sum(not probe.ok for probe in probes), run.verdict_text,
    ]  # fmt: skip


def _rule_rows(run: Record) -> list[list[object]]:
    return [
        [run.run_id, "rule", rule.id, "", f"gates {rule.gates}", f"waived by {rule.waived_by}" if rule.waived_by
         else rule.outcome, rule.reason, "", "", "", "", "", "", "", "", run.verdict_text]
        for rule in run.rules
    ]  # fmt: skip


def _workload_rows(run: Record) -> list[list[object]]:
    return [
        [run.run_id, "workload", item.title, "", "ready" if item.ready else "not ready", item.outcome,
         words.workload_line(item), "", "", "", "", "", "", "", "", run.verdict_text]
        for item in run.workloads
    ]  # fmt: skip


def _feature_row(run: Record, item: FeatureResult) -> list[object]:
    probes = item.evidence.probes
    nodes = item.evidence.windows_nodes
    return [
        run.run_id, "feature", item.id, item.area, item.documented, item.outcome, item.reason, item.next_step,
        item.expected, item.observed, item.duration_s, item.way, " ".join(nodes), len(probes),
        sum(not probe.ok for probe in probes), run.verdict_text,
    ]  # fmt: skip


def _features_markdown(run: Record) -> list[str]:
    """What became of features: contradictions in sight, the table folded away."""
    if not run.features:
        return []
    lines = ["", f"**Features:** {escape(words.features_text(run.features))}. Advisory, not part of the verdict.", ""]
    lines += [f"- **{escape(item.id)}** {escape(item.reason)}" for item in run.features if item.contradiction]
    rows = [
        f"| {words.MARKS[item.outcome]} {item.outcome} | {escape(item.area)} | {escape(item.name)} "
        f"| {escape(item.documented)} | {item.way} | {escape(item.reason)} |"
        for item in run.features
    ]
    head = ["| outcome | area | feature | documented | shown by | |", "|---|---|---|---|---|---|"]
    summary = f"<details><summary>{len(run.features)} features of the support matrix</summary>"
    return [*lines, "", summary, "", *head, *rows, "", "</details>"]


def as_markdown(run: Record) -> str:
    """For a pull request: the verdict, what did not pass and why, everything else folded away."""
    cluster = f"Kubernetes {escape(run.cluster.version)}" if run.cluster else "the cluster could not be looked at"
    where = " on the sandbox (simulated)" if run.simulated else ""
    lines = [
        f"## {words.MARKS[{'Pass': 'passed', 'Fail': 'failed'}.get(run.verdict or '', 'blocked')]} "
        f"{escape(run.verdict_text)}",
        "",
        f"{cluster}{where}, run `{run.run_id}`, {words.duration(run.duration_s)}, {escape(run.tool)}",
        "",
    ]
    for same in words.by_reason(run.requirements):
        lines += [f"- **{escape(item.id)}** {item.outcome}" for item in same]
        lines.append(f"  - {escape(same[0].reason)}")
        if same[0].next_step:
            lines.append(f"  - next step: {escape(same[0].next_step)}")
    for rule in run.rules:
        if rule.outcome != "passed":
            waived = f" (waived by `{rule.waived_by}`)" if rule.waived_by else ""
            lines.append(f"- **{escape(rule.id)}** {rule.outcome}{waived}: {escape(rule.reason)}")
    for workload in run.workloads:
        first, *others = (escape(line) for _, line in words.workload_lines(workload))
        lines += [f"- {first}", *(f"  - {line}" for line in others)]
    lines += [f"- {escape(line)}" for line in words.not_judged_lines(run)]
    lines += [f"- left behind on the cluster: {escape(left)}" for left in run.leftovers]
    rows = [
        f"| {words.MARKS[item.outcome]} {item.outcome} | {escape(item.id)} | {words.duration(item.duration_s)} "
        f"| {escape(item.reason)} |"
        for item in run.requirements
    ]
    summary = f"<details><summary>{len(run.requirements)} requirements</summary>"
    lines += ["", summary, "", "| outcome | requirement | took | |", "|---|---|---:|---|", *rows, "", "</details>"]
    return "\n".join([*lines, *_features_markdown(run), ""])


def escape(text: str) -> str:
    """Text that stays text in Markdown: no markup, no table break, nobody is mentioned by it."""
    text = re.sub(r"\s+", " ", printable(text)).strip()
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*_\[\]|~])", r"\\\1", text)
    return re.sub(r"([@#])(?=\w)", "\\1\N{ZERO WIDTH SPACE}", text)


def as_yaml(run: Record) -> str:
    """The record as YAML."""
    return str(yaml.safe_dump(msgspec.to_builtins(run), sort_keys=False, allow_unicode=True))


FORMATS: dict[str, Callable[[Record], str]] = {
    "text": as_text,
    "html": page.render,
    "junit": junit.render,
    "csv": as_csv,
    "json": lambda run: record.encode(run).decode(),
    "yaml": as_yaml,
    "markdown": as_markdown,
    "sonobuoy": sonobuoy.render,
}
"""Formats that are one text; ``prow`` is a folder (`winready.report.prow`)."""
