"""The channel that commands reach a running sandbox through: one JSON line in, one JSON line out, on a Unix socket."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

Command = Callable[[dict[str, Any]], Awaitable[Any]]
LONGEST_REQUEST = 1 << 20

log = logging.getLogger(__name__)


class CommandError(Exception):
    """A request that cannot be fulfilled; the text is for the person who asked."""


class CommandChannel:
    """Answers requests with what the registered commands return."""

    def __init__(self, commands: dict[str, Command]) -> None:
        self.commands = commands
        self._server: asyncio.AbstractServer | None = None

    async def start(self, path: Path) -> None:
        """Listen; the folder of the path decides who can connect."""
        self._server = await asyncio.start_unix_server(self._serve, path=str(path), limit=LONGEST_REQUEST)

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
            await writer.drain()
        except (ConnectionError, ValueError) as error:
            log.debug("command channel: %s", error)
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            command = self.commands[request.pop("command")]
        except (ValueError, KeyError, TypeError, AttributeError):
            return {"error": f"not a request; known commands: {', '.join(sorted(self.commands))}"}
        try:
            return {"result": await command(request)}
        except CommandError as error:
            return {"error": str(error)}
        except Exception as error:
            log.exception("command failed")
            return {"error": f"internal error: {type(error).__name__}: {error}"}
