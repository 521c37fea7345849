"""Amounts as nodes report them."""

from __future__ import annotations

import pytest

from winready.cluster.quantity import amount


@pytest.mark.parametrize(
    ("text", "number"), [("4", 4), ("3920m", 3.92), ("16Gi", 16 * 2**30), ("16777216Ki", 16 * 2**30), ("2k", 2000)]
)
def test_amounts(text: str, number: float) -> None:
    assert amount(text) == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "Gi", "4GiB", "4mm"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        amount(text)
