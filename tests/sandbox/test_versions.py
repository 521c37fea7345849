"""A release that a sandbox is to report is written plainly; programs may have more to say about themselves."""

from __future__ import annotations

import pytest

from winready_sandbox.versions import minor_of, minor_of_build, release


@pytest.mark.parametrize("text", ["1.36", "v1.36", "1.36.3", "v1.36.3", release(36)])
def test_releases(text: str) -> None:
    assert minor_of(text) == minor_of_build(text) == 36


@pytest.mark.parametrize("text", ["v1.36.3-rc.1", "v1.36.3+vendor.1", "v1.36.3-dirty"])
def test_builds_of_a_release(text: str) -> None:
    assert minor_of_build(text) == 36
    with pytest.raises(ValueError, match="not a Kubernetes version"):
        minor_of(text)


@pytest.mark.parametrize("text", ["", "36", "2.36", "latest", "v1"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kubernetes version"):
        minor_of_build(text)
