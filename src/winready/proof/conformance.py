"""A result of Linux conformance, as a cluster with a certain fault would have left it."""

from __future__ import annotations

from collections.abc import Collection

from winready.engine.terms import Conformance
from winready.spec.conformance_tests import conformance_tests


def conformance_result(failed: Collection[str], minor: int) -> Conformance:
    """All tests of this minor version ran, and all but these passed; what ``--linux-conformance`` would have read."""
    tests = conformance_tests()[minor]
    return Conformance(source="junit_01.xml", passed=len(tests) - len(failed), failed=list(failed), tests=sorted(tests))
