"""Workloads in every form of a report: told in full, and whatever a manifest is called stays text."""

from __future__ import annotations

import csv
import io
from typing import Any
from xml.etree import ElementTree

import pytest

from report import samples
from winready.engine.workloads import FeatureUse, FieldFinding, Step, WorkloadResult
from winready.report import words
from winready.report.formats import FORMATS
from winready.report.record import Record

HOSTILE = "=cmd|' /C calc'!A0<script>alert(1)</script>\x1b[31m"


def result(**more: Any) -> WorkloadResult:
    """A workload that is not ready, for three reasons."""
    uses = [
        FeatureUse(id="probes", outcome="passed", reason="shown", path="a.yaml", line=3, field="f"),
        FeatureUse(id="hpa", outcome="not-applicable", reason="by data", path="a.yaml", line=4, by_data=True),
        FeatureUse(
            id="gmsa", outcome="failed", reason="not there", path="a.yaml", line=5, field="g", nodes=["windows-1"]
        ),
    ]
    finding = FieldFinding(rule="pod-host-pid", severity="error", effect="rejected", path="a.yaml", line=6, reason="no")
    step = Step(node="windows-2", reached="pulled", outcome="failed", reason="gone", differs=["without priority"])
    given = {"kind": "Deployment", "namespace": "shop", "name": "web", "path": "a.yaml", "line": 1, **more}
    return WorkloadResult(ready=False, outcome="failed", features=uses, findings=[finding], tried=[step], **given)


def run(*workloads: WorkloadResult) -> Record:
    record = samples.make_record()
    record.workloads = list(workloads)
    return record


def test_a_workload_in_words() -> None:
    head, use, field, step = (line for _, line in words.workload_lines(result()))
    assert head == (
        "✗ web (Deployment shop/web): not ready; 1 of 3 features it uses were shown, 1 only documented (hpa)"
    )
    assert use.strip() == "gmsa failed on windows-1, needed at a.yaml:5 (g): not there"
    assert field.strip() == "error at a.yaml:6 (pod-host-pid): no"
    assert step.strip() == "tried on windows-2: pulled: gone (tried with: without priority)"


@pytest.mark.parametrize("form", ["html", "markdown", "junit", "yaml", "json"])
def test_every_form_tells_what_is_missing_and_where(form: str) -> None:
    told = FORMATS[form](run(result()))
    for word in ("web", "gmsa", "windows-1", "pod-host-pid", "windows-2", "without priority"):
        assert word in told.replace("\\_", "_"), (form, word)


def test_a_hostile_name_stays_text() -> None:
    record = run(result(name=HOSTILE, path=HOSTILE))
    page = FORMATS["html"](record)
    assert "<script>alert" not in page
    ElementTree.fromstring(FORMATS["junit"](record))
    assert "<script>" not in FORMATS["markdown"](record)
    for row in csv.reader(io.StringIO(FORMATS["csv"](record))):
        assert not any(cell.startswith("=") for cell in row)


def test_a_run_without_workloads_says_nothing_of_them() -> None:
    assert 'id="workloads"' not in FORMATS["html"](run())
