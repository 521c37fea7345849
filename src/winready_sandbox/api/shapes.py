"""The shapes of the built-in kinds: names, types and protobuf numbers of their fields.

One table (``data/types.txt``, written by ``tools/message_table.py``) serves two readers: bodies in protobuf, and the
check that a JSON body is shaped like its kind, with the fields that no kind has named as the real server names them.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from winready_sandbox.api.errors import bad_request
from winready_sandbox.api.gates import FIELDS_SINCE
from winready_sandbox.quantity import REFUSAL, canonical
from winready_sandbox.versions import NEWEST_MINOR

_FIELD = re.compile(r"(.+?)=(\d+)(\+?)([*%]?)([\w/.]+)([?!]?)")
_GROUPS = {
    "networking": "networking.k8s.io",
    "discovery": "discovery.k8s.io",
    "coordination": "coordination.k8s.io",
    "rbac": "rbac.authorization.k8s.io",
    "storage": "storage.k8s.io",
    "scheduling": "scheduling.k8s.io",
    "node": "node.k8s.io",
    "events": "events.k8s.io",
    "authentication": "authentication.k8s.io",
    "authorization": "authorization.k8s.io",
    "certificates": "certificates.k8s.io",
    "admissionregistration": "admissionregistration.k8s.io",
    "core": "",
}


@dataclass(frozen=True)
class Field:
    """One field: ``form`` is ``*`` for a list, ``%`` for a map; inline structs have no name of their own in JSON."""

    name: str
    number: int
    inline: bool
    form: str
    type: str
    keeps_zero: bool


@dataclass(frozen=True)
class Type:
    """One struct of the API."""

    name: str
    fields: tuple[Field, ...]
    by_number: dict[int, Field] = field(repr=False)
    names: dict[str, Field] = field(repr=False)
    others: dict[str, Type] = field(repr=False, compare=False)
    """All structs of the same version by their names."""

    @property
    def short(self) -> str:
        """The name without its package."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class _Table:
    types: dict[str, Type]
    kinds: dict[tuple[str, str], Type]


@cache
def _table(minor: int = NEWEST_MINOR) -> _Table:
    """The types as a version knows them."""
    types: dict[str, Type] = {}
    kinds: dict[tuple[str, str], Type] = {}
    raw: dict[str, tuple[Field, ...]] = {}
    kind_names: list[str] = []
    for line in (Path(__file__).parent / "data" / "types.txt").read_text().splitlines():
        what, name, *columns = line.split(" ")
        raw[name] = tuple(_field(column) for column in columns)
        if what == "kind":
            kind_names.append(name)

    def names(of: str) -> dict[str, Field]:
        known: dict[str, Field] = {}
        for item in raw[of]:
            known |= names(item.type) if item.inline else {item.name: item}
        short = of.rpartition(".")[2]
        return {name: item for name, item in known.items() if FIELDS_SINCE.get(f"{short}.{name}", 0) <= minor}

    for name, fields in raw.items():
        types[name] = Type(name, fields, {item.number: item for item in fields}, names(name), types)
    for name in kind_names:
        package, _, kind = name.rpartition(".")
        group, _, version = package.partition("/")
        group = _GROUPS.get(group, group)
        kinds[f"{group}/{version}" if group else version, kind] = types[name]
    return _Table(types, kinds)


def _field(column: str) -> Field:
    found = _FIELD.fullmatch(column)
    if found is None:
        raise ValueError(f"not a field of the type table: {column}")
    name, number, inline, form, target, mark = found.groups()
    return Field(name, int(number), bool(inline), form, target, bool(mark))


def type_named(name: str) -> Type | None:
    """A struct by its full name; ``None`` for scalars and the types with a form of their own."""
    return _table().types.get(name)


def type_of_kind(api_version: str, kind: str, minor: int = NEWEST_MINOR) -> Type | None:
    """The struct of a kind, or ``None`` if the table does not know it."""
    if kind == "DeleteOptions":  # clients write them in the group of what they delete
        return type_named("meta/v1.DeleteOptions")
    return _table(minor).kinds.get((api_version, kind))


def conform(
    api_version: str, kind: str, obj: dict[str, Any], minor: int = NEWEST_MINOR
) -> tuple[dict[str, Any], list[str]]:
    """The object as its kind would be stored, and the paths of the fields that the kind does not have.

    Nulls, unknown fields and zero values that mean nothing are gone, quantities are in canonical form.

    Raises 400, as the real server's decoder does, for a value of the wrong type. Kinds it lacks pass as they are.
    """
    shape = type_of_kind(api_version, kind, minor)
    if shape is None:
        return obj, []
    unknown: list[str] = []
    head = {name: obj[name] for name in ("apiVersion", "kind") if name in obj}
    body = {name: value for name, value in obj.items() if name not in head}
    try:
        return head | _conform_struct(shape, body, "", unknown), unknown
    except _WrongType as wrong:
        version = api_version.rpartition("/")[2]
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {wrong}') from None


