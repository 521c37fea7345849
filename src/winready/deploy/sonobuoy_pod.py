"""In the plugin's pod: a run in a process of its own, and a guard beside it that hands over results on every way out.

Sonobuoy knows a plugin's result by a file ``done`` alone, and asks neither for exit codes nor for reasons. So the guard
outlives the run: one that fails, is refused, crashes, is killed or hangs ends in an archive and ``done``, too. What
Sonobuoy shows of a run in progress is read from its journal: nothing here can slow the run down.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from winready.deploy.sonobuoy_progress import Progress, Reporter
from winready.engine import journal
from winready.report import junit, record, sonobuoy
from winready.report.files import write_whole
from winready.report.html import page

ARCHIVE, DONE, LOG, RUNS = "winready.tar.gz", "done", "winready.log", "runs"
POLL_SECONDS = 0.2
CLEAN_UP_SECONDS = 330.0
"""What a run gets beyond its time, to clean up and to conclude."""
PATIENCE_SECONDS = 40.0
"""What a run that was told to end gets before results are handed over without it: Sonobuoy's worker waits for 60."""
MOST_LOG = 16 << 20
KILLED = "winready was killed (signal {number}); the memory limit of the plugin's container may be too low"
HANGS = "winready did not end in time"


@dataclass
class Guard:
    """One run under guard. ``command`` is all of it but where its folder goes."""

    command: Sequence[str]
    results: Path
    port: int = 8099
    timeout: float = 5 * 3600.0
    """When the run itself gives up what is not finished."""
    patience: float = PATIENCE_SECONDS
    clean_up: float = CLEAN_UP_SECONDS
    _process: subprocess.Popen[bytes] | None = None
    _signalled: float | None = None
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=40))

    def run(self) -> int:
        """Do the run, hand over its results, and return its exit code; raises ``OSError`` when nobody could be told."""
        self.results.mkdir(parents=True, exist_ok=True)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._pass_on)
        reporter = Reporter(self.port)
        trouble = ""
        try:
            trouble = self._watch(reporter)
        except Exception as error:
            trouble = f"winready could not be run: {type(error).__name__}: {error}"
        finally:
            self._hand_over(trouble, reporter)
        return self._end()

    def _watch(self, reporter: Reporter) -> str:
        """Follow the run until it has ended or must be left behind; what is wrong with that, or nothing."""
        command = [*self.command, "--report-dir", str(self.results / RUNS)]
        self._process = subprocess.Popen(  # noqa: S603 - our own program, whose arguments are the operator's
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        listening = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        listening.start()
        progress, end = Progress(), time.monotonic() + self.timeout + self.clean_up
        while self._process.poll() is None:
            if progress.read_on(self._folder()):
                reporter.tell(progress.message())
            now = time.monotonic()
            if self._signalled is not None and now > self._signalled + self.patience:
                return HANGS
            if now > end and self._signalled is None:
                self._pass_on(signal.SIGTERM, None)
            time.sleep(POLL_SECONDS)
        listening.join(timeout=5)
        if progress.read_on(self._folder()):
            reporter.tell(progress.message())
        return KILLED.format(number=-self._process.returncode) if self._process.returncode < 0 else ""

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        """Tell the run to end; it cleans up and concludes."""
        self._signalled = self._signalled or time.monotonic()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        """What the run says goes to the pod's log, into the archive, and its end is kept for the tree of results."""
        output: IO[bytes] = process.stdout or io.BytesIO()
        room = MOST_LOG
        with contextlib.suppress(OSError, ValueError), (self.results / LOG).open("wb", buffering=0) as log:
            for line in output:
                self._lines.append(line.decode(errors="replace").rstrip())
                with contextlib.suppress(OSError):
                    os.write(sys.stdout.fileno(), line)
                if room > 0:
                    with contextlib.suppress(OSError):
                        log.write(line[:room])
                    room -= len(line)
        for _ in output:
            pass

    def _folder(self) -> Path | None:
        """The folder of the run, once there is one."""
        found = sorted((self.results / RUNS).glob(f"*/{journal.NAME}"))
        return found[0].parent if found else None

    def _hand_over(self, trouble: str, reporter: Reporter) -> None:
        """The archive first, then ``done``; if there is no room for everything, the tree of results alone."""
        folder = self._folder()
        found, words = self._found(folder, trouble)
        reporter.last_words(words)
        try:
            self._pack({**self._pages(found, folder), sonobuoy.NAME: self._tree(found, words)}, folder)
        except Exception as error:
            print(f"winready: the archive could not be made: {error}", file=sys.stderr, flush=True)
            tree = sonobuoy.render_trouble(f"the results could not be kept: {error}", [words])
            self._pack({sonobuoy.NAME: tree}, None)
        write_whole(self.results / DONE, str((self.results / ARCHIVE).absolute()).encode())

    def _found(self, folder: Path | None, trouble: str) -> tuple[record.Record | None, str]:
        """The run as far as it came, and in one line how it went."""
        if folder is not None:
            with contextlib.suppress(journal.Unreadable):
                whole = (folder / record.NAME).exists()
                found = record.read(folder) if whole else record.read_story(folder)
                if not whole:
                    found.verdict_reasons = [trouble or "the run did not finish", *found.verdict_reasons]
                return found, found.verdict_text if whole else f"{found.verdict_text}: {trouble}"
        said = [line for line in self._lines if line.lower().startswith("error: ")]
        return None, (said[-1][7:] if said else trouble or "winready ended before its run began")

    def _tree(self, found: record.Record | None, words: str) -> str:
        return sonobuoy.render(found) if found is not None else sonobuoy.render_trouble(words, list(self._lines))

    def _pages(self, found: record.Record | None, folder: Path | None) -> dict[str, str]:
        """The pages that a run which was cut off did not come to write."""
        if found is None or folder is None:
            return {}
        made: dict[str, Callable[[record.Record], str]] = {
            record.NAME: lambda run: record.encode(run).decode(),
            junit.NAME: junit.render,
            page.NAME: page.render,
        }
        return {name: render(found) for name, render in made.items() if not (folder / name).exists()}

    def _pack(self, texts: dict[str, str], folder: Path | None) -> None:
        """All files of a run and these texts as an archive, which is there whole or not at all."""
        part = self.results / f".{ARCHIVE}.part"
        try:
            with tarfile.open(part, mode="w:gz") as tar:
                for path in sorted(folder.rglob("*")) if folder else ():
                    if path.is_file() and not path.is_symlink() and path.suffix != ".part":
                        _add(tar, str(path.relative_to(folder or path)), path.read_bytes())
                for name, text in texts.items():
                    _add(tar, name, text.encode())
                if folder is not None and (self.results / LOG).exists():
                    _add(tar, LOG, (self.results / LOG).read_bytes())
            os.replace(part, self.results / ARCHIVE)
        finally:
            part.unlink(missing_ok=True)

    def _end(self) -> int:
        """A run that was left behind may go on cleaning up until the pod is gone; one that hangs is ended."""
        if self._process is None:
            return 3
        try:
            code = self._process.wait(timeout=self.patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return code if code >= 0 else 128 - code


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(data), 0o644, int(time.time())
    tar.addfile(member, io.BytesIO(data))
