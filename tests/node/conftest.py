"""A mirror with one release, and the command line that uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from node.mirror import Mirror, running
from winready.cli.main import cli

RELEASE = "1.36.3"
ENOUGH = (
    "--endpoint", "api.example.com:6443", "--pod-cidr", "10.244.0.0/16", "--service-cidr", "10.96.0.0/12",
    "--dns", "10.96.0.10",
)  # fmt: skip
"""With a version, all that no cluster has to be asked for."""
Bundle = Callable[..., Result]


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    """A mirror that holds one release."""
    with running() as found:
        found.release(RELEASE)
        yield found


@pytest.fixture
def bundle(mirror: Mirror, tmp_path: Path) -> Bundle:
    """``winready node bundle`` of that release, from flags alone; later flags win."""

    def run(*arguments: str, to: str = "bundle") -> Result:
        command = ["node", "bundle", "--kubernetes", RELEASE, *ENOUGH, "--mirror", mirror.url]
        return CliRunner().invoke(cli, [*command, "--to", str(tmp_path / to), *arguments], catch_exceptions=False)

    return run
