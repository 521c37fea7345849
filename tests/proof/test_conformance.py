"""The result of Linux conformance that a broken cluster would have left."""

from __future__ import annotations

from winready.engine.rules.conformance import judge_conformance
from winready.proof.conformance import conformance_result
from winready.proof.expected.table import expected


def test_it_is_imported_from_a_file_that_shows_the_fault() -> None:
    assert judge_conformance(conformance_result(()))[0] == "passed"
    failed = expected("volumes.linux.updates-never-arrive").conformance
    outcome, reason = judge_conformance(conformance_result(failed))
    assert outcome == "failed"
    assert failed[0] in reason
