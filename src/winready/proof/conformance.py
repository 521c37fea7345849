"""Linux conformance of the sandbox itself, as Kubernetes' own tests measured it: no result is made up.

``tools/fidelity.py`` ran all conformance tests of one Kubernetes version on the sandbox's Linux nodes and wrote down
what came of them, once for sound nodes and once for each fault that such tests must notice.
"""

from __future__ import annotations

import functools
from importlib import resources

import msgspec

from winready.engine.rules.conformance import read_conformance
from winready.engine.terms import Conformance

MINOR = 36
"""The version of Kubernetes whose tests were run."""
FOLDER = "records"
SOUND = "sound"


@functools.cache
def measured(name: str) -> Conformance:
    """What ``--linux-conformance`` reads from a record: that of sound nodes, or of nodes with a fault."""
    found = resources.files("winready.proof").joinpath(FOLDER, f"{name}.xml")
    with resources.as_file(found) as path:
        return read_conformance(path)


def conformance_result(fault: str = "") -> Conformance:
    """The record of a cluster: all tests on sound nodes, and in their place those that were run with the fault."""
    sound = measured(SOUND)
    if not fault:
        return sound
    broken = measured(fault)
    # Of a broken cluster only the tests were run that its fault concerns.
    return msgspec.structs.replace(sound, passed=sound.passed - len(broken.failed), failed=broken.failed)
