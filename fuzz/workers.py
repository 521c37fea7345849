"""Inputs in forked processes, some hundred in each: what ends or stops a process is a finding, and the others go on."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import c_longlong
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any

from fuzz.running import Outcome, fuzz

BATCH = 500
STILL = 300
"""Wall seconds without another input after which a process waits for ever; what computes is stopped far earlier."""
ADDRESSES = 3 * 2**30
"""Bytes that a process may ask for: whoever wants more than that would take the machine down before it is measured."""
_FORK = multiprocessing.get_context("fork")


class _Worker:
    """A process with a part of the inputs."""

    def __init__(self, name: str, numbers: range) -> None:
        self.name, self.numbers = name, numbers
        self.current: Any = _FORK.Value(c_longlong, numbers.start)
        self.seen, self.since = numbers.start, time.monotonic()
        self.answer, theirs = _FORK.Pipe(duplex=False)
        self.process: ForkProcess = _FORK.Process(target=self._work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def _work(self, answer: Connection) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        # Reading the certificates of this machine would cost more than all the rest.
        os.environ |= {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}
        answer.send(fuzz(self.name, self.numbers, self._tell))

    def _tell(self, number: int) -> None:
        self.current.value = number

    def stands_still(self) -> bool:
        """Whether it has been at the same input for too long."""
        if self.current.value != self.seen:
            self.seen, self.since = self.current.value, time.monotonic()
        return time.monotonic() - self.since > STILL

    def outcome(self) -> tuple[Outcome, range]:
        """What came of it, and which inputs are left to do: those after the one that ended it."""
        still = self.process.is_alive() and not self.answer.poll()
        if not still:
            with suppress(EOFError):
                found: Outcome = self.answer.recv()
                self.process.join()
                return found, range(0)
        if self.process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        number = self.current.value
        how = f"waited for more than {STILL} s" if still else f"ended its process ({self.process.exitcode})"
        lost = Outcome(inputs=number + 1 - self.numbers.start, findings=1)
        lost.told.append(f"{self.name} input {number}: {how}")
        return lost, range(number + 1, self.numbers.stop)


def fuzzed(parts: Iterator[tuple[str, range]], workers: int, tell: Callable[[str, Outcome], None]) -> None:
    """Give targets their inputs; ``tell`` hears of every part when it is done."""
    busy: dict[Connection, _Worker] = {}
    more: list[tuple[str, range]] = []
    try:
        while True:
            while len(busy) < workers and (part := more.pop() if more else next(parts, None)):
                worker = _Worker(*part)
                busy[worker.answer] = worker
            if not busy:
                return
            done = [each for each in wait(list(busy), timeout=1) if isinstance(each, Connection)]
            done += [answer for answer, worker in busy.items() if answer not in done and worker.stands_still()]
            for answer in done:
                worker = busy.pop(answer)
                outcome, left = worker.outcome()
                more += [(worker.name, left)] if left else []
                tell(worker.name, outcome)
    finally:
        for worker in busy.values():
            worker.process.kill()
