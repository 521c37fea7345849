"""A watch over HTTP: one JSON line per change, bookmarks now and then, an end at the time agreed."""

from __future__ import annotations

import asyncio
import random

from aiohttp import ClientConnectionResetError, web

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.represent import Representation, encode
from winready_sandbox.api.store import Store, Watch

BOOKMARK_SECONDS = 60.0
SHORTEST_SECONDS = 1800
"""Watches without a wish end after this to twice this time, so that clients do not come back all at once."""
BATCH = 64 * 1024


def error_line(error: ApiError) -> bytes:
    """The line that ends a failed watch."""
    return b'{"type":"ERROR","object":%b}\n' % encode(error.status())


async def stream_error(request: web.Request, error: ApiError) -> web.StreamResponse:
    """A watch that fails at once: the real server says so inside the stream."""
    response = web.Response(body=error_line(error), headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write_eof()
    return response


async def stream(
    request: web.Request,
    watch: Watch,
    store: Store,
    shown: Representation,
    *,
    timeout: int,
    bookmarks: bool,
    initial_end: bool,
) -> web.StreamResponse:
    """Write changes until the client goes, the time is over or the watch ends."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    loop = asyncio.get_running_loop()
    deadline = loop.time() + (timeout or random.uniform(SHORTEST_SECONDS, 2 * SHORTEST_SECONDS))
    next_bookmark = loop.time() + BOOKMARK_SECONDS
    try:
        await response.prepare(request)
        while loop.time() < deadline:
            if lines := _ready_lines(watch, shown):
                await response.write(lines)
                continue
            if initial_end:
                initial_end = False
                await response.write(shown.bookmark(store.version, initial_end=True))
            try:
                async with asyncio.timeout_at(min(deadline, next_bookmark)):
                    await response.write(shown.event(*await watch.next()))
            except TimeoutError:
                next_bookmark = loop.time() + BOOKMARK_SECONDS
                if bookmarks and watch.idle:
                    await response.write(shown.bookmark(store.version))
            except StopAsyncIteration:
                break
            except ApiError as error:
                await response.write(error_line(error))
                break
        await response.write_eof()
    except ClientConnectionResetError:
        pass  # the client went away, which is how most watches end
    finally:
        watch.close()
    return response


def _ready_lines(watch: Watch, shown: Representation) -> bytes:
    """Everything that waits, up to a size, in one write."""
    lines: list[bytes] = []
    size = 0
    while size < BATCH and (seen := watch.ready()) is not None:
        lines.append(shown.event(*seen))
        size += len(lines[-1])
    return b"".join(lines)
