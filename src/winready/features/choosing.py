"""Which features a run is to show, and what it must verify for that."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Sequence

import msgspec

from winready.engine.options import Options
from winready.engine.selection import Selection, SelectionError
from winready.features import catalogue
from winready.lint import matrix


def find(queries: Sequence[str], areas: Sequence[str] = ()) -> list[str]:
    """The ids of the features that these words and areas mean; without any, of all. Raises `SelectionError`."""
    chosen: set[str] = set()
    for query in queries:
        found = matrix.find(query)
        if not found:
            raise SelectionError(f"no feature matches {query!r}; 'winready matrix' lists them all")
        chosen |= {feature.id for feature in found}
    known = {feature.area.casefold(): feature.area for feature in matrix.load()}
    for area in areas:
        if area.casefold() not in known:
            near = difflib.get_close_matches(area.casefold(), known, n=1, cutoff=0.4)
            hint = f"did you mean {known[near[0]]!r}?" if near else f"there are {', '.join(known.values())}"
            raise SelectionError(f"no feature is in the area {area!r}; {hint}")
        chosen |= {feature.id for feature in matrix.load() if feature.area == known[area.casefold()]}
    everything = not queries and not areas
    return [name for name in catalogue.load() if everything or name in chosen]


def requirements_of(features: Iterable[str]) -> list[str]:
    """The requirements that show these features, each once."""
    rows = catalogue.load()
    return list(dict.fromkeys(name for each in features for name in rows[each].requirements))


def selected(selection: Selection, features: Sequence[str]) -> Selection:
    """The selection with these features and with the requirements that show them."""
    again = {*selection.requirements, *selection.skip}
    whole = selection.profile == "full" and not selection.categories and not selection.requirements
    more = [] if whole else [name for name in requirements_of(features) if name not in again]
    return msgspec.structs.replace(
        selection,
        requirements=[*selection.requirements, *more],
        features=list(dict.fromkeys([*selection.features, *features])),
    )


def showing(options: Options, features: Sequence[str]) -> Options:
    """The options of a run that also shows these features."""
    selection = selected(options.selection, features)
    rows = catalogue.load()
    return dataclasses.replace(
        options,
        selection=selection,
        features=tuple(catalogue.wanted(rows[name]) for name in selection.features if name in rows),
    )
