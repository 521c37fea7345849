"""Formats of names, labels, addresses and numbers, each refused in the real server's words.

Every function here takes a value and yields what is wrong with it; ``at`` ties those texts to a field.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from winready_sandbox.api.errors import FieldError, invalid

Errors = Iterator[FieldError]

NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_LOOSE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = rf"{_LABEL_LOOSE}(\.{_LABEL_LOOSE})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_ENV_NAME = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_KEY = r"[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"


def _regex(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_TEXT = _regex(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_TEXT = _regex(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_SEARCH_TEXT = _regex(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start"
    " and end with an alphanumeric character",
    _SEARCH,
    "example.com",
)
_LABEL_1035_TEXT = _regex(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_NAME_PART_TEXT = _regex(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _NAME_PART,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_TEXT = _regex(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character",
    f"({_NAME_PART})?",
    "MyValue",
    "my_value",
    "12345",
)
_ENV_TEXT = _regex(
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not"
    " start with a digit",
    _ENV_NAME,
    "my.env-name",
    "MY_ENV.NAME",
    "MyEnvName1",
)
_KEY_TEXT = _regex(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_PERCENT_TEXT = _regex(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)


def at(field: str, value: object, texts: Iterable[str]) -> Errors:
    """The texts as errors of a field."""
    for text in texts:
        yield invalid(field, value, text)


def _longer(value: str, limit: int, unit: str = "characters") -> Iterator[str]:
    if len(value) > limit:
        yield f"must be no more than {limit} {unit}"


def dns_label(value: str) -> Iterator[str]:
    """RFC 1123 label: namespaces, containers, volumes."""
    yield from _longer(value, 63)
    if not re.fullmatch(_LABEL, value):
        yield "must not contain dots" if re.fullmatch(_SUBDOMAIN, value) else _LABEL_TEXT


def dns_subdomain(value: str) -> Iterator[str]:
    """RFC 1123 subdomain: most names."""
    yield from _longer(value, 253)
    if not re.fullmatch(_SUBDOMAIN, value):
        yield _SUBDOMAIN_TEXT


def dns_search(value: str) -> Iterator[str]:
    """A domain to search, where underscores are allowed."""
    yield from _longer(value, 253)
    if not re.fullmatch(_SEARCH, value):
        yield _SEARCH_TEXT


def dns_label_1035(value: str) -> Iterator[str]:
    """RFC 1035 label: services."""
    yield from _longer(value, 63)
    if not re.fullmatch(_LABEL_1035, value):
        yield _LABEL_1035_TEXT


def path_segment(value: str) -> Iterator[str]:
    """Names of roles and bindings: anything that fits into one segment of a URL."""
    if value in (".", ".."):
        yield f"may not be '{value}'"
    for illegal in ("/", "%"):
        if illegal in value:
            yield f"may not contain '{illegal}'"


def qualified_name(value: str) -> Iterator[str]:
    """Keys of labels, annotations, taints: ``[DOMAIN/]NAME``."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        suffix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        yield f"a valid label key {_NAME_PART_TEXT} {suffix}"
        return
    if slash:
        if not prefix:
            yield "prefix part must be non-empty"
        else:
            yield from (f"prefix part {text}" for text in dns_subdomain(prefix))
    if not name:
        yield "name part must be non-empty"
    yield from (f"name part {text}" for text in _longer(name, 63, "bytes"))
    if not re.fullmatch(_NAME_PART, name):
        yield f"name part {_NAME_PART_TEXT}"


def label_value(value: str) -> Iterator[str]:
    """Values of labels and taints."""
    yield from _longer(value, 63, "bytes")
    if value and not re.fullmatch(_NAME_PART, value):
        yield _LABEL_VALUE_TEXT


def labels(values: object, field: str) -> Errors:
    """A map of labels, as in metadata or a node selector."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from at(field, key, qualified_name(str(key)))
            yield from at(field, value, label_value(str(value)))


def config_key(value: str) -> Iterator[str]:
    """Keys of config maps and secrets."""
    yield from _longer(value, 253)
    if not re.fullmatch(_KEY, value):
        yield _KEY_TEXT
    if value in (".", ".."):
        yield f"must not be '{value}'"
    elif value.startswith(".."):
        yield "must not start with '..'"


def env_name(value: str, minor: int) -> Iterator[str]:
    """Names of environment variables; nearly everything is allowed since 1.32."""
    if minor >= 32:
        if not all(" " <= char <= "~" and char != "=" for char in value):
            yield "a valid environment variable name must consist only of printable ASCII characters other than '='"
    elif not re.fullmatch(_ENV_NAME, value):
        yield _ENV_TEXT


def port_number(value: object) -> Iterator[str]:
    """A port from 1 to 65535."""
    if not isinstance(value, int) or not 1 <= value <= 65535:
        yield "must be between 1 and 65535, inclusive"


def port_name(value: str) -> Iterator[str]:
    """A port by name, as an IANA service name."""
    yield from _longer(value, 15)
    if not re.fullmatch(r"[-a-z0-9]+", value):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search(r"[a-z]", value):
        yield "must contain at least one letter (a-z)"
    if "--" in value:
        yield "must not contain consecutive hyphens"
    if value.startswith("-") or value.endswith("-"):
        yield "must not begin or end with a hyphen"


def port(value: object, field: str) -> Errors:
    """A port by number or name."""
    if isinstance(value, str):
        yield from at(field, value, port_name(value))
    else:
        yield from at(field, value or 0, port_number(value))


def ip_address(value: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address, or nothing if it is none."""
    try:
        return ipaddress.ip_address(str(value))
    except ValueError:
        return None


