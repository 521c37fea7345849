"""JUnit: one case per requirement, rule and workload, with the failure text, fit for any reader of such files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from winready.engine.outcomes import RequirementResult, RuleResult
from winready.engine.workloads import WorkloadResult
from winready.report import words
from winready.report.comparing import unjudged
from winready.report.printable import printable
from winready.report.record import Record

NAME = "junit.xml"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(record: Record, *, draft: Sequence[str] = ()) -> str:
    """The run as a JUnit document. ``draft``: what it must say that it is not."""
    cut = record.interrupted
    cases = [_requirement(item, cut=cut) for item in record.requirements]
    cases += [_rule(item, cut=cut) for item in record.rules] + [_workload(item, cut=cut) for item in record.workloads]
    if cut:
        # Told once; without it a reader that counts failures would take an interrupted run for a good one.
        said = _body("interrupted", record.verdict_text, "; ".join(record.verdict_reasons[:1]))
        cases.append(f'<testcase classname="winready" name="run" time="0.000">{said}</testcase>')
    properties = {
        "winready.run": record.run_id,
        "winready.verdict": record.verdict_text,
        "winready.tool": record.tool,
        "winready.spec": record.spec.get("digest", ""),
        "kubernetes.version": record.cluster.version if record.cluster else "",
    }
    if record.simulated:
        properties["winready.simulated"] = "true"
    if record.not_judged:
        properties["winready.not-judged"] = ", ".join(record.not_judged)
    if record.linux_not_judged:
        properties["winready.linux-not-judged"] = ", ".join(record.linux_not_judged)
    if draft:
        properties["winready.draft"] = f"not a certificate: {'; '.join(draft)}"
    counts = {
        "tests": len(cases),
        "failures": sum("<failure " in case for case in cases),
        "errors": sum("<error " in case for case in cases),
        "skipped": sum("<skipped " in case for case in cases),
    }
    attributes = " ".join(f'{name}="{value}"' for name, value in counts.items()) + f' time="{record.duration_s:.3f}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="winready" {attributes}>',
        f'<testsuite name="winready" {attributes} timestamp={_attribute(record.started)}>',
        "<properties>",
        *(f"<property name={_attribute(name)} value={_attribute(value)}/>" for name, value in properties.items()),
        "</properties>",
        *cases,
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _requirement(item: RequirementResult, *, cut: bool) -> str:
    head = f'<testcase classname={_attribute(item.category)} name={_attribute(item.id)} time="{item.duration_s:.3f}">'
    parts = [item.reason]
    for title, text in (("expected", item.expected), ("observed", item.observed), ("next step", item.next_step)):
        if text:
            parts.append(f"{title}: {text}")
    failed_probes = [f"{probe.title}: {probe.observed}" for probe in item.evidence.probes if not probe.ok]
    parts += failed_probes[:20]
    aside = item.level == "advisory" or unjudged(item.outcome, interrupted=cut)
    return head + _body(item.outcome, item.reason, "\n".join(parts), aside=aside) + "</testcase>"


def _rule(item: RuleResult, *, cut: bool) -> str:
    head = f'<testcase classname="Rules" name={_attribute(item.id)} time="0.000">'
    outcome = "passed" if item.waived_by or item.gates != "run" else item.outcome
    return head + _body(outcome, item.reason, item.reason, aside=unjudged(outcome, interrupted=cut)) + "</testcase>"


def _workload(item: WorkloadResult, *, cut: bool) -> str:
    head = f'<testcase classname="Workloads" name={_attribute(item.title)} file={_attribute(item.path)} time="0.000">'
    lines = "\n".join(line for _, line in words.workload_lines(item))
    aside = unjudged(item.outcome, interrupted=cut)
    return head + _body(item.outcome, words.workload_line(item), lines, aside=aside) + "</testcase>"


def _body(outcome: str, reason: str, text: str, *, aside: bool = False) -> str:
    if outcome == "passed":
        return f"<system-out>{_text(text)}</system-out>"
    if outcome == "not-applicable" or aside:
        return f"<skipped message={_attribute(f'{outcome}: {reason}')}/>"
    tag = "failure" if outcome == "failed" else "error"
    return f"<{tag} type={_attribute(outcome)} message={_attribute(reason)}>{_text(text)}</{tag}>"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", printable(text))


def _text(text: str) -> str:
    return escape(_clean(text))


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))
