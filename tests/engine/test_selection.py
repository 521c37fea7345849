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


@pytest.mark.parametrize(
    ("older", "keys"),
    [
        ("hostProcess", "P1 P2 P3 P4 P5 P6 P7"),
        ("activeDirectory", "A1 A2 A3 A4"),
        ("networkPolicy", "K1 K2"),
        ("serviceProxy", "X1 X2 X3 X4 X5"),
        ("Extend.ServiceProxy", "X1 X2 X3 X4 X5"),
        ("EXTEND.SERVICEPROXY", "X1 X2 X3 X4 X5"),
    ],
)
def test_categories_by_their_older_names(older: str, keys: str) -> None:
    known = {item.id: item.key for item in STANDARD.requirements}
    assert [known[name] for name in ids(categories=[older])] == keys.split()


def test_older_names_go_together() -> None:
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