def ip(value: object) -> Iterator[str]:
    """An IP address of either family."""
    if ip_address(value) is None:
        yield "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def endpoint_ip(value: str) -> Iterator[str]:
    """An address that traffic can be sent to from another node."""
    address = ip_address(value)
    if address is None:
        yield "must be a valid IP address"
        return
    if address.is_unspecified:
        yield f"may not be unspecified ({value})"
    if address.is_loopback:
        yield "may not be in the loopback range (127.0.0.0/8, ::1/128)"
    if address.is_link_local:
        yield "may not be in the link-local range (169.254.0.0/16, fe80::/10)"


def network(value: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The block of addresses, or nothing if it is none."""
    try:
        return ipaddress.ip_network(str(value), strict=False) if "/" in str(value) else None
    except ValueError:
        return None


def cidr(value: object) -> Iterator[str]:
    """A block of addresses."""
    if network(value) is None:
        yield "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def int_or_percent(value: object, field: str) -> Errors:
    """A count that is not negative, or a percentage."""
    if isinstance(value, str):
        if not re.fullmatch(_PERCENT, value):
            yield invalid(field, value, _PERCENT_TEXT)
    elif isinstance(value, int):
        yield from nonnegative(value, field)


def at_most_all(value: object, field: str) -> Errors:
    """A percentage up to 100."""
    if isinstance(value, str) and re.fullmatch(_PERCENT, value) and int(value[:-1]) > 100:
        yield invalid(field, value, "must not be greater than 100%")


def is_zero(value: object) -> bool:
    """Whether a count or percentage means none."""
    return value in (0, None, "0%")


def nonnegative(value: object, field: str) -> Errors:
    """A number from 0."""
    if isinstance(value, int) and value < 0:
        yield invalid(field, value, NEGATIVE)


def immutable(new: Any, old: Any, field: str) -> Errors:
    """A field that keeps its first value."""
    if new != old:
        yield invalid(field, new, IMMUTABLE)


def selector(value: object, field: str) -> Errors:
    """A label selector."""
    if not isinstance(value, dict):
        return
    yield from labels(value.get("matchLabels"), f"{field}.matchLabels")
    expressions = value.get("matchExpressions")
    for i, item in enumerate(expressions if isinstance(expressions, list) else []):
        if not isinstance(item, dict):
            continue
        here = f"{field}.matchExpressions[{i}]"
        operator, values = item.get("operator"), item.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                yield FieldError(
                    f"{here}.values",
                    "Required value: must be specified when `operator` is 'In' or 'NotIn'",
                    "FieldValueRequired",
                )
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                yield FieldError(
                    f"{here}.values",
                    "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                    "FieldValueForbidden",
                )
        else:
            yield invalid(f"{here}.operator", operator or "", "not a valid selector operator")
        yield from at(f"{here}.key", item.get("key", ""), qualified_name(str(item.get("key", ""))))
        for j, entry in enumerate(values if isinstance(values, list) else []):
            yield from at(f"{here}.values[{j}]", entry, label_value(str(entry)))


def matches(value: object, found: object) -> bool:
    """Whether a label selector matches these labels."""
    if not isinstance(value, dict) or not isinstance(found, dict):
        return isinstance(value, dict) and not value.get("matchLabels") and not value.get("matchExpressions")
    wanted = value.get("matchLabels")
    if isinstance(wanted, dict) and any(found.get(key) != item for key, item in wanted.items()):
        return False
    expressions = value.get("matchExpressions")
    for item in expressions if isinstance(expressions, list) else []:
        if not isinstance(item, dict):
            continue
        key, operator, values = item.get("key"), item.get("operator"), item.get("values") or []
        present = found.get(key)
        if (operator == "In" and present not in values) or (operator == "NotIn" and key in found and present in values):
            return False
        if (operator == "Exists" and key not in found) or (operator == "DoesNotExist" and key in found):
            return False
    return True
