"""Which requirements a run is about: categories in any letter case, ids, and what is left out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import msgspec

from winready.engine import defaults
from winready.spec.model import Category, Requirement, Specification


class SelectionError(Exception):
    """The selection names something unknown or selects nothing; the message says what to write instead."""


class Selection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the operator asked for, as given."""

    profile: str = defaults.PROFILE
    categories: list[str] = []
    requirements: list[str] = []
    skip: list[str] = []
    features: list[str] = []
    """Features of the matrix to show; they select no requirement, and whoever names them names what shows them."""


def select(specification: Specification, selection: Selection) -> list[Requirement]:
    """The requirements of a selection, in the order of the standard."""
    chosen = _chosen(specification, selection)
    skipped = {_requirement(specification, text).id for text in selection.skip}
    result = [item for item in specification.requirements if item.id in chosen and item.id not in skipped]
    if not result and not selection.features:
        raise SelectionError("the selection is empty: nothing would be verified; loosen --skip or select more")
    return result


def _chosen(specification: Specification, selection: Selection) -> set[str]:
    chosen: set[str] = set()
    for text in selection.categories:
        names = {category.name for category in _categories(specification, text)}
        chosen |= {item.id for item in specification.requirements if item.category in names}
    chosen |= {_requirement(specification, text).id for text in selection.requirements}
    if selection.categories or selection.requirements:
        return chosen
    if selection.profile == "full":
        return {item.id for item in specification.requirements}
    if selection.features:
        return chosen
    return {item.id for item in specification.requirements if specification.level(item) == "core"}


def _categories(specification: Specification, text: str) -> Sequence[Category]:
    wanted = text.casefold()
    for category in specification.document.categories:
        if wanted in (name.casefold() for name in (category.name, *category.aliases)):
            return [category]
    known = [category.name for category in specification.document.categories]
    raise SelectionError(f"unknown category {text!r}{_hint(text, known)}")


def _requirement(specification: Specification, text: str) -> Requirement:
    wanted = text.casefold()
    for item in specification.requirements:
        if wanted in (item.id.casefold(), item.key.casefold()):
            return item
    known = [item.id for item in specification.requirements]
    raise SelectionError(f"unknown requirement {text!r}{_hint(text, known)}")


def _hint(text: str, known: Iterable[str]) -> str:
    by_case = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(text.casefold(), by_case, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {by_case[near[0]]!r}?"
    return "; 'winready spec list' shows what there is"
