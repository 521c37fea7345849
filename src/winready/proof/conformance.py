"""A result of Linux conformance, as a cluster with a certain fault would have left it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from winready.engine.rules.conformance import LEAST_TESTS, read_conformance
from winready.engine.terms import Conformance


def conformance_result(failed: Iterable[str]) -> Conformance:
    """All tests passed but these; written, and read as ``--linux-conformance`` reads it."""
    suite = ElementTree.Element("testsuite", name="Kubernetes e2e suite")
    for number in range(LEAST_TESTS):
        ElementTree.SubElement(suite, "testcase", name=f"[It] a test that passed, number {number} [Conformance]")
    for name in failed:
        case = ElementTree.SubElement(suite, "testcase", name=f"[It] {name}")
        ElementTree.SubElement(case, "failure", type="failed")
    with tempfile.TemporaryDirectory(prefix="winready-proof-") as folder:
        path = Path(folder) / "junit_01.xml"
        ElementTree.ElementTree(suite).write(path)
        return read_conformance(path)
