"""From a sound input to a hostile one: trees, lines and bytes are changed so that they are still nearly sound.

Everything comes from a random generator whose seed is the name of the target and the number of the input, so that a
number is enough to have an input again.
"""

from __future__ import annotations

import copy
import functools
import json
import marshal
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from random import Random
from typing import Any

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
DEEP = 1200
TEXTS = (
    "",
    " ",
    "null",
    "0",
    "-1",
    "../../../../etc/passwd",
    "\x00",
    "\x1b]0;stolen\x07\x1b[2J",
    "\u202egnp.exe",
    "\ud800",
    "\u2028",
    "x" * 5000,
    "9" * 5000,
    "1e999",
    "2026-13-45T99:99:99Z",
    "0001-01-01T00:00:00",
    "%s%n",
    "{{ 7 * 7 }}",
    "<script>alert(1)</script>",
    "https://[",
    "http://a:99999999",
    "a\r\nb: c",
    "(a+)+$",
    "[",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    10**30,
    -(10**30),
    1e12,
    1e308,
    -1e308,
    1.5,
    [],
    {},
)
BYTES = (
    b"\xff",
    b"\xc3\x28",
    b"\x00",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\r",
    b"\n",
    b"{",
    b"[",
    b'"',
    b"'",
    b":",
    b"&a *a",
    b"<!--",
)
SIGNS = (
    *(bytes([sign]) for sign in b"|;&<>(){}[]$%\"'`@#\\^!=+-*/,.:\n"),
    *(b"&&", b"||", b">>", b"2>&1", b"$(", b"${", b"%%", b"-eq", b"..", b"@{"),
)
PAIRS = (
    (b"(", b")"),
    (b"$(", b")"),
    (b"{", b"}"),
    (b"'", b"'"),
    (b'"', b'"'),
    (b"`", b"`"),
    (b"@(", b")"),
    (b"[", b"]"),
)


def odd(random: Random) -> Any:
    """A value that nobody expects."""
    kind = random.randrange(12)
    if kind < 5:
        return random.choice(TEXTS)
    if kind < 10:
        return copy.deepcopy(random.choice(VALUES))
    if kind == 10:
        return [odd(random) for _ in range(random.randrange(1, 4))]
    return {random.choice(("name", "kind", "x", "")): odd(random)}


