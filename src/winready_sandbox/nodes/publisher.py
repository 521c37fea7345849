"""Reports pod statuses to the API server: changes are gathered for a moment, and only what differs is sent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from winready_sandbox.apiclient import ApiClient, ApiFailure, ApiUnreachable, NotFound

if TYPE_CHECKING:
    from winready_sandbox.nodes.pods import PodWorker

Object = dict[str, Any]
log = logging.getLogger(__name__)
_GATHER = 0.02
_AT_ONCE = 8
_RETRY = 1.0


class Publisher:
    """The status manager of one node."""

    def __init__(self, client: ApiClient, node: str) -> None:
        self._client = client
        self._node = node
        self._dirty: dict[str, PodWorker] = {}
        self._wake = asyncio.Event()
        self._locks: dict[str, asyncio.Lock] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to report."""
        self._task = asyncio.create_task(self._run(), name=f"statuses {self._node}")

    async def stop(self) -> None:
        """Stop reporting; what was not sent stays unsaid."""
        self._dirty.clear()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def mark(self, worker: PodWorker) -> None:
        """This pod's status has changed."""
        self._dirty[worker.uid] = worker
        self._wake.set()

    def drop(self, worker: PodWorker) -> None:
        """This pod needs no more reports."""
        self._dirty.pop(worker.uid, None)
        self._locks.pop(worker.uid, None)

    async def flush(self, worker: PodWorker) -> None:
        """Report now, and return when the API server has it (or the pod is gone there)."""
        while True:
            self._dirty.pop(worker.uid, None)
            if await self._send(worker):
                return
            await asyncio.sleep(_RETRY)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_GATHER)
            self._wake.clear()
            batch = [self._dirty.pop(uid) for uid in list(self._dirty)[:_AT_ONCE]]
            sent = await asyncio.gather(*(self._send(worker) for worker in batch))
            failed = [worker for worker, ok in zip(batch, sent, strict=True) if not ok]
            for worker in failed:
                self._dirty.setdefault(worker.uid, worker)
            if failed:
                await asyncio.sleep(_RETRY)
            if self._dirty:
                self._wake.set()

    async def _send(self, worker: PodWorker) -> bool:
        """Send what differs from the last report; False means that it has to be tried again."""
        async with self._locks.setdefault(worker.uid, asyncio.Lock()):
            status = worker.status()
            changes = {key: value for key, value in status.items() if value != worker.reported.get(key)}
            if not changes:
                return True
            metadata = worker.pod["metadata"]
            patch = {"metadata": {"uid": worker.uid}, "status": changes}
            try:
                await self._client.patch("pods", metadata["name"], patch, metadata["namespace"], subresource="status")
            except NotFound:
                return True
            except ApiUnreachable:
                return False
            except ApiFailure as error:
                if error.code in (409, 422):
                    # Another pod has taken the name, or the report is not acceptable: repeating it would not help.
                    log.info("status of %s refused: %s", worker.full_name, error)
                    return True
                return False
            worker.reported = status
            return True
