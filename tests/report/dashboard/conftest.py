"""A dashboard on a free port, and a browser-like client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, CookieJar, TCPConnector, web

from winready.report.dashboard.guard import Access, Runner
from winready.report.dashboard.server import Dashboard


class Site:
    """A dashboard on a free port, and a browser-like client."""

    def __init__(self, base: Path, access: Access) -> None:
        made = Dashboard(base)
        made.site.now = datetime(2026, 11, 5, tzinfo=UTC).timestamp
        self.runner = Runner(made.app(access), access_log=None, shutdown_timeout=0.1)
        self.session = ClientSession(cookie_jar=CookieJar(unsafe=True))
        self.address = ""

    async def start(self) -> None:
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.address = f"http://127.0.0.1:{self.runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self.session.close()
        await self.runner.cleanup()

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.session.get(self.address + path, headers=headers) as answer:
            return answer.status, await answer.text()

    async def json(self, path: str) -> Any:
        status, text = await self.get(path)
        assert status == 200, text
        return json.loads(text)

    async def until(self, so: Callable[[Any], bool]) -> None:
        """Wait until the API tells that it is so."""
        while True:
            if so(await self.json("/api/v1")):
                return
            await asyncio.sleep(0.01)

    async def get_from(self, source: str, path: str, headers: Any = ()) -> tuple[int, str]:
        """The same from another address of this machine."""
        async with (
            ClientSession(connector=TCPConnector(local_addr=(source, 0))) as session,
            session.get(self.address + path, headers=headers, allow_redirects=False) as answer,
        ):
            return answer.status, answer.headers.get("Location", "") or await answer.text()


Serve = Callable[..., Awaitable[Site]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Serve ``tmp_path`` to whom these settings let in."""
    made: list[Site] = []

    async def start(**access: Any) -> Site:
        made.append(Site(tmp_path, Access(**access)))
        await made[-1].start()
        return made[-1]

    yield start
    for each in made:
        await each.stop()


@pytest.fixture
async def site(serve: Serve) -> Site:
    return await serve()


@pytest.fixture
async def guarded(serve: Serve) -> Site:
    return await serve(token="s3cret")
