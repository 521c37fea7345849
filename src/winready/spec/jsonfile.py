"""JSON with the place of every key.

kubectl takes a file whose first character is ``{`` for a stream of JSON objects, never for YAML. The standard library
tells no positions, and libyaml stumbles over surrogate pairs, so this small scanner reads JSON into the same maps and
lists as the YAML reader.
"""

from __future__ import annotations

import json
import re
from typing import Any

from winready.spec.yamlfile import MAX_DEPTH, MAX_VALUES, Document, Map, Seq, Text, YamlError

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_ATOM = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")


def read(text: Text) -> tuple[list[Document], YamlError | None]:
    """The objects of a JSON stream, and the error that ended it early."""
    documents: list[Document] = []
    at, end = _skip(text.content, 0), len(text.content)
    while at < end:
        scanner = _Scanner(text)
        try:
            value, after = scanner.value(at, 0)
        except YamlError as error:
            return documents, error
        documents.append(Document(value, text, at, scanner.duplicates))
        at = _skip(text.content, after)
    return documents, None


def _skip(content: str, at: int) -> int:
    match = _SPACE.match(content, at)
    return match.end() if match else at


class _Scanner:
    def __init__(self, text: Text) -> None:
        self.text, self.content = text, text.content
        self.duplicates: list[tuple[str, int]] = []
        self.values = 0

    def error(self, problem: str, at: int) -> YamlError:
        return YamlError(problem, *self.text.position(min(at, len(self.content))))

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        self.values += 1
        if self.values > MAX_VALUES:
            error = self.error(f"more than {MAX_VALUES:,} values; split the file", at)
            error.too_large = True
            raise error
        if depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH} levels", at)
        character = self.content[at : at + 1]
        if character == "{":
            return self.object(at, depth)
        if character == "[":
            return self.array(at, depth)
        if character == '"':
            return self.string(at)
        if match := _ATOM.match(self.content, at):
            return json.loads(match[0]), match.end()
        raise self.error(f"expected a JSON value, found {character or 'the end of the file'!r}", at)

    def string(self, at: int) -> tuple[str, int]:
        if self.content[at : at + 1] != '"':
            found = self.content[at : at + 1] or "the end of the file"
            raise self.error(f"expected a key in double quotes (kubectl reads this file as JSON), found {found!r}", at)
        try:
            text, end = _DECODER.raw_decode(self.content, at)
        except json.JSONDecodeError as error:
            raise self.error(f"{error.msg} (kubectl reads this file as JSON)", error.pos) from error
        return str(text), end

    def object(self, at: int, depth: int) -> tuple[Map, int]:
        result = Map(at, True)
        at = _skip(self.content, at + 1)
        while self.content[at : at + 1] != "}":
            if result:
                at = self.expect(",", at, "}")
            key, key_end = self.string(at)
            value_start = self.expect(":", _skip(self.content, key_end))
            value, value_end = self.value(value_start, depth + 1)
            if key in result:
                self.duplicates.append((key, at))
            result[key] = value
            result.spans[key] = (at, key_end, value_start, value_end)
            at = _skip(self.content, value_end)
        result.end = at + 1
        return result, at + 1

    def array(self, at: int, depth: int) -> tuple[Seq, int]:
        result = Seq(at, True)
        at = _skip(self.content, at + 1)
        while self.content[at : at + 1] != "]":
            if result:
                at = self.expect(",", at, "]")
            value, value_end = self.value(at, depth + 1)
            result.append(value)
            result.spans.append((at, at, at, value_end))
            at = _skip(self.content, value_end)
        result.end = at + 1
        return result, at + 1

    def expect(self, sign: str, at: int, other: str = "") -> int:
        found = self.content[at : at + 1]
        if found != sign:
            wanted = f"{sign!r} or {other!r}" if other else repr(sign)
            found = found or "the end of the file"
            raise self.error(f"expected {wanted}, found {found!r} (kubectl reads this file as JSON)", at)
        return _skip(self.content, at + 1)
