"""Secrets have no place in a record: what looks like one, or is known to be one, is cut out before anything is told.

Works on plain text and on JSON alike, where line ends and quotes are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

REMOVED = "[secret removed]"
LEAST = 6
"""Known secrets shorter than this are too likely to be ordinary words."""
_WORD = r"[A-Za-z0-9._~+/=-]"
_PATTERNS = (
    (re.compile(r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"), REMOVED),
    (re.compile(r"-----BEGIN [A-Z0-9 ]+-----[^\"]*?(?:-----END [A-Z0-9 ]+-----|(?=\\?\")|\Z)"), REMOVED),
    (re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]*"), REMOVED),
    (re.compile(rf"(?i)\b(bearer|basic) {_WORD}{{12,}}"), rf"\1 {REMOVED}"),
    (
        re.compile(
            r"(?i)\b((?:id-|refresh-|access-|client-)?(?:token|password|secret|key-data)\\?[\"']?\s*[:=]\s*\\?[\"']?)"
            rf"{_WORD}{{12,}}"
        ),
        rf"\1{REMOVED}",
    ),
    (re.compile(r"(://)[^/\s\"@]+:[^/\s\"@]+(@)"), rf"\1{REMOVED}\2"),
)


def without_secrets(text: str, known: Iterable[str] = ()) -> str:
    """The text without anything that looks like a secret or is in ``known``."""
    for secret in known:
        if len(secret) >= LEAST:
            text = text.replace(secret, REMOVED)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text
