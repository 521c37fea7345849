"""Long lists for people: what is alike is told once, with how often and where; what differs stays in sight.

Reports of a thousand nodes are as long as those of a few, because they name a thousand nodes no more than once.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Sequence

NAMED = 10
"""How many names, or rows of names, a list gives before it only counts."""
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)")
_NUMBER = re.compile(r"(?:(?<=-)|(?<![\w.:/-]))\d+(?![\w.:])")
_MADE_UP = re.compile(r"-[0-9a-f]{8,10}-[0-9a-z]{5}\b|(?<=-)[0-9a-f]{12}z?\b")
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?|\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])")
_WORD = re.compile(r"[\w.-]+")


def ranges(names: Iterable[str], most: int = NAMED) -> str:
    """Names in order, neighbours by number as ``windows-1 to windows-412``; beyond ``most`` of them only counted."""
    return _ranges(frozenset(names), most)


@functools.lru_cache(256)
def _ranges(names: frozenset[str], most: int) -> str:
    runs = _runs(sorted(names, key=_natural))
    shown: list[str] = []
    left = 0
    for run in runs:
        if len(shown) + (2 if len(run) == 2 else 1) > most:
            left += len(run)
        elif len(run) > 2:
            shown.append(f"{run[0]} to {run[-1]}")
        else:
            shown += run
    return ", ".join([*shown, *([f"{left} more"] if left else [])])


def folded(text: str, names: Collection[str]) -> str:
    """A sentence in which enumerations of these names are folded; everything else stays as it is."""
    if text.count(", ") < NAMED or not names:
        return text
    out: list[str] = []
    run: list[str] = []
    for part in text.split(", "):
        first, blank, rest = part.partition(" ")
        bare = first.rstrip(";:.")
        if run and bare in names:
            run.append(bare)
            if part == bare:
                continue
            part = f"{ranges(run)}{first[len(bare) :]}{blank}{rest}"
        elif run:
            out.append(ranges(run))
        run = []
        before, blank, last = part.rpartition(" ")
        if last in names:
            # The first of an enumeration has words before it.
            run = [last]
            part = f"{before}{blank}"
        out.append(part)
    if run:
        out.append(ranges(run))
    joined = ", ".join(out)
    return joined.replace(" , ", " ").removeprefix(", ")


def kind(text: str, nodes: Collection[str]) -> str:
    """What a title asks, without whom: names of nodes, numbers of pods and addresses are left open."""
    text = _ADDRESS.sub("*", _MADE_UP.sub("-*", text))
    text = _WORD.sub(lambda match: _open(match[0], nodes), text)
    return _NUMBER.sub("*", text)


def short(text: str, limit: int) -> str:
    """The beginning of a text that is too long for its place."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def _open(word: str, nodes: Collection[str]) -> str:
    bare = word.rstrip(".")
    return f"*{word[len(bare) :]}" if bare in nodes else word


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Numbers by their size, without reckoning: a name may have more digits than Python takes for one."""
    parts = [(part, part.lstrip("0")) for part in re.split(r"([0-9]+)", name) if part]
    return [(0, len(bare), bare) if part[0] in "0123456789" else (1, 0, part) for part, bare in parts]


def _runs(names: Sequence[str]) -> list[list[str]]:
    """Neighbours by number put together; two alone stay two."""
    found: list[list[str]] = []
    for name in names:
        if found and _next(found[-1][-1]) == name:
            found[-1].append(name)
        else:
            found.append([name])
    return found


def _next(name: str) -> str:
    """The name that would follow, by the last number before a domain; empty for names without one."""
    head, dot, domain = name.partition(".")
    match = _NUMBERED.fullmatch(head)
    if match is None:
        return ""
    before, number, behind = match.groups()
    follower = str(int(number) + 1)
    return f"{before}{follower.zfill(len(number)) if number.startswith('0') else follower}{behind}{dot}{domain}"
