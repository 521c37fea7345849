"""Linux conformance, imported from the JUnit file or the Sonobuoy archive of somebody else's run.

Such a file comes from elsewhere: it is read without extracting anything, in bounded memory, and without the parts of
XML that can name other files or grow without end.
"""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path
from typing import IO, BinaryIO
from xml.parsers import expat

from winready.engine.outcomes import Judged
from winready.engine.terms import Conformance

MARK = "[Conformance]"
MOST_BYTES = 64 * 2**20
LARGEST_ARCHIVE = 2**30
MOST_MEMBERS = 50_000
LEAST_TESTS = 300
"""Every supported version of Kubernetes has more conformance tests than this; fewer are a selection."""
FAILURES_NAMED = 3


class ConformanceError(ValueError):
    """The file cannot be used as a conformance result; the message says why."""


def judge_conformance(given: Conformance | None) -> Judged:
    """The outcome of the rule."""
    if given is None:
        return "blocked", "absent: no result of Linux conformance was given (--linux-conformance FILE)"
    ran = given.passed + len(given.failed)
    if given.failed:
        names = "; ".join(given.failed[:FAILURES_NAMED])
        return "failed", f"{len(given.failed)} of {ran} conformance tests failed in {given.source}: {names}"
    if ran < LEAST_TESTS:
        return "blocked", f"{given.source} has only {ran} conformance tests, which is not the whole of them"
    return "passed", f"all {ran} conformance tests passed in {given.source}"


def read_conformance(path: Path) -> Conformance:
    """Read a JUnit file or a Sonobuoy archive; raises `ConformanceError`."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            documents = _archived(file) if packed else [_bounded(file, MOST_BYTES)]
    except OSError as error:
        raise ConformanceError(f"cannot be read: {error.strerror or error}") from None
    except (tarfile.TarError, EOFError) as error:
        raise ConformanceError(f"is no archive that can be read: {error}") from None
    if not documents:
        raise ConformanceError("holds no JUnit result of plugin e2e (plugins/e2e/results/**/junit*.xml)")
    passed: set[str] = set()
    failed: dict[str, None] = {}
    for document in documents:
        for name, outcome in _tests(document):
            (passed.add if outcome else failed.setdefault)(name)
    if not passed and not failed:
        raise ConformanceError(f"names no test with {MARK} that was run")
    # A test that was repeated until it passed has failed.
    return Conformance(
        source=path.name.encode(errors="replace").decode(), passed=len(passed - set(failed)), failed=list(failed)
    )


def _archived(file: BinaryIO) -> list[bytes]:
    documents = []
    room, size = MOST_BYTES, 0
    with gzip.GzipFile(fileobj=file) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for number, member in enumerate(archive):
            size += member.size
            if number >= MOST_MEMBERS or size > LARGEST_ARCHIVE:
                raise ConformanceError("is larger than any archive of Sonobuoy")
            parts = Path(member.name).parts
            name = parts[-1] if parts else ""
            inside = "plugins" in parts and "e2e" in parts[parts.index("plugins") :]
            if not member.isfile() or not inside or not name.startswith("junit") or not name.endswith(".xml"):
                continue
            content = archive.extractfile(member)
            if content is not None:
                documents.append(_bounded(content, room))
                room -= len(documents[-1])
    return documents


def _bounded(file: IO[bytes], most: int) -> bytes:
    data = file.read(most + 1)
    if len(data) > most:
        raise ConformanceError(f"holds more than {MOST_BYTES // 2**20} MiB of results")
    return data


def _tests(document: bytes) -> list[tuple[str, bool]]:
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
            name = inside.pop().get("name") or ""
            if MARK in name and "skipped" not in marks:
                found.append((name, not marks & {"failure", "error"}))

    def refuse(*_: object) -> None:
        raise ConformanceError("has a document type definition, which no test result needs")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        raise ConformanceError(f"is neither JUnit XML nor a Sonobuoy archive: {error}") from None
    return found
