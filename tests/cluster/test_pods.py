"""Commands in pods: what is tried again, and what must not be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from winready.cluster.client import Client
from winready.cluster.errors import ExecFailed, NotStarted
from winready.cluster.execution import Execution
from winready.cluster.inventory import read_node
from winready.cluster.pods import RETRIES, Pod
from winready.cluster.settings import Settings
from winready.cluster.timing import Timing

DONE = Execution(0, b"done", b"")
NODE = read_node({"metadata": {"name": "windows-1", "uid": "u"}, "spec": {}, "status": {"nodeInfo": {}}})


class Executor:
    """Answers commands one after the other as told."""

    def __init__(self, answers: Sequence[Execution | ExecFailed]) -> None:
        self.answers = list(answers)

    async def exec(self, *_: object, deadline: float) -> Execution:
        answer = self.answers.pop(0)
        if isinstance(answer, ExecFailed):
            raise answer
        return answer


def pod(*answers: Execution | ExecFailed) -> Pod:
    client = cast(Client, Executor(answers))
    settings = Settings(run_id="r", timing=Timing(10_000))
    return Pod(client, settings, "ns", "p", "uid", NODE, "windows", ("10.0.0.1",), "agnhost", "id")


@pytest.mark.parametrize("failure", [ExecFailed("the stream broke"), NotStarted("the runtime did not run it")])
async def test_a_command_is_tried_again_whose_stream_broke(failure: ExecFailed) -> None:
    assert await pod(failure, failure, DONE).run(["cmd"]) == DONE


async def test_what_may_not_run_twice_is_tried_again_only_if_it_was_never_started() -> None:
    assert await pod(NotStarted("refused"), DONE).run(["cmd"], again=False) == DONE
    with pytest.raises(ExecFailed, match="broke"):
        await pod(ExecFailed("the stream broke"), DONE).run(["cmd"], again=False)


async def test_a_runtime_that_never_starts_a_command_is_believed_in_the_end() -> None:
    with pytest.raises(NotStarted):
        await pod(*[NotStarted("no")] * (RETRIES + 1), DONE).run(["cmd"])
