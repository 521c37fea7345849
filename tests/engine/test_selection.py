"""What a selection selects, and what it says when it selects nothing."""

from __future__ import annotations

import pytest

from winready.engine.selection import Selection, SelectionError, select
from winready.spec.loader import load_standard

STANDARD = load_standard()


def ids(**given: object) -> list[str]:
    return [item.id for item in select(STANDARD, Selection(**given))]  # type: ignore[arg-type]


def test_profiles() -> None:
    assert len(ids()) == 24
    assert len(ids(profile="full")) == 46


@pytest.mark.parametrize("text", ["Core.Network", "core.network", "CORE.NETWORK"])
def test_categories_in_any_letter_case(text: str) -> None:
    assert len(ids(categories=[text])) == 13


def test_categories_by_their_older_names() -> None:
    assert len(ids(categories=["hostprocess"])) == 7
    assert len(ids(categories=["serviceProxy", "ACTIVEDIRECTORY"])) == 9


def test_requirements_by_id_or_key_and_without_repetition() -> None:
    assert ids(requirements=["core.network.dns-internal", "n10", "N1"]) == [
        "core.network.windows-to-linux-service-ip",
        "core.network.dns-internal",
    ]


def test_skip() -> None:
    assert "core.network.dns-internal" not in ids(skip=["N10"])


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"categories": ["core.netwrok"]}, "did you mean 'Core.Network'?"),
        ({"requirements": ["core.network.dns-internl"]}, "did you mean 'core.network.dns-internal'?"),
        ({"skip": ["zzzz"]}, "winready spec list"),
        ({"requirements": ["N1"], "skip": ["N1"]}, "the selection is empty"),
    ],
)
def test_wrong_selections_say_what_to_write(given: dict[str, list[str]], hint: str) -> None:
    with pytest.raises(SelectionError) as caught:
        ids(**given)
    assert hint in str(caught.value)
