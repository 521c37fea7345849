"""A run that is written and sent as a real one is, at the pace of the test: ``FOLDER RUN ADDRESS PACE``.

It tells every event by a line of its own, so that whoever watches can end it half-way.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from report import samples
from winready.engine.journal import Journal
from winready.report import junit
from winready.report.files import Rendered
from winready.report.following import Handler
from winready.report.html import page
from winready.report.record import RecordFile
from winready.report.sharing.sending import PATIENCE, Sender
from winready.store.addresses import parse
from winready.store.objects import open_place


def main(base: str, run: str, address: str, pace: str) -> int:
    """Do all of it; 0 when the place has everything."""
    folder = Path(base) / run
    folder.mkdir(parents=True)
    kept = RecordFile(folder)
    sender = Sender(open_place(parse(address), PATIENCE), folder, lambda text: print(text, flush=True), pause=0.05)
    handlers: list[Handler] = [
        Journal(folder),
        kept,
        Rendered(folder / junit.NAME, lambda: junit.render(kept.record)),
        Rendered(folder / page.NAME, lambda: page.render(kept.record)),
        sender,
    ]
    for handler in handlers:
        handler.start()
    for number, event in enumerate(samples.run_events(run)):
        for handler in handlers:
            handler.handle(event)
        print(number, flush=True)
        time.sleep(float(pace))
    for handler in reversed(handlers):
        handler.close()
    return 0 if sender.finish() else 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
