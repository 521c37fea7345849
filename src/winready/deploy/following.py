"""Everybody outside of the report folder who hears of a run, from its start to its end."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from winready.cluster.client import Client
from winready.deploy.metrics import MetricsFile, render, serve
from winready.deploy.places import Places
from winready.deploy.publishing import Complain, LastWords, Publisher, Telling
from winready.report.record import Record


@dataclass(frozen=True)
class Audience:
    """Whom a run tells what becomes of it."""

    places: Places = field(default_factory=Places)
    metrics_file: Path | None = None
    metrics: tuple[socket.socket, str] | None = None
    """Where metrics are asked for, and the host that was named."""


@asynccontextmanager
async def told(client: Client, audience: Audience, record: Record, complain: Complain) -> AsyncIterator[list[Telling]]:
    """Handlers of a run, which must come after the one that keeps its record; at the end all have heard the end."""
    handlers: list[Telling] = []
    async with AsyncExitStack() as stack:
        if (path := audience.places.termination_log) is not None:
            handlers.append(LastWords(path, record, complain))
        if audience.metrics_file is not None:
            handlers.append(MetricsFile(audience.metrics_file, record, complain))
        if audience.metrics is not None:
            watcher = Telling("metrics", record, complain)
            handlers.append(watcher)
            await stack.enter_async_context(
                serve(*audience.metrics, lambda: render(record, finished=watcher.finished, now=time.time()))
            )
        if audience.places.on_the_cluster:
            publisher = Publisher(client, audience.places, record, complain)
            handlers.append(await stack.enter_async_context(publisher))
        yield handlers
