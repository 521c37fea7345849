#!/usr/bin/env python3
"""Write down which conformance tests each minor version of Kubernetes has, as digests of their names.

The lists come from the Go module ``k8s.io/kubernetes``, one release of each minor version. Names are known by their
digests alone: winready recognises them in a result and need not carry them.

    conformance_tests.py            writes src/winready/spec/conformance_tests.txt
    conformance_tests.py --check    says whether the releases still agree with it
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import yaml

from real_programs import BuildError, go
from winready.spec.conformance_tests import NAME, digest, minors, render

FIRST, LAST = 23, 37
LISTED = "test/conformance/testdata/conformance.yaml"
TARGET = Path(__file__).parent.parent / "src/winready/spec" / NAME


def names(release: str) -> list[str]:
    """The names of a release's conformance tests."""
    with tempfile.TemporaryDirectory(prefix="winready-conformance-") as scratch:
        (Path(scratch) / "go.mod").write_text("module winready.invalid/conformance\n")
        answer = go("mod", "download", "-json", f"k8s.io/kubernetes@{release}", cwd=Path(scratch))
    listed = yaml.load((Path(json.loads(answer)["Dir"]) / LISTED).read_bytes(), Loader=yaml.CSafeLoader)
    return [item["codename"] for item in listed]


def table(releases: Iterable[str]) -> dict[str, set[int]]:
    """Which minor versions have a test, by the digest of its name."""
    found: dict[str, set[int]] = {}
    for release in releases:
        listed = names(release)
        minor = int(release.split(".")[1])
        for name in listed:
            found.setdefault(digest(name), set()).add(minor)
        known = sum(minor in versions for versions in found.values())
        print(f"{release}: {known} tests", file=sys.stderr)
        if known != len(listed):
            raise BuildError(f"{release} lists {len(listed)} tests, and only {known} can be told apart by their names")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 when the file is not right")
    parser.add_argument("--first", type=int, default=FIRST, help="the first minor version (default: %(default)s)")
    parser.add_argument("--last", type=int, default=LAST, help="the last minor version (default: %(default)s)")
    given = parser.parse_args()
    try:
        found = table(f"v1.{minor}.0" for minor in range(given.first, given.last + 1))
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    text = render(found)
    if given.check:
        wrong = minors(text) != minors(TARGET.read_text())
        print("not what the releases list" if wrong else "as the releases list them", file=sys.stderr)
        return int(wrong)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
