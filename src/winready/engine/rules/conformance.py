"""Linux conformance, imported from the JUnit file or the Sonobuoy archive of somebody else's run.

Such a file comes from elsewhere: it is read without extracting anything, in bounded memory, and without the parts of
XML that can name other files or grow without end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from winready.engine.outcomes import Judged
from winready.engine.terms import Conformance
from winready.spec.archives import ArchiveError, open_archive
from winready.spec.conformance_tests import conformance_tests, digest
from winready.spec.versions import Version

MARK = "[Conformance]"
PIECE = 64 * 1024
MOST_BYTES = 64 * 2**20
MOST_TESTS = 5_000
"""No version of Kubernetes has a tenth of it."""
LONGEST_NAME = 1_000
"""Kubernetes' own stay below half of it."""
NAMED, LONGEST_SHOWN = 3, 200
TOO_MUCH = f"holds more than {MOST_BYTES // 2**20} MiB of results"


class ConformanceError(ValueError):
    """The file cannot be used as a conformance result; the message says why."""


def judge_conformance(given: Conformance | None, version: str) -> Judged:
    """The outcome of the rule for a cluster of this version: exactly the tests of its minor version ran and passed."""
    if given is None:
        return "blocked", "absent: no result of Linux conformance was given (--linux-conformance FILE)"
    if given.failed:
        names = "; ".join(given.failed[:NAMED])
        total = given.passed + len(given.failed)
        return "failed", f"{len(given.failed)} of {total} conformance tests failed in {given.source}: {names}"
    if given.tests is None:
        return "blocked", f"it is not known which tests {given.source} names; give it again (--linux-conformance FILE)"
    known = conformance_tests()
    minor = _minor(version)
    if minor not in known:
        span = f"1.{min(known)} to 1.{max(known)}"
        return "blocked", f"this winready knows the conformance tests of Kubernetes {span}, not those of {version}"
    ran, wanted = frozenset(given.tests), known[minor]
    if lack := _misfit(given, ran, wanted, minor):
        return "blocked", lack
    return "passed", f"all {len(wanted)} conformance tests of Kubernetes 1.{minor} passed in {given.source}"


def _misfit(given: Conformance, ran: frozenset[str], wanted: frozenset[str], minor: int) -> str:
    """Why these are not the conformance tests of that version; empty when they are."""
    known = conformance_tests()
    if invented := len(ran - frozenset().union(*known.values())):
        names = "; ".join(given.strangers[:NAMED])
        return f"{invented} of {len(ran)} tests in {given.source} are none of Kubernetes' conformance tests: {names}"
    if ran - wanted:
        fits = [f"1.{other}" for other, tests in known.items() if ran <= tests]
        of = f", it is one of {' or '.join(fits)}" if fits else ""
        return (
            f"{given.source} is no result of Kubernetes 1.{minor}, which does not have {len(ran - wanted)} of its "
            f"{len(ran)} tests{of}; run the conformance tests of the cluster's own version"
        )
    if ran != wanted:
        return (
            f"{given.source} has {len(ran)} of the {len(wanted)} conformance tests of Kubernetes 1.{minor}, which is "
            "not the whole of them"
        )
    return ""


def _minor(version: str) -> int:
    try:
        found = Version.parse(version)
    except ValueError:
        return -1
    return found.minor if found.major == 1 else -1


def read_conformance(path: Path) -> Conformance:
    """Read a JUnit file or a Sonobuoy archive; raises `ConformanceError`."""
    passed, failed = _outcomes(path)
    ran = {digest(name): name for name in [*sorted(passed), *failed]}
    known = frozenset().union(*conformance_tests().values())
    # A test that was repeated until it passed has failed.
    return Conformance(
        source=path.name.encode(errors="replace").decode(),
        passed=len(passed - set(failed)),
        failed=list(failed),
        tests=sorted(ran),
        strangers=[name[:LONGEST_SHOWN] for each, name in ran.items() if each not in known][:NAMED],
    )


def shortened(path: Path) -> str:
    """The same result as a JUnit document that is small enough to travel; raises `ConformanceError`."""
    passed, failed = _outcomes(path)
    lines = [f"<testcase name={quoteattr(name)}/>" for name in sorted(passed - set(failed))]
    lines += [f"<testcase name={quoteattr(name)}><failure/></testcase>" for name in failed]
    return "\n".join(["<testsuite>", *lines, "</testsuite>", ""])


def _outcomes(path: Path) -> tuple[set[str], dict[str, None]]:
    """The tests that passed and those that failed, if only once."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            # A plain file is read piece by piece: with all that tests print it may be larger than memory.
            found = [] if packed else list(_tests(_pieces(file)))
    except OSError as error:
        raise ConformanceError(f"cannot be read: {error.strerror or error}") from None
    if packed:
        documents = _archived(path)
        if not documents:
            raise ConformanceError("holds no JUnit result of plugin e2e (plugins/e2e/results/**/junit*.xml)")
        found = [test for document in documents for test in _tests([document])]
    passed: set[str] = set()
    failed: dict[str, None] = {}
    for name, outcome in found:
        (passed.add if outcome else failed.setdefault)(name)
    if not passed and not failed:
        raise ConformanceError(f"names no test with {MARK} that was run")
    if len(passed) + len(failed) > MOST_TESTS:
        raise ConformanceError(f"names more than {MOST_TESTS} tests with {MARK}; no version of Kubernetes has so many")
    return passed, failed


def _archived(path: Path) -> list[bytes]:
    documents: list[bytes] = []
    try:
        with open_archive(path) as archive:
            for name, member in archive:
                folders, _, file = name.rpartition("/")
                inside = f"/{folders}/".partition("/plugins/")[2].startswith("e2e/")
                if member.isdir() or not inside or not (file.startswith("junit") and file.endswith(".xml")):
                    continue
                documents.append(archive.content(name, member, MOST_BYTES))
                if sum(map(len, documents)) > MOST_BYTES:
                    raise ConformanceError(TOO_MUCH)
    except ArchiveError as error:
        raise ConformanceError(str(error)) from None
    return documents


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    read = 0
    while piece := file.read(PIECE):
        read += len(piece)
        if read > MOST_BYTES:
            raise ConformanceError(TOO_MUCH)
        yield piece


def _tests(document: Iterable[bytes]) -> list[tuple[str, bool]]:
    """Name and outcome of the conformance tests that were run."""
    found: list[tuple[str, bool]] = []
    inside: list[dict[str, str]] = []
    marks: set[str] = set()

    def begin(tag: str, attributes: dict[str, str]) -> None:
        if tag == "testcase":
            inside.append(attributes)
            marks.clear()
        elif inside:
            marks.add(tag)

    def end(tag: str) -> None:
        if tag == "testcase" and inside:
            name = (inside.pop().get("name") or "")[:LONGEST_NAME]
            if MARK in name and "skipped" not in marks:
                found.append((name, not marks & {"failure", "error"}))

    def refuse(*_: object) -> None:
        raise ConformanceError("has a document type definition, which no test result needs")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.StartDoctypeDeclHandler = refuse
    try:
        for piece in document:
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except ConformanceError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:
        # An encoding that nobody knows is none of expat's errors.
        raise ConformanceError(f"is neither JUnit XML nor a Sonobuoy archive: {error}") from None
    return found
