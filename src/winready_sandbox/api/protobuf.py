"""Bodies in protobuf, which kubectl sends for its own creates and reviews and does not fall back from.

Only decoding: answers go out as JSON, which every client accepts. The wire format is small enough to read here; numbers
and types of the fields come from the table of types.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from winready_sandbox.api.errors import ApiError, bad_request, unsupported_media_type
from winready_sandbox.api.shapes import Field, Type, type_named, type_of_kind

MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_DEPTH = 64

Raw = int | bytes


class _Malformed(Exception):
    """Bytes that are no message of the expected kind."""


def decode(body: bytes) -> dict[str, Any]:
    """The object in a ``k8s\\0`` envelope, shaped like its JSON form."""
    try:
        if not body.startswith(MAGIC):
            raise _Malformed("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
        api_version, kind, raw, encoding = _envelope(body[len(MAGIC) :])
        if encoding not in ("", "application/vnd.kubernetes.protobuf", "application/json"):
            raise _Malformed(f"content type {encoding} within protobuf is not supported")
        if encoding == "application/json":
            return _json_object(raw)
        shape = type_of_kind(api_version, kind)
        if shape is None:
            raise _unknown_kind(api_version, kind)
        return {"kind": kind, "apiVersion": api_version, **_message(shape, raw, 0)}
    except _Malformed as malformed:
        raise bad_request(f"the body could not be decoded as protobuf: {malformed}") from None


def _unknown_kind(api_version: str, kind: str) -> ApiError:
    return unsupported_media_type(
        f"the body is {api_version or 'unknown'}, Kind={kind or 'unknown'} in protobuf, which this API server reads as"
        " JSON only: write the object to a file and use kubectl apply -f FILE"
    )


def _json_object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise _Malformed("the enclosed JSON is not valid") from None
    if not isinstance(value, dict):
        raise _Malformed("the enclosed JSON is no object")
    return value


def _envelope(data: bytes) -> tuple[str, str, bytes, str]:
    """runtime.Unknown: apiVersion and kind, the object itself, and how that is encoded."""
    api_version = kind = content_type = ""
    raw = b""
    for number, value in _pairs(data):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            for inner, text in _pairs(value):
                if isinstance(text, bytes) and inner in (1, 2):
                    api_version, kind = (_text(text), kind) if inner == 1 else (api_version, _text(text))
        elif number == 2:
            raw = value
        elif number == 4:
            content_type = _text(value)
    return api_version, kind, raw, content_type


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7
        if shift > 63:
            break
    raise _Malformed("a number is cut off or too long")


def _pairs(data: bytes) -> Iterator[tuple[int, Raw]]:
    """The fields of a message, as they come."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise _Malformed("field number 0")
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise _Malformed(f"wire type {wire}")
        if at + size > len(data):
            raise _Malformed("a field is cut off")
        yield number, data[at : at + size]
        at += size


def _text(raw: Raw) -> str:
    if not isinstance(raw, bytes):
        raise _Malformed("a number where text belongs")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise _Malformed("text that is not UTF-8") from None


def _message(shape: Type, data: bytes, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise _Malformed("nested too deep")
    result: dict[str, Any] = {}
    for number, raw in _pairs(data):
        known = shape.by_number.get(number)
        if known is None:
            continue
        if known.form == "*":
            values = result.setdefault(known.name, [])
            values.extend(_repeated(known, raw, depth))
        elif known.form == "%":
            key, value = _entry(known, raw, depth)
            result.setdefault(known.name, {})[key] = value
        elif known.inline:
            result |= _value(known.type, raw, depth)
        else:
            value = _value(known.type, raw, depth)
            if value is not None and (known.keeps_zero or value not in ("", 0, False)):
                result[known.name] = value
            else:
                result.pop(known.name, None)
    return result


def _repeated(known: Field, raw: Raw, depth: int) -> list[Any]:
    if known.type in ("int", "long") and isinstance(raw, bytes):  # packed
        values, at = [], 0
        while at < len(raw):
            value, at = _varint(raw, at)
            values.append(_signed(value))
        return values
    return [_value(known.type, raw, depth)]


def _entry(known: Field, raw: Raw, depth: int) -> tuple[str, Any]:
    if not isinstance(raw, bytes):
        raise _Malformed("a number where a map entry belongs")
    parts = dict(_pairs(raw))
    return _text(parts.get(1, b"")), _value(known.type, parts.get(2, b""), depth)


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _value(name: str, raw: Raw, depth: int) -> Any:
    if name in ("int", "long", "bool"):
        if not isinstance(raw, int):
            raise _Malformed("bytes where a number belongs")
        return bool(raw) if name == "bool" else _signed(raw)
    if not isinstance(raw, bytes):
        raise _Malformed("a number where bytes belong")
    if name == "string":
        return _text(raw)
    if name == "bytes":
        return base64.b64encode(raw).decode()
    if name == "double":
        if len(raw) != 8:
            raise _Malformed("a floating point number of the wrong size")
        return struct.unpack("<d", raw)[0]
    shape = type_named(name)
    return _message(shape, raw, depth + 1) if shape is not None else _SPECIAL[name](raw)


def _numbers(raw: bytes) -> dict[int, Raw]:
    return dict(_pairs(raw))


def _time(raw: bytes, places: int = 0) -> str | None:
    parts = _numbers(raw)
    seconds, nanos = parts.get(1), parts.get(2, 0)
    if seconds is None:  # the zero time
        return None
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        raise _Malformed("a time that is no number")
    try:
        moment = datetime.fromtimestamp(_signed(seconds), UTC)
    except (OverflowError, OSError, ValueError):
        raise _Malformed("a time out of range") from None
    text = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{text}.{nanos // 1000:06d}Z" if places else f"{text}Z"


def _micro_time(raw: bytes) -> str | None:
    return _time(raw, 6)


def _quantity(raw: bytes) -> str:
    return _text(_numbers(raw).get(1, b"")) or "0"


def _int_or_string(raw: bytes) -> int | str:
    parts = _numbers(raw)
    if parts.get(1, 0) == 1:
        return _text(parts.get(3, b""))
    number = parts.get(2, 0)
    if not isinstance(number, int):
        raise _Malformed("bytes where a number belongs")
    return _signed(number)


def _raw_json(raw: bytes) -> dict[str, Any] | None:
    inner = _numbers(raw).get(1, b"")
    if not isinstance(inner, bytes):
        raise _Malformed("a number where JSON belongs")
    return _json_object(inner) if inner else None


def _duration(raw: bytes) -> str:
    nanos = _numbers(raw).get(1, 0)
    if not isinstance(nanos, int):
        raise _Malformed("a duration that is no number")
    return f"{_signed(nanos) / 1e9:g}s"


_SPECIAL = {
    "Time": _time,
    "MicroTime": _micro_time,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "FieldsV1": _raw_json,
    "RawExtension": _raw_json,
    "Duration": _duration,
}
