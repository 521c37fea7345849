"""The specification folders of op-readiness: its ``spec.yaml`` files read, checked and run with our rules.

There a test case is a description and patterns; whatever matches is run, also when nothing does. Here a case is a
requirement, the patterns are resolved against the very binary, and each defect of a case is said.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from winready.spec import yamlfile
from winready.spec.loader import SpecificationError, load_standard
from winready.spec.mistakes import Finding, Mistake, check_shape
from winready.spec.model import Category, Document, Level, Needs, Requirement, Source, Specification
from winready.spec.versions import Version
from winready.upstream.flags import SUITE
from winready.upstream.listing import Listing, key, plain
from winready.upstream.mapping import Coverage, Mapping, Placement, Test, load_mapping
from winready.upstream.patterns import Pattern, PatternError

FILE = "spec.yaml"
MOST_SPECS = 200
_EVERY_VERSION = "1.0-1.999"


class TestCase(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One case as it is written."""

    __test__ = False

    description: str
    focus: list[str]
    skip: list[str] = []
    kubernetes_versions: list[str] = []
    skip_providers: list[str] = []


class File(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A ``spec.yaml`` as it is written."""

    category: str
    test_cases: list[TestCase] | None = None


@dataclass(frozen=True)
class Case:
    """A case and where it stands."""

    requirement: str
    description: str
    focus: tuple[str, ...]
    skip: tuple[str, ...]
    versions: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class Folder:
    """A whole folder of them."""

    specification: Specification
    cases: dict[str, Case]
    notes: list[str]


def read_folder(folder: Path, provider: str) -> Folder:
    """Every ``spec.yaml`` below a folder; raises `SpecificationError` with all mistakes of all files."""
    paths = sorted(folder.rglob(FILE)) if folder.is_dir() else []
    if not paths:
        raise SpecificationError([Mistake(str(folder), 1, 1, f"there is no {FILE} in this folder or below it")])
    mistakes: list[Mistake] = []
    cases: dict[str, Case] = {}
    categories: dict[str, Category] = {}
    notes: list[str] = []
    digest = hashlib.sha256()
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError as error:
            mistakes.append(Mistake(str(path), 1, 1, f"cannot be read: {error.strerror}"))
            continue
        digest.update(data)
        file, places = _read(path, data, mistakes)
        if file is None:
            continue
        category = _category(file.category)
        categories.setdefault(category.name, category)
        if not file.test_cases:
            notes.append(f"{path}: category {category.name} has no test case")
        for item, place in zip(file.test_cases or [], places, strict=False):
            if provider.casefold() in (name.casefold() for name in item.skip_providers):
                notes.append(f"{place}: left out for provider {provider}: {item.description}")
                continue
            name = _unique(f"{category.name.casefold()}.{_slug(item.description)}", cases)
            skip = tuple(text for text in item.skip if text)
            versions = tuple(item.kubernetes_versions)
            cases[name] = Case(name, item.description, tuple(item.focus), skip, versions, place)
    if mistakes:
        raise SpecificationError(mistakes)
    return Folder(_specification(cases, categories, f"sha256:{digest.hexdigest()}"), cases, notes)


def _read(path: Path, data: bytes, mistakes: list[Mistake]) -> tuple[File | None, list[str]]:
    name = str(path)
    try:
        documents = list(yamlfile.read(yamlfile.decode(data)))
    except yamlfile.YamlError as error:
        mistakes.append(Mistake(name, error.line, error.column, error.problem))
        return None, []
    broken = [item for item in documents if isinstance(item, yamlfile.YamlError)]
    found = [Mistake(name, item.line, item.column, item.problem) for item in broken]
    readable = [item for item in documents if isinstance(item, yamlfile.Document)]
    if not found and len(readable) != 1:
        found.append(Mistake(name, 1, 1, f"expected one document, found {len(readable)}"))
    if found:
        mistakes += found
        return None, []
    source = readable[0]
    for finding in [*check_shape(source.value, File), *_patterns(source.value)]:
        entry = source.nearest(finding.path)
        found.append(Mistake(name, *source.text.position(entry.key), finding.message))
    if found:
        mistakes += found
        return None, []
    file = msgspec.convert(source.value, File)
    lines = [
        source.text.position(source.nearest(("testCases", index)).value)[0]
        for index in range(len(file.test_cases or []))
    ]
    return file, [f"{name}:{line}" for line in lines]


def _patterns(raw: Any) -> Iterator[Finding]:
    """Patterns that are none, and the one that selects everything."""
    cases = raw.get("testCases") if isinstance(raw, dict) else None
    for index, case in enumerate(cases if isinstance(cases, list) else []):
        for field in ("focus", "skip"):
            texts = case.get(field) if isinstance(case, dict) else None
            for number, text in enumerate(texts if isinstance(texts, list) else []):
                where = ("testCases", index, field, number)
                if not isinstance(text, str):
                    continue
                if field == "focus" and not text.strip():
                    yield Finding(where, "an empty focus selects every test there is; name one")
                try:
                    Pattern(text)
                except PatternError as error:
                    yield Finding(where, f"{text[:200]!r} is not a regular expression: {error}")
        if isinstance(case, dict) and case.get("focus") == []:
            yield Finding(("testCases", index, "focus"), "a case without focus selects every test there is; name one")


def _category(text: str) -> Category:
    """One of the standard's categories in any letter case, or one of its own."""
    for known in load_standard().document.categories:
        if text.casefold() in (name.casefold() for name in (known.name, *known.aliases)):
            return known
    level: Level = "core" if text.casefold().startswith("core") else "extension"
    return Category(name=text, level=level, title=text)


def _slug(text: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")
    return words[:56].rstrip("-") or "case"


def _unique(name: str, taken: dict[str, Case]) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def _specification(cases: dict[str, Case], categories: dict[str, Category], digest: str) -> Specification:
    requirements = [
        Requirement(
            id=case.requirement,
            key=f"T{number}",
            category=next(name for name in categories if case.requirement.startswith(f"{name.casefold()}.")),
            statement=case.description,
            sources=["op-readiness"],
            kubernetes=">=1.0",
            needs=Needs(windows=1),
            verifiers=["upstream"],
        )
        for number, case in enumerate(cases.values(), 1)
    ]
    document = Document(
        schema="winready-spec/1",
        version="op-readiness",
        sources={"op-readiness": Source(title="a folder of op-readiness test cases", kubernetes=">=1.0")},
        categories=list(categories.values()),
        requirements=requirements,
        rules=load_standard().rules,
    )
    return Specification(document, digest)


def resolve(cases: dict[str, Case], listing: Listing, version: Version) -> tuple[Mapping, dict[str, str]]:
    """The cases as a mapping for one binary, and per case what keeps it from proving anything."""
    known = load_mapping()
    tests: dict[str, Test] = {}
    requirements: dict[str, Coverage] = {}
    complaints: dict[str, str] = {}
    for name, case in cases.items():
        if case.versions and str(version) not in {_minor(text) for text in case.versions}:
            complaints[name] = f"{case.place}: it is for Kubernetes {', '.join(case.versions)} only"
            continue
        texts = matches(case, listing)
        if not texts:
            complaints[name] = f"{case.place}: its focus {case.focus[0]!r} selects no test of {listing.source}"
        elif len(texts) > MOST_SPECS:
            complaints[name] = f"{case.place}: its focus {case.focus[0]!r} selects {len(texts)} tests; name one"
        elif linux := [(text, why) for text in texts if (why := linux_only(text, known))]:
            complaints[name] = f"{case.place}: it selects a test for Linux only ({linux[0][1]}): {linux[0][0]!r}"
        else:
            for text in texts:
                tests[text] = _test(text, known, version)
            requirements[name] = Coverage(proofs=[texts])
    return (
        Mapping(
            schema="winready-upstream/1",
            kubernetes=_EVERY_VERSION,
            tests=tests,
            requirements=requirements,
            linux_only=known.linux_only,
        ),
        complaints,
    )


def matches(case: Case, listing: Listing) -> list[str]:
    """The texts that a case selects: ginkgo puts the name of the suite before them."""
    focus = [Pattern(text) for text in case.focus]
    skip = [Pattern(text) for text in case.skip]
    found = []
    for text in listing.texts:
        whole = f"{SUITE} {text}"
        if any(pattern.found_in(whole) for pattern in focus) and not any(pattern.found_in(whole) for pattern in skip):
            found.append(text)
    return list(dict.fromkeys(found))


def counted_twice(cases: dict[str, Case], listing: Listing) -> list[str]:
    """Tests that several cases rest on, in words."""
    users: dict[str, list[Case]] = {}
    for case in cases.values():
        for text in matches(case, listing):
            users.setdefault(text, []).append(case)
    return [
        f"{', '.join(case.place for case in several)}: one test counts for {len(several)} cases: {text!r}"
        for text, several in users.items()
        if len(several) > 1
    ]


def linux_only(text: str, known: Mapping) -> str:
    """Why a test can say nothing about Windows, by its tag or by what it does; empty when it can."""
    if "[LinuxOnly]" in text:
        return "it is tagged LinuxOnly"
    return next((why for item, why in known.linux_only.items() if key(item) == key(text)), "")


def _test(text: str, known: Mapping, version: Version) -> Test:
    """What is known of a spec; of others only that those of SIG Windows place their pods themselves."""
    at = known.nearest_version(version)
    for test in known.tests.values():
        if (mine := test.text(at)) is not None and plain(mine) == text:
            return msgspec.structs.replace(test, texts={_EVERY_VERSION: text}, skipped_always="")
    placement: Placement = "pinned" if text.startswith("[sig-windows]") else "steered"
    return Test(texts={_EVERY_VERSION: text}, placement=placement, images=[])


def _minor(text: str) -> str:
    try:
        return str(Version.parse(text))
    except ValueError:
        return text
