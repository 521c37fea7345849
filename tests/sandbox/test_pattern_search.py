"""Patterns find what Python's engine finds, and their search can be interrupted."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winready_sandbox.pattern_search import PatternError, TooMuch, find, search

ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "(a)", "(b|a)", "(?:ab)", "(a*)", "(?>a*)", r"[\d-]", r"\x61"]
PLACES = ["^", "$", r"\b", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)"]
COUNTS = ["", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}?", "{2,}"]


def patterns() -> st.SearchStrategy[str]:
    """Patterns of the syntax that Python and .NET share."""
    repeated = st.builds(lambda atom, count: atom + count, st.sampled_from(ATOMS), st.sampled_from(COUNTS))
    part = st.one_of(repeated, repeated, st.sampled_from(PLACES))
    flat = st.lists(part, min_size=1, max_size=4).map("".join)
    return st.one_of(
        flat, st.builds("{}|{}".format, flat, flat), st.builds("({}){}".format, flat, st.sampled_from("+*?"))
    )


@settings(max_examples=600, derandomize=True)
@given(pattern=patterns(), text=st.text(alphabet="aab1- \n", max_size=9))
def test_the_same_is_found_as_by_python(pattern: str, text: str) -> None:
    wanted, found = re.search(pattern, text), find(pattern, text, steps=10**6)
    assert (found and found.groups[0]) == (wanted and wanted[0])


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        (r"(?<os>\w+)-(\d+)", "node-17", ["node-17", "17"]),
        (r"(\w)\1", "hello", ["ll", "l"]),
        (r"(?i)ABC", "xabc", ["abc"]),
        (r"(?m)^b$", "a\nb\nc", ["b"]),
        (r"a(?i:B)", "aB", ["aB"]),
        (r"[^\s\\]+\\x", r"a b\x", [r"b\x"]),
    ],
)
def test_groups(pattern: str, text: str, groups: list[str]) -> None:
    found = find(pattern, text, steps=10**6)
    assert found is not None
    assert found.groups == groups


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(a+)+$", "(.*)*x", "(x+x+)+y", ".*.*.*.*x", "(?:a?){30}a{30}b"])
def test_steps_grow_with_pattern_times_text_only(pattern: str) -> None:
    for size in (50, 500):
        steps = sum(search(pattern, "a" * size + "!"))
        assert steps <= 100 * len(pattern) * size


def test_memory_does_not_grow_with_groups_times_text() -> None:
    search_for, text = "()" * 500 + "(?:(a)|b)*c", "a" * 3000
    tracemalloc.start()
    try:
        assert find(search_for, text, steps=10**9) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * 2**20


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        (r"(?:(a)|b)*\1", "ab", [None]),
        (r"(?:(a)x|(a)b)", "ab", ["ab", None, "a"]),
        (r"(?:(?=(a))a|(?=(a))ab)$", "ab", ["ab", None, "a"]),
        (r"(?:(?>(a))x|a(b))", "ab", ["ab", None, "b"]),
        (r"(?:(a)|(b))*c", "abac", ["abac", "a", "b"]),
    ],
)
def test_what_a_way_saved_that_led_nowhere_is_forgotten(pattern: str, text: str, groups: list[str | None]) -> None:
    found = find(pattern, text, steps=10**6)
    assert (found.groups if found else [None]) == groups


def test_what_looks_back_can_be_interrupted() -> None:
    with pytest.raises(TooMuch):
        find(r"(a*)*\1b", "a" * 40, steps=50_000)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "a**", "*", "[a", "a{2,1}", "\\", r"\1", "(?Z)", "[b-a]", r"\xq", "((a{1000}){1000}){1000}"),
        *("(" * 5000, "|".join(f"abc{number}" for number in range(20000)), "a" * 100_000),
    ],
)
def test_what_cannot_be_run_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        find(pattern, "a", steps=10**6)
