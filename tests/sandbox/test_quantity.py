"""Quantities are exact, and what is none is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from winready_sandbox.quantity import canonical, of_bytes, parse


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("500m", Fraction(1, 2)),
        ("2Gi", 2 * 2**30),
        ("1.5k", 1500),
        ("1e3", 1000),
        ("3E", 3 * 10**18),
        ("-1", -1),
        (".5", Fraction(1, 2)),
        (2, 2),
        ("100n", Fraction(1, 10**7)),
    ],
)
def test_numbers(text: object, number: Fraction | int) -> None:
    assert parse(text) == number


@pytest.mark.parametrize("text", ["", "Gi", "1GiB", "1 Gi", "one", "1e999", True, None, "0x10"])
def test_what_is_no_quantity(text: object) -> None:
    with pytest.raises(ValueError, match=r"quantity|range"):
        parse(text)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0", "0"),
        (2, "2"),
        ("1e3", "1e3"),
        ("100Mi", "100Mi"),
        ("128974848", "128974848"),
    ],
)
def test_written_as_the_api_server_writes_them(given: object, written: str) -> None:
    assert canonical(given) == written


@pytest.mark.parametrize(
    ("size", "written"), [(0, "0"), (1000, "1000"), (2**20, "1Mi"), (2**30 + 2**10, "1048577Ki"), (3 * 2**30, "3Gi")]
)
def test_bytes(size: int, written: str) -> None:
    assert of_bytes(size) == written
    assert parse(written) == size
