"""Checks are tried as users run them, from the command line, and in process where the cluster is changed for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from cli.conftest import CommandLine, command_line
from engine.conftest import _enter, shared_stage, stage
from engine.stage import Stage
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop

__all__ = ["CommandLine", "command_line", "shared_stage", "stage"]


@pytest.fixture
def staged() -> Iterator[Callable[..., Stage]]:
    """Makes a stage of its own with another kind of sandbox."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        made: list[Sandbox] = []

        def make(**plan: object) -> Stage:
            sandbox = Sandbox(Plan(name="other", **plan))  # type: ignore[arg-type]
            runner.run(_enter(sandbox))
            made.append(sandbox)
            return Stage(runner, sandbox)

        yield make
        for sandbox in made:
            runner.run(sandbox.__aexit__(None, None, None))


def broken(stage: Stage, fault: str, node: str) -> None:
    """Give a node of a cluster a fault."""
    stage.do(lambda client: stage.sandbox.break_fault(fault, node))
