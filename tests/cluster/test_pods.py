"""Commands in pods: what is tried again, and what must not be."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import cast

import pytest

from winready.cluster.client import Client, Object
from winready.cluster.errors import ExecFailed, NotStarted
from winready.cluster.execution import Execution
from winready.cluster.inventory import read_node
from winready.cluster.pods import BREAKS, REFUSALS, Pod, from_the_start
from winready.cluster.resources import NODES, Resource
from winready.cluster.settings import Settings
from winready.cluster.timing import Timing

DONE = Execution(0, b"done", b"")
NODE = read_node({"metadata": {"name": "windows-1", "uid": "u"}, "spec": {}, "status": {"nodeInfo": {}}})


class Executor:
    """Answers commands one after the other as told."""

    patience = 0.0

    def __init__(self, answers: Sequence[Execution | ExecFailed], status: Object | None) -> None:
        self.answers = list(answers)
        self.status = status
        self.ready = "True"

    async def find(self, resource: Resource, *_: object) -> Object:
        """The pod and its node as the API has them."""
        if resource is NODES:
            conditions = [{"type": "Ready", "status": self.ready}]
            return {"metadata": {"name": "windows-1", "uid": "u"}, "status": {"conditions": conditions}}
        return {"status": {"containerStatuses": [{"name": "main", **(self.status or {"state": {"running": {}}})}]}}

    async def exec(self, *_: object, deadline: float, beside: bool) -> Execution:
        answer = self.answers.pop(0)
        if isinstance(answer, ExecFailed):
            raise answer
        return answer


class Busy:
    """Commands that never end, as many as are asked for."""

    patience = 0.0

    def __init__(self) -> None:
        self.running = 0

    async def exec(self, *_: object, deadline: float, beside: bool) -> Execution:
        self.running += 1
        await asyncio.Event().wait()
        raise AssertionError


def pod(*answers: Execution | ExecFailed, status: Object | None = None) -> Pod:
    client = cast(Client, Executor(answers, status))
    settings = Settings(run_id="r", timing=Timing(10_000))
    return Pod(client, settings, "ns", "p", "uid", NODE, "windows", ("10.0.0.1",), "agnhost", "id")


@pytest.mark.parametrize("failure", [ExecFailed("the stream broke"), NotStarted("the runtime did not run it")])
async def test_a_command_is_tried_again_whose_stream_broke(failure: ExecFailed) -> None:
    assert await pod(failure, failure, DONE).run(["cmd"]) == dataclasses.replace(DONE, again=2)


async def test_what_may_not_run_twice_is_tried_again_only_if_it_was_never_started() -> None:
    assert (await pod(NotStarted("refused"), DONE).run(["cmd"], again=False)).exit_code == 0
    with pytest.raises(ExecFailed, match="broke"):
        await pod(ExecFailed("the stream broke"), DONE).run(["cmd"], again=False)


async def test_a_runtime_that_never_starts_a_command_is_believed_in_the_end() -> None:
    with pytest.raises(NotStarted, match=r"^no$"):
        await pod(*[NotStarted("no")] * (REFUSALS + 1), DONE).run(["cmd"])


async def test_a_command_whose_stream_always_breaks_is_given_up() -> None:
    with pytest.raises(ExecFailed, match="broke"):
        await pod(*[ExecFailed("the stream broke")] * (BREAKS + 1), DONE).run(["cmd"])


async def test_an_api_server_that_can_be_asked_for_long_is_asked_until_it_lets_a_command_start() -> None:
    patient = pod(*[NotStarted("HTTP 503")] * 9, DONE)
    patient.client.patience = 60.0  # type: ignore[misc]
    assert (await patient.run(["cmd"])).again == 9


async def test_a_command_on_a_node_that_is_not_ready_is_not_waited_for() -> None:
    away = pod(*[NotStarted("HTTP 500")] * (REFUSALS + 1), DONE)
    away.client.patience = 60.0  # type: ignore[misc]
    away.client.ready = "Unknown"  # type: ignore[attr-defined]
    with pytest.raises(NotStarted, match="HTTP 500"):
        await away.run(["cmd"])


async def test_what_may_not_run_twice_is_begun_anew_as_a_whole() -> None:
    tried: list[ExecFailed] = [ExecFailed("the stream broke"), ExecFailed("the stream broke")]

    async def attempt() -> str:
        if tried:
            raise tried.pop()
        return "done"

    assert await from_the_start(attempt) == "done"
    tried += [NotStarted("no")]
    with pytest.raises(NotStarted):
        await from_the_start(attempt)
    tried += [ExecFailed("the stream broke")] * (BREAKS + 1)
    with pytest.raises(ExecFailed):
        await from_the_start(attempt)


ENDED = {"terminated": {"exitCode": 3}}


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"state": ENDED}, "does not run: it ended, last with exit code 3"),
        (
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 2, "lastState": ENDED},
            "does not run: it ended by itself and was started again 2 times, last with exit code 3",
        ),
        ({"state": {"running": {}}, "restartCount": 1}, "ended by itself and was started again once"),
    ],
)
async def test_a_container_that_ended_is_named_and_not_the_api_server(status: Object, told: str) -> None:
    with pytest.raises(NotStarted) as failure:
        await pod(*[NotStarted("HTTP 500")] * (REFUSALS + 1), status=status).run(["cmd"])
    assert failure.value.message == f"container main of pod p on node windows-1 {told}"
    assert "node windows-1" in failure.value.remedy


async def test_a_container_that_was_started_again_before_it_was_found_is_none_that_ended() -> None:
    status = {"state": {"running": {}}, "restartCount": 1, "lastState": ENDED}
    target = pod(*[NotStarted("HTTP 500")] * (REFUSALS + 1), DONE, status=status)
    cast(Executor, target.client).patience = 60.0
    assert (await dataclasses.replace(target, restarts={"main": 1}).run(["cmd"])).exit_code == 0


async def test_commands_beside_others_wait_for_no_turn_and_take_none() -> None:
    busy = Busy()
    target = dataclasses.replace(pod(), client=cast(Client, busy))
    lasting = [asyncio.create_task(target.run(["burn"], beside=True)) for _ in range(20)]
    await asyncio.sleep(0)
    assert busy.running == 20
    others = [asyncio.create_task(target.run(["look"])) for _ in range(20)]
    await asyncio.sleep(0)
    assert 20 < busy.running < 40
    for task in lasting + others:
        task.cancel()
    await asyncio.gather(*lasting, *others, return_exceptions=True)
