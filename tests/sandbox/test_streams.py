"""Byte streams between simulated processes."""

import asyncio

import pytest

from winready_sandbox.streams import Pipe


def filled(data: bytes, *, closed: bool = False) -> Pipe:
    pipe = Pipe()
    pipe.write(data)
    if closed:
        pipe.close()
    return pipe


async def test_lines_come_one_by_one_and_what_is_left_at_the_end() -> None:
    pipe = filled(b"first\r\nsecond\nrest", closed=True)
    assert [await pipe.readline() for _ in range(4)] == [b"first\r\n", b"second\n", b"rest", b""]


async def test_a_line_is_waited_for_until_its_end_arrives() -> None:
    pipe = filled(b"be")
    line = asyncio.create_task(pipe.readline())
    for part in (b"gin", b"ning", b"\nnext"):
        await asyncio.sleep(0)
        assert not line.done()
        pipe.write(part)
    assert await line == b"beginning\n"
    assert await pipe.read() == b"next"


async def test_some_bytes_are_no_more_than_were_asked_for() -> None:
    pipe = filled(b"abcdef", closed=True)
    assert [await pipe.read(4), await pipe.read(4), await pipe.read(4)] == [b"abcd", b"ef", b""]


async def test_everything_is_what_came_before_the_end() -> None:
    pipe = filled(b"one ")
    everything = asyncio.create_task(pipe.read_all())
    await asyncio.sleep(0)
    pipe.write(b"two")
    pipe.close()
    pipe.write(b"lost")
    assert await everything == b"one two"


async def test_an_early_end_is_told_with_what_there_was() -> None:
    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await filled(b"abc", closed=True).readexactly(5)
    assert (caught.value.partial, caught.value.expected) == (b"abc", 5)


async def test_a_reader_that_gave_up_leaves_the_bytes_to_the_next() -> None:
    pipe = Pipe()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(pipe.readexactly(3), 0.01)
    pipe.write(b"abc")
    assert await pipe.readexactly(3) == b"abc"


async def test_two_readers_at_once_are_a_mistake() -> None:
    pipe = Pipe()
    first = asyncio.create_task(pipe.read())
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="somebody else reads"):
        await pipe.read()
    pipe.close()
    assert await first == b""


@pytest.mark.parametrize(
    ("arrived", "head"),
    [
        (b"A: b\r\nC: d\r\n\r\nbody\r\n\r\n", b"A: b\r\nC: d\r\n\r\n"),
        (b"\r\nbody\r\n\r\n", b"\r\n"),
        (b"A: b\r\nC: d\r\n", b""),
        (b"A: b\n\nbody\r\n\r\n", b""),
        (b"A: b\n\r\nbody\r\n\r\n", b""),
        (b"", b""),
    ],
)
async def test_a_head_is_taken_at_once_if_it_is_there_and_plain(arrived: bytes, head: bytes) -> None:
    pipe = filled(arrived, closed=True)
    assert pipe.take_head() == head
    assert await pipe.read_all() == arrived[len(head) :]
