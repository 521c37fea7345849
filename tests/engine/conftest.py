"""The stage that tests of the engine share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from cli.conftest import cluster, command_line, kubeconfig
from engine.stage import Stage
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop

__all__ = ["cluster", "command_line", "kubeconfig"]


@pytest.fixture(scope="session")
def shared_stage() -> Iterator[Stage]:
    """One sandbox for all runs, in good health."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        sandbox = Sandbox(Plan(name="stage"))
        runner.run(_enter(sandbox))
        yield Stage(runner, sandbox)
        runner.run(sandbox.__aexit__(None, None, None))


async def _enter(sandbox: Sandbox) -> None:
    await sandbox.__aenter__()
    await sandbox.settled()


@pytest.fixture
def stage(shared_stage: Stage) -> Iterator[Stage]:
    """The same, for one test, which leaves the cluster as it found it."""
    yield shared_stage
    assert shared_stage.left() == []
