"""What containers write, line by line with times and streams, as the kubelet serves it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from winready_sandbox.clock import utc_now
from winready_sandbox.nodes import times
from winready_sandbox.streams import Pipe

Stream = Literal["stdout", "stderr"]
_KEPT_BYTES = 4 * 2**20
_LONGEST_LINE = 16 * 2**10
"""Bytes after which the runtime writes down a line that has not ended."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line with its end, unless the container stopped in the middle of it."""

    time: datetime
    stream: Stream
    text: bytes


class ContainerLog:
    """The log of one run of a container; the oldest lines go when it grows too large, as log rotation does it."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque()
        self._dropped = 0
        self._bytes = 0
        self._partial: dict[Stream, bytes] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self.closed = False

    def write(self, stream: Stream, data: bytes) -> None:
        """Take what a process wrote."""
        if not data:
            return
        *lines, rest = (self._partial.pop(stream, b"") + data).split(b"\n")
        for line in lines:
            self._append(stream, line + b"\n")
        if len(rest) > _LONGEST_LINE:
            self._append(stream, rest)
        elif rest:
            self._partial[stream] = rest
        self._wake()

    def close(self) -> None:
        """The container has ended."""
        for stream, rest in self._partial.items():
            self._append(stream, rest)
        self._partial.clear()
        self.closed = True
        self._wake()

    def _append(self, stream: Stream, text: bytes) -> None:
        self._lines.append(Line(utc_now(), stream, text))
        self._bytes += len(text)
        while self._bytes > _KEPT_BYTES and len(self._lines) > 1:
            self._bytes -= len(self._lines.popleft().text)
            self._dropped += 1

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    @property
    def lines(self) -> list[Line]:
        """All lines that are kept."""
        return list(self._lines)

    def tail(self, count: int, size: int) -> str:
        """The end of the log, as ``FallbackToLogsOnError`` shows it."""
        return b"".join(line.text for line in self.lines[-count:])[-size:].decode(errors="replace")

    async def follow(self) -> AsyncIterator[Line]:
        """Every line that is kept, then every new one until the container ends."""
        position = self._dropped
        while True:
            start = max(position - self._dropped, 0)
            fresh = [self._lines[index] for index in range(start, len(self._lines))]
            position = self._dropped + len(self._lines)
            for line in fresh:
                yield line
            if position == self._dropped + len(self._lines):
                if self.closed:
                    return
                future = asyncio.get_running_loop().create_future()
                self._waiting.append(future)
                await future


class LogPipe(Pipe):
    """The output end of a container's first process: whatever is written is in the log at once."""

    def __init__(self, log: ContainerLog, stream: Stream) -> None:
        super().__init__()
        self._log = log
        self._stream = stream
        self.listeners: list[Callable[[bytes], None]] = []
        """Attached clients."""

    def write(self, data: bytes) -> None:
        """Log the bytes and show them to whoever is attached."""
        if self.closed:
            return
        self._log.write(self._stream, data)
        for listener in self.listeners:
            listener(data)

    def close(self) -> None:
        """Say that nothing follows."""
        if not self.closed:
            super().close()
            for listener in self.listeners:
                listener(b"")


@dataclass(frozen=True)
class LogOptions:
    """What a reader of a log asked for."""

    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: datetime | None = None
    stream: str = "All"

    @classmethod
    def read(cls, query: dict[str, str], speed: float) -> LogOptions:
        """The options of a request; raises ValueError with the words for the user."""
        numbers: dict[str, int] = {}
        for name in ("tailLines", "limitBytes", "sinceSeconds"):
            if name in query:
                if not query[name].lstrip("-").isdigit() or int(query[name]) < 0:
                    raise ValueError(f"{name}: Invalid value: {query[name]}: must be greater than or equal to 0")
                numbers[name] = int(query[name])
        since = times.read(query["sinceTime"]) if "sinceTime" in query else None
        if "sinceSeconds" in numbers:
            since = utc_now() - timedelta(seconds=numbers["sinceSeconds"] / speed)
        return cls(
            follow=_true(query.get("follow")),
            timestamps=_true(query.get("timestamps")),
            tail_lines=numbers.get("tailLines"),
            limit_bytes=numbers.get("limitBytes"),
            since=since,
            stream=query.get("stream", "All"),
        )


def _true(text: str | None) -> bool:
    return (text or "").lower() in ("true", "1")


async def serve(log: ContainerLog, options: LogOptions) -> AsyncIterator[bytes]:
    """The bytes of a log as the options want them."""
    left = options.limit_bytes

    def wanted(line: Line) -> bool:
        return options.stream in ("All", line.stream.capitalize()) and (
            options.since is None or line.time >= options.since
        )

    def shown(line: Line) -> bytes:
        return times.nano(line.time).encode() + b" " + line.text if options.timestamps else line.text

    existing = [line for line in log.lines if wanted(line)]
    skip = 0 if options.tail_lines is None else max(len(existing) - options.tail_lines, 0)
    source = log.follow() if options.follow else _each(existing)
    async for line in source:
        if options.follow and not wanted(line):
            continue
        if skip:
            skip -= 1
            continue
        data = shown(line)
        if left is not None:
            data = data[:left]
            left -= len(data)
        if data:
            yield data
        if left == 0:
            return


async def _each(lines: list[Line]) -> AsyncIterator[Line]:
    for line in lines:
        yield line
