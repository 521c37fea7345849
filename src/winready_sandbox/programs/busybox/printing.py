"""`echo` and `printf`, which the shell has built in."""

from __future__ import annotations

import re

_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "\\": "\\",
    "e": "\x1b",
    '"': '"',
}


def unescape(text: str) -> tuple[str, bool]:
    """Backslash sequences resolved, and whether `\\c` ended the output."""
    ended = False

    def one(match: re.Match[str]) -> str:
        nonlocal ended
        if ended:
            return ""
        code = match[1]
        if code == "c":
            ended = True
            return ""
        if code[0] == "x":
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        return _ESCAPES.get(code, "\\" + code)

    cut = re.split(r"(?<!\\)\\c", text, maxsplit=1)
    result = re.sub(r"\\(x[0-9a-fA-F]{1,2}|0?[0-7]{1,3}|.)", one, cut[0])
    return result, ended or len(cut) > 1


def echo(arguments: list[str]) -> str:
    """What echo prints."""
    newline, escapes = True, False
    rest = list(arguments)
    while rest and re.fullmatch(r"-[neE]+", rest[0]):
        newline = newline and "n" not in rest[0]
        escapes = "e" in rest[0] or (escapes and "E" not in rest[0])
        rest.pop(0)
    text = " ".join(rest)
    if escapes:
        text, ended = unescape(text)
        newline = newline and not ended
    return text + ("\n" if newline else "")


def printf(arguments: list[str]) -> str:
    """What printf prints: the format again and again until the arguments are used up."""
    if not arguments:
        return ""
    form, values = arguments[0], list(arguments[1:])
    out: list[str] = []
    while True:
        before = len(values)
        text, ended = _once(form, values)
        out.append(text)
        if ended or not values or len(values) == before:
            return "".join(out)


def _once(form: str, values: list[str]) -> tuple[str, bool]:
    ended = False

    def one(match: re.Match[str]) -> str:
        nonlocal ended
        if match[0] == "%%":
            return "%"
        flags, kind = match[1], match[2]
        if "*" in flags:
            flags = flags.replace("*", values.pop(0) if values else "0", 1)
        value = values.pop(0) if values else ""
        if kind == "b":
            text, ended = unescape(value)
            return f"%{flags}s" % text
        if kind in "sc":
            return f"%{flags}s" % (value[:1] if kind == "c" else value)
        if kind in "diuxXo":
            return f"%{flags}{'d' if kind in 'iu' else kind}" % _integer(value)
        return f"%{flags}{kind}" % float(value or 0)

    template, stop = unescape(form)
    return re.sub(r"%%|%([-+ #0]*[\d*]*(?:\.\d+)?)([bscdiuxXofeEgG])", one, template), stop or ended


def _integer(text: str) -> int:
    if text[:1] in ("'", '"'):
        return ord(text[1:2] or "\0")
    try:
        return int(text or "0", 0)
    except ValueError:
        match = re.match(r"-?\d+", text)
        return int(match[0]) if match else 0