def places(tree: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Every place in a tree: what holds it, and by which key."""
    found = [] if found is None else found
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found.append((tree, key))
        places(value, found)
    return found


def grown(tree: Any, random: Random) -> Any:
    """A tree with a few places changed; the tree itself is changed."""
    known = places(tree)
    gentle = random.random() < 0.5
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        if not known:
            return odd(random)
        holder, key = random.choice(known)
        if not _there(holder, key):
            continue
        if gentle:
            holder[key] = _of_its_kind(holder[key], random)
            continue
        match random.randrange(8):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case 2:
                other, where = random.choice(known)
                holder[key] = copy.deepcopy(other[where]) if _there(other, where) else odd(random)
            case 3 if isinstance(holder, dict):
                holder[random.choice(TEXTS)] = holder.pop(key)
            case 4:
                holder[key] = [holder[key]]
            case 5:
                holder[key] = str(holder[key]) if not isinstance(holder[key], str) else len(holder[key])
            case _:
                holder[key] = odd(random)
    return tree


def _of_its_kind(value: Any, random: Random) -> Any:
    """Another value of the same type: who checks types alone goes on with it, into whatever relies on more."""
    match value:
        case bool():
            return not value
        case int():
            return random.choice((0, 1, -1, value + 1, value * 1000, 2**31, 2**63, 10**30))
        case float():
            return random.choice((0.0, -1.0, value * 1e6, 1e12, 1e308))
        case str() if random.random() < 0.3:
            at = random.randrange(len(value) + 1)
            return value[:at] + random.choice(TEXTS) + value[at:]
        case str() if random.random() < 0.5:
            return random.choice((value.upper(), value[::-1], value[:-1], value * 2, f"{value}-1", f" {value}"))
        case str():
            return random.choice(TEXTS)
        case list() if value:
            return random.choice((value[:-1], value[1:], value[::-1], value * 2, value[:1] * 60))
        case dict() if value:
            left = dict(value)
            del left[random.choice(list(left))]
            return left
    return value


def _there(holder: Any, key: Any) -> bool:
    """Whether a place is still one after other changes."""
    return key in holder if isinstance(holder, dict) else key < len(holder)


@functools.lru_cache(4096)
def _parsed(data: bytes, parse: Callable[[bytes], Any]) -> bytes | None:
    """A tree for `marshal.loads`, which costs a tenth of parsing or copying; nothing, if it is no sound one."""
    try:
        return marshal.dumps(parse(data))
    except (ValueError, RecursionError):
        return None


def _yaml(data: bytes) -> Any:
    return yaml.load(data, LOADER)  # noqa: S506


def as_json(tree: Any) -> bytes:
    """As JSON; halves of surrogate pairs come along."""
    return json.dumps(tree).encode()


def as_yaml(tree: Any, random: Random) -> bytes:
    """As YAML, or as JSON, which is YAML as well."""
    if random.random() < 0.5:
        return as_json(tree)
    plain = random.random() < 0.5
    try:
        text = yaml.dump(tree, Dumper=DUMPER, sort_keys=False, allow_unicode=plain)
    except UnicodeEncodeError:
        text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=plain)
    return str(text).encode("utf-8", "replace")


def torn(data: bytes, random: Random) -> bytes:
    """Bytes with a few of them changed, cut, doubled or moved."""
    for _ in range(random.choice((1, 1, 2, 4))):
        size = len(data)
        at, to = sorted((random.randrange(size + 1), random.randrange(size + 1)))
        match random.randrange(8):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + data[to:]
            case 2:
                data = data[:to] + data[at : min(to, at + 400)] + data[to:]
            case 3:
                data = data[:at] + random.choice(BYTES) + data[at:]
            case 4 if size:
                data = data[: at - 1] + bytes([random.randrange(256)]) + data[at:]
            case 5:
                data = (
                    data[:at]
                    + random.choice((b"[", b"{", b"- ", b'{"a":', b"(")) * random.choice((3, DEEP))
                    + data[at:]
                )
            case 6:
                data = data[:at] + random.choice(TEXTS).encode("utf-8", "surrogatepass") + data[at:]
            case _:
                lines = data.split(b"\n")
                random.shuffle(lines)
                data = b"\n".join(lines)
    return data


def document(seed: bytes, random: Random) -> bytes:
    """A YAML or JSON file, changed as a tree or as bytes."""
    tree = _parsed(seed, _yaml)
    if tree is None or random.random() < 0.2:
        return torn(seed, random)
    return as_yaml(grown(marshal.loads(tree), random), random)


def json_document(seed: bytes, random: Random) -> bytes:
    """A JSON file, changed as a tree or as bytes."""
    return torn(seed, random) if random.random() < 0.15 else _json(seed, random)


def _json(data: bytes, random: Random) -> bytes:
    tree = _parsed(data, json.loads)
    if tree is None:
        return torn(data, random)
    try:
        return as_json(grown(marshal.loads(tree), random))
    except RecursionError:
        return torn(data, random)


def json_lines(seed: bytes, random: Random) -> bytes:
    """Lines of JSON: some changed, left out, doubled or in another order."""
    if random.random() < 0.15:
        return torn(seed, random)
    lines = [line for line in seed.split(b"\n") if line]
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(lines)) if lines else 0
        match random.randrange(6):
            case 0 if lines:
                del lines[at]
            case 1 if lines:
                lines.insert(random.randrange(len(lines)), lines[at])
            case 2:
                random.shuffle(lines)
            case 3 if lines:
                lines[at] = torn(lines[at], random)
            case _ if lines:
                lines[at] = _json(lines[at], random)
    return b"\n".join(lines) + random.choice((b"\n", b"", b"\n\n"))


def xml_document(seed: bytes, random: Random) -> bytes:
    """An XML file, changed as a tree or as bytes."""
    if random.random() < 0.3:
        return torn(seed, random)
    root = ET.fromstring(seed)
    for _ in range(random.choice((1, 1, 2, 4))):
        element = random.choice(list(root.iter()))
        name = random.choice([*element.attrib, "name", "time"])
        match random.randrange(7):
            case 0 if len(element):
                element.remove(random.choice(list(element)))
            case 1:
                element.append(copy.deepcopy(random.choice(list(root.iter()))))
            case 2:
                element.tag = random.choice(("testcase", "testsuite", "failure", "skipped", "error", "system-out", "x"))
            case 3:
                element.attrib.pop(name, None)
            case 4:
                element.text = _xml_text(random)
            case _:
                element.set(name, _xml_text(random))
    whole = ET.tostring(root)
    return torn(whole, random) if random.random() < 0.1 else whole


def _xml_text(random: Random) -> str:
    """A text that XML can hold."""
    text = random.choice((*TEXTS, "1e999", "nan", "-1", "[sig-windows] x", "]]>"))
    return "".join(each for each in text if each in "\t\n" or " " <= each < "\ud800")


def tokens(seed: bytes, random: Random) -> bytes:
    """A program: its words are changed, moved, doubled or nested, so that most of it is still one."""
    if random.random() < 0.3:
        return torn(seed, random)
    words = re.findall(rb"\w+|\s+|[^\w\s]", seed)
    for _ in range(random.choice((1, 2, 3, 6))):
        at, to = sorted((random.randrange(len(words) + 1), random.randrange(len(words) + 1)))
        match random.randrange(6):
            case 0:
                del words[at : at + random.randrange(1, 4)]
            case 1:
                words[to:to] = words[at : min(to, at + 12)]
            case 2:
                words.insert(at, random.choice(SIGNS))
            case 3 if at < len(words):
                words[at] = random.choice(words)
            case 4:
                opened, closed = random.choice(PAIRS)
                words[at:to] = [opened, *words[at:to], closed]
            case _:
                words.insert(at, random.choice((b"0", b"-1", b"99999999999999999999", b"1e308", b"x" * 300)))
        words = words or [b"x"]
    return b"".join(words)
