"""Secrets have no place in a record: what looks like one, or is known to be one, is cut out before anything is told.

Works on plain text and on JSON alike, where line ends and quotes are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

REMOVED = "[secret removed]"
LEAST = 6
"""Known secrets shorter than this are too likely to be ordinary words."""
LONGEST_LINE = 1024 * 1024
"""Bytes after which a line is taken to have ended."""
_FIRST_LINE, _LAST_LINE = b"-----BEGIN ", b"-----END "
_WORD = r"[A-Za-z0-9._~+/=-]"
_PATTERNS = (
    (re.compile(r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"), REMOVED, "eyj"),
    (re.compile(r"-----BEGIN [A-Z0-9 ]+-----[^\"]*?(?:-----END [A-Z0-9 ]+-----|(?=\\?\")|\Z)"), REMOVED, "-----begin "),
    (re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]*"), REMOVED, "ls0tls1crudjti"),
    (re.compile(rf"(?i)\b(bearer|basic) {_WORD}{{12,}}"), rf"\1 {REMOVED}", "bearer ", "basic "),
    (
        re.compile(
            r"(?i)\b((?:id-|refresh-|access-|client-)?(?:token|password|secret|key-data)\\?[\"']?\s*[:=]\s*\\?[\"']?)"
            rf"{_WORD}{{12,}}"
        ),
        rf"\1{REMOVED}",
        "token",
        "password",
        "secret",
        "key-data",
    ),
    (re.compile(r"(://)[^/\s\"@]+:[^/\s\"@]+(@)"), rf"\1{REMOVED}\2", "://"),
)
"""What looks like a secret, what stands in its place, and letters (in lower case) of which it has some."""


def without_secrets(text: str, known: Iterable[str] = ()) -> str:
    """The text without anything that looks like a secret or is in ``known``."""
    for secret in known:
        if len(secret) >= LEAST:
            text = text.replace(secret, REMOVED)
    # Looking for a few letters is much cheaper than looking for a pattern, and most texts lack them.
    plain = text.lower() if text.isascii() else None
    for pattern, replacement, *letters in _PATTERNS:
        if plain is None or any(each in plain for each in letters):
            text = pattern.sub(replacement, text)
    return text


class SecretFilter:
    """Takes the output of a foreign program in pieces and gives it back, line by line, without secrets.

    In mark-up, a tag ends whatever was begun before it, so that the document stays whole.
    """

    def __init__(self, *, markup: bool = False) -> None:
        self._rest = b""
        self._inside = False
        """Between the first and the last line of a key or certificate."""
        self._markup = markup

    def feed(self, chunk: bytes) -> bytes:
        """The lines that are whole by now."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
            return b"\n".join(map(self._clean, lines))
        return b"".join(self._clean(line) + b"\n" for line in lines)

    def end(self) -> bytes:
        """What is left when nothing more follows."""
        rest, self._rest = self._rest, b""
        return self._clean(rest)

    def _clean(self, line: bytes) -> bytes:
        if not self._markup:
            return self._piece(line)
        first, *others = line.split(b"<")
        pieces = [self._piece(first)]
        for other in others:
            self._inside = False
            pieces.append(self._piece(other))
        return b"<".join(pieces)

    def _piece(self, piece: bytes) -> bytes:
        if self._inside:
            _, mark, piece = piece.partition(_LAST_LINE)
            if not mark:
                return b""
            self._inside = False
            piece = piece.partition(b"-----")[2]
        start = piece.rfind(_FIRST_LINE)
        self._inside = start >= 0 and _LAST_LINE not in piece[start:]
        # Bytes that are no text come back as they were.
        return without_secrets(piece.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
