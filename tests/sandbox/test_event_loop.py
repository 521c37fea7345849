"""The lean event loop does what asyncio's own does, in the same order."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from winready_sandbox.event_loop import MANY, LeanLoop


@pytest.fixture
def loop() -> Any:
    loop = LeanLoop()
    yield loop
    loop.close()


def test_calls_come_in_order_and_what_they_ask_for_in_the_next_turn(loop: LeanLoop) -> None:
    order: list[str] = []

    def first() -> None:
        order.append("first")
        loop.call_soon(order.append, "asked for by the first")

    loop.call_soon(first)
    loop.call_soon(order.append, "second")
    loop.call_soon(order.append, "called off").cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(asyncio.sleep(0))
    assert order == ["first", "second", "asked for by the first"]


def test_deadlines_of_one_moment_come_in_the_order_in_which_they_were_set(loop: LeanLoop) -> None:
    order: list[int] = []
    moment = loop.time()
    for number in range(50):
        loop.call_at(moment, order.append, number)
    loop.call_at(moment - 1, order.append, -1)
    loop.run_until_complete(asyncio.sleep(0))
    assert order == [-1, *range(50)]


def test_what_was_called_off_is_let_go_long_before_its_time(loop: LeanLoop) -> None:
    class Thing:
        def call(self) -> None:
            raise AssertionError("it was called off")

    seen = []
    deadlines = []
    for _ in range(MANY + 2):
        thing = Thing()
        seen.append(weakref.ref(thing))
        deadlines.append(loop.call_later(3600, thing.call))
    kept = loop.call_later(7200, print)
    for deadline in deadlines:
        deadline.cancel()
    del thing, deadline, deadlines
    loop.run_until_complete(asyncio.sleep(0))
    gc.collect()
    assert [each() for each in seen] == [None] * len(seen)
    assert not kept.cancelled()
    assert kept.when() > loop.time()


def test_an_error_in_a_call_is_told_and_the_others_go_on(loop: LeanLoop) -> None:
    told: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: told.append(context))
    order: list[str] = []
    loop.call_soon(int, "no number")
    loop.call_soon(order.append, "next")
    loop.run_until_complete(asyncio.sleep(0))
    assert order == ["next"]
    assert [type(each["exception"]) for each in told] == [ValueError]


def test_nothing_can_be_asked_of_a_closed_loop() -> None:
    loop = LeanLoop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1, print)


def test_sockets_and_threads_work_as_ever(loop: LeanLoop) -> None:
    async def story() -> bytes:
        async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write((await reader.readline()).upper())
            writer.close()

        server = await asyncio.start_server(upper, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(await asyncio.to_thread(b"hello\n".replace, b"h", b"j"))
            answer = await reader.read()
            writer.close()
            return answer

    assert loop.run_until_complete(story()) == b"JELLO\n"
