"""Addresses of places: what is understood, and what a mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from winready.store.addresses import Place, is_address, parse
from winready.store.errors import WrongAddress


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("s3://shop-runs/fleet/prod", Place("s3", "shop-runs", "fleet/prod")),
        ("S3://shop-runs/", Place("s3", "shop-runs")),
        ("gs://shop-runs", Place("gs", "shop-runs")),
        ("az://runs/fleet/", Place("az", "runs", "fleet")),
        ("file:///mnt/share/runs", Place("file", folder=Path("/mnt/share/runs"))),
        ("file://localhost/mnt/a%20b", Place("file", folder=Path("/mnt/a b"))),
        ("./winready-runs", Place("path", folder=Path("winready-runs"))),
        ("s3:runs", Place("path", folder=Path("s3:runs"))),
    ],
)
def test_addresses_and_paths_are_told_apart(text: str, place: Place) -> None:
    assert parse(text) == place
    assert place.remote == is_address(text)
    assert parse(place.address) == place


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write s3://BUCKET/PREFIX"),
        ("s3://", "names no bucket"),
        ("s3://UPPER/x", "names no bucket"),
        ("az://-/x", "names no container"),
        ("s3://runs/a//b", "has a prefix"),
        ("s3://runs/../other", "has a prefix"),
        ("s3://runs/a%2e", "has a prefix"),
        ("file://server/share", "three slashes"),
        ("file:///a/../b", "leads upwards"),
        ("ftp://runs/x", "write s3://BUCKET/PREFIX"),
        ("https://runs.s3.example/x", "AWS_ENDPOINT_URL"),
        ("gcs://runs/x", "write gs://runs/x"),
        ("s3://[runs/x", "cannot be read"),
        (f"s3://runs/{'x' * 2000}", "at most 1024 bytes"),
        ("s3://runs/a\0b", "NUL"),
    ],
)
def test_a_wrong_address_is_answered_with_what_to_write(text: str, says: str) -> None:
    with pytest.raises(WrongAddress) as caught:
        parse(text)
    assert says in f"{caught.value.message} {caught.value.remedy}"


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIA:hunter2hunter2@runs/x",
        "az://runs/x?sv=2024&sig=hunter2hunter2",
        "https://runs.example/x?X-Amz-Signature=hunter2hunter2",
        "s3://runs/x#hunter2hunter2",
        "ftp://me:hunter2hunter2@host/",
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(WrongAddress) as caught:
        parse(text)
    assert "hunter2" not in f"{caught.value.message} {caught.value.remedy}"
    assert "environment" in caught.value.remedy


def test_places_have_an_above_and_a_below() -> None:
    place = parse("s3://runs/fleet")
    assert place.below("261115-101500-ab12").address == "s3://runs/fleet/261115-101500-ab12"
    assert place.below("261115-101500-ab12").above() == (place, "261115-101500-ab12")
    assert parse("s3://runs/one").above() == (parse("s3://runs"), "one")
    assert parse("file:///mnt/runs/one").above() == (parse("file:///mnt/runs"), "one")
