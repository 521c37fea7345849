"""A run is sent to a place while it goes on: its journal part by part, at the end everything else.

It happens in a thread, since a place may be slow and a sandbox's event loop goes by simulated time. Nothing that
happens to it reaches the run: what cannot be sent is said once, and waits in the run's folder.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from winready.engine import events, journal
from winready.engine.checking import own_failure
from winready.report.sharing.pushing import SENT, JournalCopy, Pushed, put_files
from winready.store.errors import Away, Full, StoreError
from winready.store.objects import Objects

PAUSE = 2.0
"""Wall seconds between two parts: a run may tell many things at once."""
PATIENCE = 15.0
"""Wall seconds that one call may take; after that the place counts as away."""
AGAIN = (5.0, 15.0, 60.0)
"""Wall seconds until a place that was away or full is tried again; from then on the last."""
LAST = 30.0
"""Wall seconds that the end of a run waits at most until everything is sent."""


class Sender:
    """Follows a run, and sends what its folder has of it."""

    name = "what is sent"

    def __init__(
        self, objects: Objects, folder: Path, complain: Callable[[str], None], *, pause: float = PAUSE
    ) -> None:
        self.place = objects.place
        self._objects = objects
        self._folder = folder
        self._complain = complain
        self._pause = pause
        self._copy = JournalCopy(objects, folder.name, folder / journal.NAME)
        self._pushed = Pushed(folder.name)
        self._changed = threading.Event()
        self._over = threading.Event()
        self._whole = False
        self._said = False
        self._thread = threading.Thread(target=self._work, name="sending", daemon=True)
        self.trouble: StoreError | None = None
        """What keeps the run from being sent now."""

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def handle(self, event: events.AnyEvent) -> None:
        """Another line is in the journal."""
        if isinstance(event, events.RunFinished):
            self._whole = True
        self._changed.set()
        self._speak()

    def close(self) -> None:
        """Nothing more will come; `finish` waits until it is sent."""
        self._over.set()
        self._changed.set()

    def finish(self, patience: float = LAST) -> bool:
        """Whether the place has all of the run, after a bounded wait."""
        self.close()
        if self._thread.is_alive():
            self._thread.join(patience)
        if self._thread.is_alive() and self.trouble is None:
            self.trouble = Away(f"{self._objects.place.address} takes too long")
        self._speak()
        return self.trouble is None

    def _speak(self) -> None:
        """Said in the thread of the run, so that nothing is mixed with what it shows."""
        if self.trouble is not None and not self._said:
            self._said = True
            self._complain(
                f"note: results cannot be sent to {self._objects.place.address}: {self.trouble.message}; "
                "the run goes on, and the verdict does not depend on it"
            )

    def _work(self) -> None:
        failures = 0
        while True:
            self._changed.wait()
            self._changed.clear()
            over = self._over.is_set()
            try:
                while self._copy.advance():
                    pass
                if over:
                    put_files(self._objects, self._folder, self._pushed)
                    if self._whole:
                        (self._folder / SENT).touch()
                self.trouble, failures = None, 0
            except (Away, Full) as error:
                self.trouble = error
                if over:
                    return
                self._over.wait(AGAIN[min(failures, len(AGAIN) - 1)])
                failures += 1
                self._changed.set()
                continue
            except StoreError as error:
                # Nothing that waiting would change.
                self.trouble = error
                return
            except Exception as error:
                self.trouble = StoreError(own_failure(error))
                return
            if over:
                return
            self._over.wait(self._pause)
