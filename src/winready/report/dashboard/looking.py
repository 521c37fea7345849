"""The index as the dashboard uses it: always up to date where few runs are new, on the way where there are many."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from winready.report import folders
from winready.report.history import AT_ONCE, History, Pending

MANY = 1000
"""With more run folders than that, nobody looks for new ones more often than once in a second."""
PAUSE = 1.0


class _Stopped(Exception):
    """Nobody waits for the rest any more."""


class Looking:
    """One index for all pages; threads share it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.found: list[folders.Found] = []
        """The run folders as they were seen last."""
        self.progress: tuple[int, int] | None = None
        """How many of the runs that are new were taken in, while that takes a while."""
        self._lock = threading.Lock()
        self._index: History | None = None
        self._on_disk = False
        self._looked = 0.0
        self._worker: threading.Thread | None = None
        self._stopping = False

    def index(self) -> History:
        """The index. A few new runs are taken in first; many are taken in beside, newest first, and shown as they come.

        Blocks for as long as a few runs take, so it is asked for in a thread of its own.
        """
        with self._lock:
            index = self._opened()
            if self.progress is not None or (len(self.found) > MANY and time.monotonic() < self._looked + PAUSE):
                return index
            self.found = folders.scan(self.base)
            self._looked = time.monotonic()
            pending = index.pending(self.found)
            if len(pending.changed) <= AT_ONCE:
                index.take(pending)
            else:
                self.progress = 0, len(pending.changed)
                self._worker = threading.Thread(target=self._take, args=(index, pending), daemon=True)
                self._worker.start()
            return index

    def close(self) -> None:
        """Stop whatever goes on."""
        self._stopping = True
        if self._worker is not None:
            self._worker.join()
        with self._lock:
            if self._index is not None:
                self._index.__exit__(None, None, None)
                self._index = None

    def _opened(self) -> History:
        on_disk = self.base.is_dir()
        if self._index is None or (on_disk and not self._on_disk):
            self._index, self._on_disk = History(self.base), on_disk
        return self._index

    def _take(self, index: History, pending: Pending) -> None:
        try:
            index.take(pending, self._tell)
        except _Stopped:
            pass
        except Exception:
            # The next one who looks begins again with what is missing.
            logging.getLogger(__name__).exception("runs could not be taken in")
        finally:
            self.progress = None

    def _tell(self, done: int, total: int) -> None:
        self.progress = done, total
        if self._stopping:
            raise _Stopped
