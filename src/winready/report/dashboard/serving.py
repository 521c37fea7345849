"""Starting and stopping the dashboard."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from winready.report.dashboard.guard import Access, Runner
from winready.report.dashboard.server import Dashboard


async def serve(base: Path, host: str, port: int, access: Access, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; ``ready`` gets the address. Raises ``OSError`` when it cannot listen there."""
    runner = Runner(Dashboard(base).app(access), access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        bound = runner.addresses[0][1]
        # Nobody elsewhere can open 0.0.0.0; this machine's name is the best guess at what they can.
        seen = socket.gethostname() if host in ("0.0.0.0", "::") else host
        name = f"[{seen}]" if ":" in seen else seen
        ready(f"http://{name}:{bound}{access.prefix}/" + (f"?token={quote(access.token)}" if access.token else ""))
        await stop.wait()
    finally:
        await runner.cleanup()
