"""Kubernetes versions are read as clusters, programs and people write them."""

from __future__ import annotations

import pytest

from winready.spec.versions import Version, is_release, release_order, said_version


@pytest.mark.parametrize("text", ["1.34", "v1.34", " v1.34.2 ", "v1.34.2-gke.100", "v1.34.2+k3s1", "1.34+"])
def test_minor_versions(text: str) -> None:
    assert Version.parse(text) == Version(1, 34)


@pytest.mark.parametrize("text", ["", "1", "1.x", "unknown", "1.34 or so", "1.34-or so"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="is not a Kubernetes version"):
        Version.parse(text)


@pytest.mark.parametrize(
    ("text", "exact"),
    [("1.36.3", True), ("v1.37.0-rc.1", True), ("1.36", False), ("v1.36.3 ", False), ("<html>", False)],
)
def test_releases_are_exact(text: str, exact: bool) -> None:
    assert is_release(text) is exact


def test_releases_are_sorted_by_number() -> None:
    assert sorted(["v1.10.0", "v1.9.12", "v1.9.2"], key=release_order) == ["v1.9.2", "v1.9.12", "v1.10.0"]


def test_programs_say_their_version_among_other_words() -> None:
    assert said_version('go: "v1.36.3-rc.1", built today') == "v1.36.3-rc.1"
    assert said_version("usage: e2e.test 1.36") is None
