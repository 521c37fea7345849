"""The text format of Prometheus: metrics with help and type, and labels in which no text of strangers means more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from winready.report.printable import printable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LABEL = 200
"""Bytes of a value that somebody else chose."""
Labels = Mapping[str, str]


def metric(name: str, text: str, samples: Sequence[tuple[Labels, float]], kind: str = "gauge") -> Iterator[str]:
    """A metric; without samples there is none."""
    if not samples:
        return
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        shown = ",".join(f'{key}="{_escaped(word)}"' for key, word in labels.items())
        number = str(value) if isinstance(value, int) else f"{value:.3f}"
        yield f"{name}{{{shown}}} {number}" if shown else f"{name} {number}"


def _escaped(value: str) -> str:
    return line(value, LABEL).replace("\\", "\\\\").replace('"', '\\"')


def line(text: str, limit: int) -> str:
    """Text of strangers as one line of at most that many bytes."""
    return cut(" ".join(printable(text).split()), limit)


def cut(text: str, limit: int) -> str:
    """The beginning of a text, in at most that many bytes of UTF-8."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    return data[: limit - 3].decode(errors="ignore") + "…"
