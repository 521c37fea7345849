"""Patterns of strangers: they find what Python's own engine finds, and none of them takes for ever."""

from __future__ import annotations

import re
import resource
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winready.upstream.patterns import Pattern, PatternError

SECONDS = 20
"""Of the processor, for what takes others years."""
_ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\d", r"\s", r"\b", r"\B", "^", "$", "(?i:A)", "-", " "]
)
PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,3}", "{2,}"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None)
@given(PATTERNS, st.text("abAB1- ", min_size=1, max_size=8))
def test_it_finds_what_the_usual_engine_finds(pattern: str, text: str) -> None:
    assert Pattern(pattern).found_in(text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){12}", ".*.*.*.*.*.*x", "(a?){40}a{40}b", "(?:a*)*b"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    code = f"from winready.upstream.patterns import Pattern\nprint(Pattern({pattern!r}).found_in('a' * 300 + '!'))"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    ended = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=limited, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, f"{pattern == '(.*a){12}'}\n"), ended.stderr


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(a)\1", "Go's patterns cannot"),
        ("(?=a)b", "Go's patterns cannot"),
        ("((a{1000}){1000}){1000}", "repeats too much"),
        ("(" * 5000, "nested too deeply"),
        ("a{99999999999999999999}", "repeats too often"),
        ("[", "unterminated"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_in_words(pattern: str, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        Pattern(pattern)


def test_a_pattern_that_the_next_python_may_read_in_another_way_is_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    assert Pattern("[[a]x").found_in("[x")
    assert not recwarn.list
