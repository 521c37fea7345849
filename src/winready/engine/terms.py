"""What the operator decided about the rules of a run."""

from __future__ import annotations

import msgspec

from winready.engine import defaults
from winready.spec.builds import BuildList, load_builds

SMALL_CLUSTER = "--allow-small-cluster"


class Conformance(msgspec.Struct, frozen=True, kw_only=True):
    """What an imported result of Linux conformance says."""

    source: str
    passed: int
    failed: list[str]
    tests: list[str] | None = None
    """Digests of the names of all tests that ran; None in a record from before they were written down."""
    strangers: list[str] = []
    """Some of the names that no version of Kubernetes has."""


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the operator decided about the rules."""

    windows_builds: BuildList = defaults.WINDOWS_BUILDS
    builds_taken: str = ""
    """The day on which that list of builds was taken from its text."""
    waived: list[str] = []
    """Flags that were given to waive rules."""
    conformance: Conformance | None = None
    images: list[str] = []
    """What Windows pods may run, without tags."""

    def stated(self, images: list[str]) -> Terms:
        """The terms as a run writes them down, so that anyone can judge by them again."""
        taken = load_builds().lists[self.windows_builds].taken
        return msgspec.structs.replace(self, builds_taken=taken, images=images)
