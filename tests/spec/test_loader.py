"""The standard as data, and every mistake in a specification file at its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from winready.checks.registry import load_checks
from winready.spec.loader import SpecificationError, json_schema, load_standard, parse
from winready.spec.versions import Version, VersionRange

STANDARD = Path(__file__).parents[2] / "src/winready/spec/standard.yaml"


def test_the_standard_has_46_requirements_in_9_categories_and_6_rules() -> None:
    standard = load_standard()
    assert len(standard.requirements) == 46
    assert len(standard.document.categories) == 9
    assert len(standard.rules) == 6
    assert sum(1 for item in standard.requirements if standard.level(item) == "core") == 24


def test_what_the_standard_says_is_verified_natively_is_what_has_a_check() -> None:
    declared = {item.id for item in load_standard().requirements if "native" in item.verifiers}
    assert declared == set(load_checks())


def test_ten_mistakes_are_all_reported_with_their_lines() -> None:
    text = STANDARD.read_text()
    broken = (
        text.replace('version: "1.0"', "version: 1.0")
        .replace("level: core", "level: cor", 1)
        .replace("category: Core.Network", "category: Core.Netwrk", 1)
        .replace('kubernetes: ">=1.23"', 'kubernetes: ">=x"', 1)
        .replace("key: N2", "key: N1")
        .replace("statement: A Windows container reaches Linux pods through a NodePort.", "statment: x")
        .replace("needs: {linux: 1, windows: 1}", "needs: {linux: -1, windows: 1}", 1)
        .replace("sources: [draft, published]", "sources: [draft, publised]", 1)
        .replace("verifiers: [native]", "verifiers: [nativ]", 1)
        .replace("gates: certificate", "gates: certificates")
    )
    with pytest.raises(SpecificationError) as caught:
        parse(broken.encode(), "mine.yaml")
    messages = [str(mistake) for mistake in caught.value.mistakes]
    assert len(messages) == 11  # the misspelt key is both unknown and missing
    for message in messages:
        line = int(re.match(r"mine\.yaml:(\d+):\d+: ", message)[1])  # type: ignore[index]
        assert 1 <= line <= len(broken.splitlines())
    together = "\n".join(messages)
    for hint in ("'core'", "'Core.Network'", "'statement'", "'published'", "'native'", "'certificate'"):
        assert f"did you mean {hint}?" in together


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x00\x01", "binary"),
        (b"a: [", "line"),
        (b"", "expected one document"),
        (b"a: 1\n---\nb: 2\n", "expected one document"),
        (b"[]", "expected a map"),
    ],
)
def test_files_that_are_no_specification_are_refused_in_words(content: bytes, problem: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        parse(content, "x.yaml")
    assert str(caught.value).startswith("x.yaml:")


def test_the_schema_describes_the_standard() -> None:
    import jsonschema
    import yaml

    jsonschema.validate(yaml.safe_load(STANDARD.read_text()), json_schema())


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">=1.23", "1.37", "1.22"),
        ("<=1.30", "1.30", "1.31"),
        ("1.24-1.26", "v1.25.3-gke.1", "1.27"),
        ("1.30", "1.30", "1.31"),
    ],
)
def test_version_ranges(text: str, inside: str, outside: str) -> None:
    versions = VersionRange.parse(text)
    assert Version.parse(inside) in versions
    assert Version.parse(outside) not in versions
    assert str(VersionRange.parse(str(versions))) == str(versions)


@pytest.mark.parametrize("text", ["", "1", ">1.23", "1.30-1.20", "x"])
def test_wrong_version_ranges_say_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="1\\."):
        VersionRange.parse(text or "''")


def test_statements_are_whole_sentences() -> None:
    standard = load_standard()
    statements = {item.id: item.statement for item in standard.requirements}
    statements |= {rule.id: rule.statement for rule in standard.rules}
    assert {name: text for name, text in statements.items() if not text.endswith(".")} == {}