_EMPTY_COUNTS = ("managedFields", "supplementalGroups", "claims", "overhead")
"""Lists and maps that mean something when they are empty: they ask for a reset, or count as set."""


def _left_out(known: Field, value: Any) -> bool:
    """Whether a value is a zero that the types of the API leave out when they are written (``omitempty``)."""
    if value or known.keeps_zero or known.name in _EMPTY_COUNTS:
        return False
    return bool(known.form) or known.type in ("string", "int", "long", "bool", "double", "bytes")


class _WrongType(Exception):
    """A value that cannot be decoded into its field, in the words of Go's decoder."""


_GO_KINDS: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
}


def _wrong(value: Any, owner: Type, path: str, wanted: str) -> _WrongType:
    found = _GO_KINDS.get(type(value), "value")
    if isinstance(value, int | float) and not isinstance(value, bool) and wanted != "string":
        found = f"number {value}"
    plain = re.sub(r"\[[^]]*\]", "", path)  # Go's decoder names fields, not the places in lists and maps
    return _WrongType(f"json: cannot unmarshal {found} into Go struct field {owner.short}.{plain} of type {wanted}")


_PLAIN: dict[str, type] = {"string": str, "Time": str, "MicroTime": str, "bool": bool, "int": int, "long": int}
"""Types whose values are stored as they come; most fields are such."""


def _conform_struct(shape: Type, value: dict[str, Any], path: str, unknown: list[str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, item in value.items():
        known = shape.names.get(name)
        if known is None:
            unknown.append(f"{path}.{name}" if path else name)
        elif item is not None:
            plain = not known.form and type(item) is _PLAIN.get(known.type)
            stored = item if plain else _conform_field(shape, known, item, f"{path}.{name}" if path else name, unknown)
            if not _left_out(known, stored):
                result[name] = stored
    return result


def _conform_field(owner: Type, known: Field, value: Any, path: str, unknown: list[str]) -> Any:
    if known.form == "*":
        if not isinstance(value, list):
            raise _wrong(value, owner, path, f"[]{_go_name(known.type)}")
        return [_conform_value(owner, known.type, item, f"{path}[{i}]", unknown) for i, item in enumerate(value)]
    if known.form == "%":
        if not isinstance(value, dict):
            raise _wrong(value, owner, path, f"map[string]{_go_name(known.type)}")
        return {key: _conform_value(owner, known.type, item, f"{path}[{key}]", unknown) for key, item in value.items()}
    return _conform_value(owner, known.type, value, path, unknown)


def _go_name(name: str) -> str:
    known = {"int": "int32", "long": "int64", "bytes": "[]uint8", "IntOrString": "int32", "Time": "string"}
    return known.get(name, name.rpartition("/")[2])


_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "bytes": (str,),
    "bool": (bool,),
    "int": (int,),
    "long": (int,),
    "double": (int, float),
    "Time": (str,),
    "MicroTime": (str,),
    "Duration": (str,),
    "Quantity": (str, int, float),
    "IntOrString": (str, int),
    "FieldsV1": (dict,),
}


def _is_base64(value: object) -> bool:
    try:
        base64.b64decode(str(value), validate=True)
    except ValueError:
        return False
    return True


def _quantity(value: Any) -> str:
    try:
        return canonical(value)
    except ValueError:
        raise _WrongType(REFUSAL) from None


def _conform_value(owner: Type, name: str, value: Any, path: str, unknown: list[str]) -> Any:
    allowed = _SCALARS.get(name)
    if allowed is not None:
        if value is None and name in ("string", "bytes"):
            return ""
        if name in ("int", "long") and isinstance(value, float) and value.is_integer():
            value = int(value)
        if name == "Quantity" and isinstance(value, list | dict):
            raise _WrongType(REFUSAL)
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise _wrong(value, owner, path, _go_name(name))
        if name == "bytes" and not _is_base64(value):
            raise _WrongType("illegal base64 data at input byte 0")
        return _quantity(value) if name == "Quantity" else value
    shape = owner.others.get(name)
    if shape is None:  # RawExtension: any object
        return value
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong(value, owner, path, _go_name(name))
    return _conform_struct(shape, value, path, unknown)
