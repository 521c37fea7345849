"""Listings of specs in every form that e2e.test prints them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from winready.upstream.listing import ListingError, key, parse_listing, read_listing, tags

TEXTS = ("[sig-network] DNS should provide DNS for the cluster [Conformance]", "[sig-windows] Services should work")


def test_plain_lines_and_what_list_tests_prints() -> None:
    assert parse_listing("\n".join(TEXTS).encode(), "here").texts == TEXTS
    printed = "The following spec names can be used with 'ginkgo run --focus/skip':\n"
    printed += "".join(f"    test/e2e/x.go:{number}: {text}\n" for number, text in enumerate(TEXTS))
    assert parse_listing(printed.encode(), "here").texts == TEXTS


def test_spec_dumps_of_both_ginkgos() -> None:
    second = [
        {"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-a] b", "c"], "LeafNodeText": "does  d"},
        {"LeafNodeType": "BeforeSuite", "ContainerHierarchyTexts": None, "LeafNodeText": ""},
    ]
    first = {"ComponentTexts": ["[Top Level]", "[sig-a] b", "c", "does d"]}
    for lines in (second, [first]):
        assert parse_listing("\n".join(map(json.dumps, lines)).encode(), "x").texts == ("[sig-a] b c does d",)


def test_gzip_is_seen_by_content_not_by_name(tmp_path: Path) -> None:
    file = tmp_path / "specs.txt"
    file.write_bytes(gzip.compress("\n".join(TEXTS).encode()))
    assert read_listing(file).texts == TEXTS


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "holds no spec"),
        (b"hello\n", "holds no spec"),
        (b"\x1f\x8b\x08 broken", "cannot be read"),
        (b'{"a": \n', "x.txt:1: not a line of a spec dump"),
    ],
)
def test_what_is_no_listing_is_said_with_the_file(tmp_path: Path, data: bytes, problem: str) -> None:
    file = tmp_path / "x.txt"
    file.write_bytes(data)
    with pytest.raises(ListingError, match=problem):
        read_listing(file)
    with pytest.raises(ListingError, match="cannot be read"):
        read_listing(tmp_path / "missing")


def test_keys_forget_the_tags_that_move() -> None:
    assert key("[sig-a]  b [Serial] c [Conformance]") == "[sig-a] b c"
    assert tags("[sig-a] b [Serial] c [Feature:X]") == {"[Serial]"}
