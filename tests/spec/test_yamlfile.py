"""Reading files as kubectl does, with positions, and surviving the hostile ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winready.spec.yamlfile import Document, YamlError, decode, read, resolve


def values(content: str) -> list[Any]:
    return [
        one.value if isinstance(one, Document) else f"{one.line}:{one.column}: {one.problem}" for one in read(content)
    ]


# Measured with kubectl create --dry-run=client.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("on", True), ("y", True), ("No", False), ("off", False), ("~", None), ("null", None),
        ("0777", 511), ("0o17", 15), ("1e3", 1000), ("0b11", 3), ("0x1F", 31), ("-5", -5), ("1_000", 1000),
        ("1.5", 1.5),
        ("12:30", "12:30"), ("2020-01-01", "2020-01-01"), ("=", "="), ("-", "-"), ("1.2.3", "1.2.3"), ("08", 8),
        ("windows", "windows"), ("10.0.20348", "10.0.20348"), ("+-1", "+-1"),
    ],
)  # fmt: skip
def test_scalars_are_what_kubectl_takes_them_for(text: str, value: Any) -> None:
    assert resolve(text) == value
    assert values(f"a: {text}") == [{"a": value}] if text not in ("-",) else True


def test_quotes_and_tags_keep_texts_texts() -> None:
    assert values("a: 'yes'\nb: \"1\"\nc: !!str 5\nd: !custom 5\ne: !!binary aGk=\nf: !!int '3'") == [
        {"a": "yes", "b": "1", "c": "5", "d": "5", "e": "hi", "f": 3}
    ]


def test_keys_become_texts() -> None:
    assert values("yes: 1\n2: 3\n1.5: 4") == [{"true": 1, "2": 3, "1.5": 4}]
    assert "key is empty" in values("~: 1")[0]
    assert "plain value" in values("? [a]\n: b")[0]


def test_documents_are_split_and_a_broken_one_does_not_hide_the_others() -> None:
    found = values("a: 1\n---\nb: [\n---\nc: 3\n--- # comment\n# nothing\n---\nd: |\n  ---\n  x\n")
    assert [one for one in found if isinstance(one, dict)] == [{"a": 1}, {"c": 3}, {"d": "---\nx\n"}]
    assert found[1].startswith("4:1:")


def test_positions_of_keys_values_and_items() -> None:
    [document] = read("a:\n  - b: 1\n    é: [x, yy]\n")
    assert isinstance(document, Document)
    entry = document.entry(("a", 0, "é", 1))
    assert entry is not None
    assert document.text.position(entry.value) == (3, 12)
    assert document.text.content[entry.value : entry.value_end] == "yy"
    assert document.entry(("a", 1)) is None
    assert document.text.position(document.nearest(("a", 0, "missing", "deeper")).value) == (2, 5)


def test_duplicate_keys_are_told_and_the_last_wins() -> None:
    [document] = read("a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert isinstance(document, Document)
    assert document.value == {"a": 3, "b": {"c": 2}}
    assert [(key, document.text.position(at)) for key, at in document.duplicates] == [("c", (2, 11)), ("a", (3, 1))]


def test_anchors_aliases_and_merges() -> None:
    assert values("a: &x {k: 1}\nb: *x\nc: &x 5\nd: *x\ne: {<<: {k: 2, l: 3}, k: 4}") == [
        {"a": {"k": 1}, "b": {"k": 1}, "c": 5, "d": 5, "e": {"k": 4, "l": 3}}
    ]
    assert "no anchor" in values("a: *b")[0]
    assert "no anchor" in values("a: &a [*a]")[0]


def test_hostile_documents_are_ordinary_errors() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
    )
    assert "more than 1,000,000 values" in values(bomb)[0]
    assert "nested deeper" in values("[" * 100_000)[0]
    assert "nested deeper" in values('{"a":' * 100_000)[0]
    assert "control characters" in values("a: \x01")[0]


def test_json_as_kubectl_reads_it() -> None:
    assert values('{"a": "\\ud83d\\ude00", "b": [1, null]}\n\t{"c": true}') == [
        {"a": "😀", "b": [1, None]},
        {"c": True},
    ]
    [document] = read("{a: 1}")
    assert isinstance(document, Document)
    assert "double quotes" in document.json_problem
    assert values('{"a": 1}\n---\n{"b": 2}')[1].startswith("2:1: expected a JSON value")
    assert "double quotes" in values("{a: [}")[0]
    assert "found the end" in values('{"a": 1').pop().replace("'", "")


def test_decoding() -> None:
    assert decode(b"\xef\xbb\xbfa: 1") == "a: 1"
    assert decode("a: é".encode("utf-16")) == "a: é"
    with pytest.raises(YamlError, match="0xe9 is not UTF-8") as raised:
        decode("a: 1\nb: café".encode("latin-1"))
    assert (raised.value.line, raised.value.column) == (2, 7)
    with pytest.raises(YamlError, match="binary"):
        decode(b"\x7fELF\0\0")


TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc é\"'", max_size=5), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1), TREES, min_size=1))
def test_json_survives_both_readers(tree: dict[str, Any]) -> None:
    text = json.dumps(tree)
    assert values(text) == [tree]


@settings(max_examples=200, deadline=None)
@given(st.text("abk:- \n\t#&*!|>'\"{}[],?%@`<=~\\01\r\x85", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    for one in read(text):
        if isinstance(one, YamlError):
            assert one.line >= 1
