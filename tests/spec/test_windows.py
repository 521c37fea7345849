"""Windows builds are read in every form in which kubelets, people and ``ver`` write them, and in no other."""

from __future__ import annotations

import pytest

from winready.spec.windows import banner_build, build_number, kernel_build


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10.0.20348", 20348),
        ("10.0.20348.2700", 20348),
        ("20348", 20348),
        (" 26100.1 ", 26100),
        ("6.3.9600", None),
        ("2022", None),
        ("10.0.20348-amd64", None),
        ("", None),
    ],
)
def test_numbers(text: str, number: int | None) -> None:
    assert build_number(text) == number


@pytest.mark.parametrize(
    ("version", "build"),
    [
        ("10.0.20348.2700", "10.0.20348"),
        ("10.0.17763.1 (17763.1.amd64fre)", "10.0.17763"),
        ("6.8.0-45-generic", "6.8.0"),
        ("unknown", ""),
    ],
)
def test_kernel_versions(version: str, build: str) -> None:
    assert kernel_build(version) == build


@pytest.mark.parametrize(
    ("output", "build"),
    [
        ("\r\nMicrosoft Windows [Version 10.0.20348.2700]\r\n", "10.0.20348"),
        ("Microsoft Windows [Version 10.0.17763]", "10.0.17763"),
        ("Microsoft Windows [Versión 10.0.20348.587]", "10.0.20348"),
        ("Microsoft Windows [version 10.0.26100.1]", "10.0.26100"),
        ("Linux 6.8.0", ""),
        ("10.0.20348", ""),
    ],
)
def test_banners(output: str, build: str) -> None:
    assert banner_build(output) == build
