"""What an operator may write about a deployment, checked by Kubernetes' own rules before anything reaches a cluster."""

from __future__ import annotations

import re

from winready.cluster.quantity import amount

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_LONGEST_NAME = 52
"""Of a CronJob, whose jobs get eleven characters more."""
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*"
_IMAGE = re.compile(
    rf"(?:(?:{_HOST}|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of the week", 0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}")
_MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = re.compile(r"@every (\d+(\.\d+)?(h|m|s))+")
_LONGEST_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
NOT_OURS = ("default", "kube-system", "kube-public", "kube-node-lease")
"""Namespaces that nobody gives away."""


def check_label(text: str, what: str) -> str:
    """The name of a namespace, of an object whose name becomes a label, or of a Job."""
    longest = 63 if what == "namespace" else _LONGEST_NAME
    if len(text) > longest or not _LABEL.fullmatch(text):
        raise ValueError(
            f"{text[:80]!r} cannot be the name of a {what}: at most {longest} lower-case letters, digits and '-', "
            "with a letter or digit at both ends"
        )
    return text


def check_subdomain(text: str, what: str) -> str:
    """The name of most other objects."""
    if len(text) > 253 or not _SUBDOMAIN.fullmatch(text):
        raise ValueError(
            f"{text[:80]!r} cannot be the name of a {what}: lower-case letters, digits, '-' and '.', with a letter or "
            "digit at both ends"
        )
    return text


def check_image(text: str) -> str:
    """The reference of an image."""
    if len(text) > 500 or not _IMAGE.fullmatch(text):
        raise ValueError(
            f"{text[:120]!r} is not the name of an image; write [REGISTRY/]NAME[:TAG][@sha256:DIGEST] in lower case, "
            "such as registry.example.com/winready:0.1.0"
        )
    return text


def check_size(text: str) -> str:
    """The size of a volume."""
    try:
        # Python's numbers are more than Kubernetes': 1_0, inf, 1e9.
        wanted = amount(text) if re.fullmatch(r"[0-9.]+[A-Za-z]*", text) else 0
    except ValueError:
        wanted = 0
    if wanted < 1:
        raise ValueError(f"{text[:40]!r} is not a size; write it like 1Gi")
    return text


def check_schedule(text: str) -> str:
    """A cron expression as Kubernetes reads it: five fields or a macro, Sunday is 0 and never 7."""
    if text in _MACROS or _EVERY.fullmatch(text):
        return text
    if text.startswith(("TZ=", "CRON_TZ=")):
        raise ValueError(f"{text[:80]!r}: Kubernetes takes no time zone in a schedule; give it with --time-zone")
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(
            f"{text[:80]!r} is not a schedule: {len(fields)} fields instead of five (minute, hour, day of the month, "
            "month, day of the week), such as '0 3 * * 1' for Mondays at three, or @weekly"
        )
    chosen = [_chosen(field, *rule) for field, rule in zip(fields, _FIELDS, strict=True)]
    days, months = chosen[2], chosen[3]
    if fields[4] in "*?" and min(days) > max(_LONGEST_MONTHS.get(month, 31) for month in months):
        raise ValueError(f"{text[:80]!r} names a day that none of its months has")
    return text


def check_zone(text: str) -> str:
    """The name of a time zone; whether the cluster knows it, only the cluster can say."""
    if text.casefold() == "local" or not _ZONE.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is no time zone; write its name, such as Etc/UTC or Europe/Berlin")
    return text


def _chosen(text: str, name: str, low: int, high: int, names: dict[str, int]) -> set[int]:
    """The numbers that a field of a schedule stands for."""
    chosen: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        start, dash, end = span.partition("-")
        first = low if start in ("*", "?") else _number(start, names)
        last = high if start in ("*", "?") or (slash and not dash) else first
        if dash:
            last = _number(end, names)
        every = int(step) if step.isascii() and step.isdigit() and len(step) <= 9 else 0 if slash else 1
        if first is None or last is None or every < 1 or (dash and start in ("*", "?")):
            raise ValueError(f"{text[:40]!r} says nothing about the {name}; write numbers, '1-5', '*/15', lists or '*'")
        if not low <= first <= last <= high:
            raise ValueError(f"{text[:40]!r} is outside of what the {name} can be: {low} to {high}")
        chosen |= set(range(first, last + 1, every))
    return chosen


def _number(text: str, names: dict[str, int]) -> int | None:
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    return names.get(text.casefold())
