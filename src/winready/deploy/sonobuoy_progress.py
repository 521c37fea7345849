"""What ``sonobuoy status`` shows while a run goes on: read from the journal, posted to the worker beside us."""

from __future__ import annotations

import http.client
import json
import threading
import time
from pathlib import Path
from typing import Any

from winready.engine import events, journal
from winready.report import sonobuoy

EVERY_SECONDS = 1.0
"""Sonobuoy writes what it was told every five seconds, so more often is of no use."""
LAST_SECONDS = 10.0
LONGEST = 200
MOST_FAILURES = 100
"""All of it ends up in an annotation, of which there are 256 KiB."""
Message = dict[str, Any]


class Progress:
    """What is known of a run so far."""

    def __init__(self) -> None:
        self._offset = 0
        self._rest = b""
        self._air_gapped = False
        self._last = "winready begins"
        self.total = 0
        self.completed = 0
        self.failures: list[str] = []

    def read_on(self, folder: Path | None) -> bool:
        """Take in what the journal has grown by; whether there was anything."""
        if folder is None:
            return False
        try:
            with (folder / journal.NAME).open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return False
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            try:
                self._take(journal.decode(line))
            except journal.NOT_JSON:
                continue
        return bool(lines)

    def message(self, words: str = "") -> Message:
        """What the worker is told."""
        text = words or self._last
        failures = self.failures[:MOST_FAILURES]
        return {"msg": text[:LONGEST], "total": self.total, "completed": self.completed, "failures": failures}

    def _take(self, event: events.AnyEvent) -> None:
        match event:
            case events.RunStarted():
                self.total = len(event.requirements)
                self._air_gapped = event.settings.get("air_gapped") is True
                self._last = f"run {event.run_id} has begun"
            case events.PlanMade():
                running = sum(item.action == "run" for item in event.plan.requirements)
                self._last = f"{running} of {self.total} selected requirements will be verified"
            case events.RequirementFinished():
                result = event.result
                if sonobuoy.word_of(result, air_gapped=self._air_gapped) == "failed":
                    self.failures.append(result.id)
                else:
                    self.completed += 1
                why = f": {result.reason}" if result.outcome != "passed" else ""
                self._last = f"{result.id} {result.outcome}{why}"
            case events.RunFinished():
                self._last = str(event.verdict)


class Reporter:
    """Posts the newest message from a thread of its own; a worker that does not listen yet gets it later."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._news: Message | None = None
        self._known: Message = Progress().message()
        self._wake = threading.Event()
        self._sent = threading.Event()
        self._sent.set()
        threading.Thread(target=self._post_all, daemon=True).start()

    def tell(self, message: Message) -> None:
        """Have this told next; what was not told yet is overtaken by it."""
        self._known = self._news = message
        self._sent.clear()
        self._wake.set()

    def last_words(self, words: str) -> None:
        """How it went, and time to tell it."""
        self.tell({**self._known, "msg": words[:LONGEST]})
        self._sent.wait(LAST_SECONDS)

    def _post_all(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            message, self._news = self._news, None
            if message is not None and not self._post(message) and self._news is None:
                self._news = message
            if self._news is not None:
                self._wake.set()
            else:
                self._sent.set()
            time.sleep(EVERY_SECONDS)

    def _post(self, message: Message) -> bool:
        """Whether the worker took it; one that refuses it for good is not asked again."""
        # The worker is in this pod: no proxy of the environment leads to it.
        connection = http.client.HTTPConnection("localhost", self._port, timeout=5)
        try:
            connection.request("POST", "/progress", json.dumps(message), {"Content-Type": "application/json"})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        return True
