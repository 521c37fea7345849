"""YAML and JSON files as kubectl reads them, with the place of every key.

PyYAML's own loaders disagree with kubectl on scalars (``yes``, ``0777``, ``12:30``), forget where a key stood and let
the last of two equal keys win in silence. This reader walks libyaml's events once and builds plain dicts and lists
that remember their positions. Its limits (depth, number of values after aliases are followed) turn hostile files into
ordinary errors, and a broken document does not hide the other documents of its file.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

MAX_DEPTH = 200
MAX_VALUES = 1_000_000

Path = tuple[str | int, ...]
_STR, _BINARY = "tag:yaml.org,2002:str", "tag:yaml.org,2002:binary"
_SEPARATOR = re.compile(r"^---[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_CONTENT = re.compile(r"^[ \t]*(?!#|%|---|\r?$)\S", re.MULTILINE)
_FIRST = re.compile(r"\S")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | float | None] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
_WORDS |= dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"], True)
_WORDS |= dict.fromkeys(["n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"], False)
_WORDS |= {sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")}
_WORDS |= dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan"))
_NUMERIC = frozenset("+-.0123456789")


class YamlError(Exception):
    """A document that cannot be read: what is wrong, and where (line and column count from 1)."""

    too_large = False

    def __init__(self, problem: str, line: int = 1, column: int = 1) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column


class Entry(NamedTuple):
    """Where a key and its value stand, as character offsets into the file; list items have an empty key."""

    key: int
    key_end: int
    value: int
    value_end: int


Span = tuple[int, int, int, int]
"""The numbers of an ``Entry``, as the readers keep them: there is one for every value, and few are ever asked for."""


class Map(dict[str, Any]):
    """A mapping that knows where its keys stand."""

    __slots__ = ("end", "flow", "spans", "start")

    def __init__(self, start: int, flow: bool) -> None:
        self.start, self.end, self.flow = start, start, flow
        self.spans: dict[str, Span] = {}

    @property
    def entries(self) -> dict[str, Entry]:
        """Where each key and its value stand."""
        return {key: Entry(*span) for key, span in self.spans.items()}


class Seq(list[Any]):
    """A list that knows where its items stand."""

    __slots__ = ("end", "flow", "spans", "start")

    def __init__(self, start: int, flow: bool) -> None:
        self.start, self.end, self.flow = start, start, flow
        self.spans: list[Span] = []

    @property
    def entries(self) -> list[Entry]:
        """Where each item stands."""
        return [Entry(*span) for span in self.spans]


class Text:
    """The text of a file and the way from an offset to a line and column."""

    __slots__ = ("_has", "_lines", "content")

    def __init__(self, content: str) -> None:
        self.content = content
        self._has: dict[str, bool] = {}
        self._lines: list[int] | None = None

    def has(self, word: str) -> bool:
        """Whether a word stands anywhere; asked often, looked for once."""
        if word not in self._has:
            self._has[word] = word in self.content
        return self._has[word]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self._starts(), offset)
        return line, offset - self._starts()[line - 1] + 1

    def line(self, number: int) -> str:
        """One line without its end."""
        starts = self._starts()
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] if number < len(starts) else len(self.content)
        return self.content[starts[number - 1] : end].rstrip("\r\n")

    def _starts(self) -> list[int]:
        if self._lines is None:
            lengths = [len(line) + 1 for line in self.content.split("\n")]
            self._lines = [0, *accumulate(lengths[:-1])]
        return self._lines


class Document:
    """One document: its value, its text, and what is odd about it without being an error."""

    __slots__ = ("duplicates", "json_problem", "start", "text", "value")

    def __init__(self, value: Any, text: Text, start: int, duplicates: list[tuple[str, int]]) -> None:
        self.value, self.text, self.start, self.duplicates = value, text, start, duplicates
        self.json_problem = ""  # why kubectl, which takes it for JSON, cannot read it

    def entry(self, path: Path) -> Entry | None:
        """The place of the value at ``path``, or None when the path does not exist."""
        value: Any = self.value
        span: Span | None = None
        for step in path:
            if isinstance(value, Map) and step in value:
                span = value.spans[str(step)]
            elif isinstance(value, Seq) and isinstance(step, int) and step < len(value):
                span = value.spans[step]
            else:
                return None
            value = value[step]
        return Entry(*span) if span else None

    def nearest(self, path: Path) -> Entry:
        """The place of ``path`` or of its nearest parent that exists."""
        for length in range(len(path), 0, -1):
            if (entry := self.entry(path[:length])) is not None:
                return entry
        start = self.value.start if isinstance(self.value, Map | Seq) else self.start
        return Entry(start, start, start, start)


def decode(data: bytes) -> str:
    """The text of a file: UTF-8 with or without a byte order mark, or UTF-16 with one."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise YamlError("the file starts like UTF-16 but does not go on so; save it as UTF-8") from error
    data = data.removeprefix(codecs.BOM_UTF8)
    if (at := data.find(b"\0")) >= 0:
        raise YamlError(
            f"a NUL byte at offset {at}: this is a binary file, not YAML or JSON", data.count(b"\n", 0, at) + 1
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise YamlError(f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8", line, column) from error


def read(content: str) -> Iterator[Document | YamlError]:
    """Every document of a file in order; a document that cannot be read comes as its error."""
    text = Text(content)
    json_error: YamlError | None = None
    # kubectl takes a file that begins like this for JSON.
    if (match := _FIRST.search(content)) is not None and match[0] == "{":
        from winready.spec import jsonfile

        documents, json_error = jsonfile.read(text)
        yield from documents
        if json_error is None:
            return
        if documents or json_error.too_large:
            yield json_error
            return
    for start, end in _chunks(content):
        try:
            for document in _Reader(
                text, content[start:end] if end - start < len(content) else content, start
            ).documents():
                document.json_problem = json_error.problem if json_error else ""
                yield document
        except YamlError as error:
            if json_error is not None and content[start : start + 1] != "-":
                yield json_error
                return
            yield error


def _chunks(content: str) -> Iterator[tuple[int, int]]:
    """The spans between ``---`` lines, where kubectl splits a file before it parses anything."""
    start = 0
    for match in _SEPARATOR.finditer(content) if "---" in content else ():
        if _CONTENT.search(content, start, match.start()):
            yield start, match.start()
            start = match.start()
    if _CONTENT.search(content, start):
        yield start, len(content)


def resolve(value: str) -> Any:
    """A plain scalar as kubectl's YAML reader understands it."""
    if value in _WORDS:
        return _WORDS[value]
    if value[0] not in _NUMERIC:
        return value
    return _number(value) if len(value) <= 32 else _number.__wrapped__(value)


@lru_cache(4096)
def _number(value: str) -> int | float | str:
    """What begins like a number: the number, or the text itself."""
    plain = value.replace("_", "")
    digits = plain.lstrip("+-")
    try:
        if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
            return int(plain, 8)
        if len(plain) - len(digits) <= 1:
            return int(plain, 0)
    except ValueError:
        pass
    if _FLOAT.fullmatch(plain):
        number = float(plain)
        return int(number) if number.is_integer() and abs(number) < 1e15 else number
    return value


@cache
def _parser() -> type[Any]:
    """libyaml's parser where PyYAML was built with it, which is everywhere but on odd platforms."""
    try:
        from yaml._yaml import CParser
    except ImportError:
        return yaml.Loader
    return CParser


class _Reader:
    """Builds the documents of one chunk from the events of the YAML parser."""

    def __init__(self, text: Text, chunk: str, offset: int) -> None:
        self.text, self.offset = text, offset
        self.events = iter(_parser()(chunk).get_event, None)
        self.values = 0

    def documents(self) -> Iterator[Document]:
        try:
            for event in self.events:
                start: int = self.offset + event.start_mark.index
                if isinstance(event, DocumentStartEvent):
                    document = self._document(start)
                    if document.value is not None:
                        yield document
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = ", ".join(part for part in (error.context, error.problem) if part)
            raise self._error(problem, self.offset + (mark.index if mark else 0)) from error
        except yaml.reader.ReaderError as error:
            found = _UNPRINTABLE.search(self.text.content, self.offset)
            at = found.start() if found else self.offset
            raise self._error(f"{error.reason} (U+{ord(found[0]) if found else 0:04X})", at) from error

    def _error(self, problem: str, offset: int) -> YamlError:
        return YamlError(problem, *self.text.position(min(offset, len(self.text.content))))

    def _document(self, start: int) -> Document:
        """One document, without recursion: a stack of open collections and of the keys that wait for a value."""
        offset, values = self.offset, self.values
        anchors: dict[str, tuple[Any, int]] = {}
        duplicates: list[tuple[str, int]] = []
        # Around the collection at hand: collection, its anchor, values seen before it, key with start and end, merges.
        stack: list[tuple[Any, str | None, int, str | None, int, int, list[Any]]] = []
        collection: Any = None
        anchor, before, key, key_at, key_end, merges = None, 0, None, 0, 0, list[Any]()
        value: Any
        for event in self.events:
            kind = type(event)
            mark: int = event.start_mark.index + offset
            if kind is ScalarEvent:
                value = event.value
                if event.tag is not None:
                    value = self._tagged(value, event.tag, mark)
                elif (value in _WORDS or value[0] in _NUMERIC) and event.implicit[0]:
                    value = resolve(value)
                values += 1
                if event.anchor:
                    anchors[event.anchor] = (value, 1)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                if key is None and type(collection) is Map:
                    raise self._error("a mapping key must be a plain value, not a list or a mapping", mark)
                stack.append((collection, anchor, before, key, key_at, key_end, merges))
                if len(stack) > MAX_DEPTH:
                    raise self._error(f"nested deeper than {MAX_DEPTH} levels", mark)
                collection = (Map if kind is MappingStartEvent else Seq)(mark, bool(event.flow_style))
                anchor, before, key, merges = event.anchor, values, None, []
                values += 1
                continue
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                value = collection
                value.end = event.end_mark.index + offset
                mark = value.start
                if merges:
                    self._merge(value, merges, mark)
                if anchor:
                    anchors[anchor] = (value, values - before)
                collection, anchor, before, key, key_at, key_end, merges = stack.pop()
            elif kind is AliasEvent:
                if event.anchor not in anchors:
                    raise self._error(f"alias *{event.anchor} has no anchor before it", mark)
                value, weight = anchors[event.anchor]
                values += weight
            else:  # the end of the document
                return Document(None, self.text, start, duplicates)
            if values > MAX_VALUES:
                raise self._error(
                    f"more than {MAX_VALUES:,} values once aliases are followed; split the document", mark
                )
            if collection is None:
                self.values = values
                self._finish()
                return Document(value, self.text, start, duplicates)
            end: int = event.end_mark.index + offset
            if type(collection) is Seq:
                collection.append(value)
                collection.spans.append((mark, mark, mark, end))
            elif key is None:
                key, key_at, key_end = value if type(value) is str else self._key(value, mark), mark, end
            elif key == "<<":
                merges.append(value)
                key = None
            else:
                if key in collection:
                    duplicates.append((key, key_at))
                collection[key] = value
                collection.spans[key] = (key_at, key_end, mark, end)
                key = None
        raise self._error("the document does not end", offset)

    def _finish(self) -> None:
        for event in self.events:
            if isinstance(event, DocumentEndEvent):
                return

    def _key(self, value: Any, mark: int) -> str:
        if value is None:
            raise self._error("a mapping key is empty (null)", mark)
        if isinstance(value, Map | Seq):
            raise self._error("a mapping key must be a plain value, not a list or a mapping", mark)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _merge(self, target: Map, merges: list[Any], mark: int) -> None:
        for merge in merges:
            for source in merge if isinstance(merge, Seq) else [merge]:
                if not isinstance(source, Map):
                    raise self._error("<< needs a mapping or a list of mappings", mark)
                for key, value in source.items():
                    if key not in target:
                        target[key] = value
                        target.spans[key] = source.spans[key]

    def _tagged(self, value: str, tag: str, mark: int) -> Any:
        if tag == _BINARY:
            try:
                return base64.b64decode(value, validate=False).decode(errors="replace")
            except (binascii.Error, ValueError) as error:
                raise self._error(f"!!binary value is not base64: {error}", mark) from error
        if tag == _STR or not tag.startswith("tag:yaml.org,2002:"):
            return value
        return resolve(value)
