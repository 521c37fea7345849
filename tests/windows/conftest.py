"""Tests on the ground for Windows programs; a marker tells what needs real programs of Kubernetes beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from windows.ground import Ground
from windows.worker import make_bundles
from windows_ground import ensure

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever does not say that it needs real programs of Kubernetes needs the ground alone."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("windows_programs") is None:
            item.add_marker("windows")


@pytest.fixture(scope="session", autouse=True)
def ground() -> Path:
    """The layers that every machine is made from; they are made if they are not there."""
    return ensure()


@pytest.fixture(scope="module")
def machine(ground: Path) -> Iterator[Ground]:
    """A machine that the tests of a module share."""
    with Ground() as found:
        yield found


@pytest.fixture(scope="session")
def bundles(ground: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Bundles of two releases by version, whose programs are stand-ins."""
    return make_bundles(tmp_path_factory.mktemp("bundles"))
