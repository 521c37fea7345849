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
from typing import Any, NamedTuple

import yaml

MAX_DEPTH = 200
MAX_VALUES = 1_000_000

Path = tuple[str | int, ...]
_STR, _BINARY = "tag:yaml.org,2002:str", "tag:yaml.org,2002:binary"
_SEPARATOR = re.compile(r"^---[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_CONTENT = re.compile(r"^[ \t]*(?!#|%|---|\r?$)\S", re.MULTILINE)
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


class Map(dict[str, Any]):
    """A mapping that knows where its keys stand."""

    __slots__ = ("end", "entries", "flow", "start")

    def __init__(self, start: int, flow: bool) -> None:
        super().__init__()
        self.start, self.end, self.flow = start, start, flow
        self.entries: dict[str, Entry] = {}


class Seq(list[Any]):
    """A list that knows where its items stand."""

    __slots__ = ("end", "entries", "flow", "start")

    def __init__(self, start: int, flow: bool) -> None:
        super().__init__()
        self.start, self.end, self.flow = start, start, flow
        self.entries: list[Entry] = []


class Text:
    """The text of a file and the way from an offset to a line and column."""

    __slots__ = ("_lines", "content")

    def __init__(self, content: str) -> None:
        self.content = content
        self._lines: list[int] | None = None

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
            self._lines = [0, *(match.end() for match in re.finditer("\n", self.content))]
        return self._lines


class Document:
    """One document: its value, its text, and what is odd about it without being an error."""

    __slots__ = ("duplicates", "json_problem", "start", "text", "value")

    def __init__(self, value: Any, text: Text, start: int, duplicates: list[tuple[str, int]]) -> None:
        self.value, self.text, self.start, self.duplicates = value, text, start, duplicates
        self.json_problem = ""  # why kubectl, which takes it for JSON, cannot read it

    def entry(self, path: Path) -> Entry | None:
        """The place of the value at ``path``, or None when the path does not exist."""
        value, found = self.value, None
        for step in path:
            if isinstance(value, Map) and step in value:
                found = value.entries[str(step)]
            elif isinstance(value, Seq) and isinstance(step, int) and step < len(value):
                found = value.entries[step]
            else:
                return None
            value = value[step]
        return found

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
    from winready.spec import jsonfile

    text = Text(content)
    json_error: YamlError | None = None
    if jsonfile.looks_like_json(content):
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
    for match in _SEPARATOR.finditer(content):
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
                if isinstance(event, yaml.DocumentStartEvent):
                    document = self._document(start)
                    if document.value is not None:
                        yield document
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = ", ".join(part for part in (error.context, error.problem) if part)
            raise self._error(problem, mark.index if mark else 0) from error
        except yaml.reader.ReaderError as error:
            found = _UNPRINTABLE.search(self.text.content, self.offset)
            at = found.start() - self.offset if found else 0
            raise self._error(f"{error.reason} (U+{ord(found[0]) if found else 0:04X})", at) from error

    def _error(self, problem: str, index: int) -> YamlError:
        return YamlError(problem, *self.text.position(min(self.offset + index, len(self.text.content))))

    def _document(self, start: int) -> Document:
        """One document, without recursion: a stack of open collections and of the keys that wait for a value."""
        offset = self.offset
        anchors: dict[str, tuple[Any, int]] = {}
        duplicates: list[tuple[str, int]] = []
        # An open collection: the collection, its anchor, values seen before it, pending key, key start and end, merges.
        stack: list[list[Any]] = []
        value: Any
        for event in self.events:
            kind = type(event)
            mark: int = event.start_mark.index
            if kind is yaml.ScalarEvent:
                value = self._scalar(event)
                end = event.end_mark.index
                self.values += 1
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                factory = Map if kind is yaml.MappingStartEvent else Seq
                value = factory(offset + mark, bool(event.flow_style))
                if stack and type(stack[-1][0]) is Map and stack[-1][3] is None:
                    raise self._error("a mapping key must be a plain value, not a list or a mapping", mark)
                stack.append([value, event.anchor, self.values, None, 0, 0, None])
                if len(stack) > MAX_DEPTH:
                    raise self._error(f"nested deeper than {MAX_DEPTH} levels", mark)
                self.values += 1
                continue
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                value, anchor, before, _, _, _, merges = stack.pop()
                end = event.end_mark.index
                value.end = offset + end
                mark = value.start - offset
                if merges:
                    self._merge(value, merges, mark)
                if anchor:
                    anchors[anchor] = (value, self.values - before)
            elif kind is yaml.AliasEvent:
                if event.anchor not in anchors:
                    raise self._error(f"alias *{event.anchor} has no anchor before it", mark)
                value, weight = anchors[event.anchor]
                end = event.end_mark.index
                self.values += weight
            else:  # the end of the document
                return Document(None, self.text, start, duplicates)
            if self.values > MAX_VALUES:
                raise self._error(
                    f"more than {MAX_VALUES:,} values once aliases are followed; split the document", mark
                )
            if kind is yaml.ScalarEvent and event.anchor:
                anchors[event.anchor] = (value, 1)
            if not stack:
                self._finish()
                return Document(value, self.text, start, duplicates)
            parent = stack[-1]
            collection = parent[0]
            if type(collection) is Seq:
                collection.append(value)
                collection.entries.append(Entry(offset + mark, offset + mark, offset + mark, offset + end))
            elif parent[3] is None:
                parent[3], parent[4], parent[5] = self._key(value, mark), mark, end
            elif parent[3] == "<<":
                parent[6] = [*(parent[6] or ()), value]
                parent[3] = None
            else:
                key = parent[3]
                if key in collection:
                    duplicates.append((key, offset + parent[4]))
                collection[key] = value
                collection.entries[key] = Entry(offset + parent[4], offset + parent[5], offset + mark, offset + end)
                parent[3] = None
        raise self._error("the document does not end", 0)

    def _finish(self) -> None:
        for event in self.events:
            if isinstance(event, yaml.DocumentEndEvent):
                return

    def _key(self, value: Any, mark: int) -> str:
        if type(value) is str:
            return value
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
                        target.entries[key] = source.entries[key]

    def _scalar(self, event: Any) -> Any:
        value: str = event.value
        tag = event.tag
        if tag is None:
            return resolve(value) if event.implicit[0] else value
        if tag == _BINARY:
            try:
                return base64.b64decode(value, validate=False).decode(errors="replace")
            except (binascii.Error, ValueError) as error:
                raise self._error(f"!!binary value is not base64: {error}", event.start_mark.index) from error
        if tag == _STR or not tag.startswith("tag:yaml.org,2002:"):
            return value
        return resolve(value)
