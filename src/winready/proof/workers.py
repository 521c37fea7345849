"""Trials side by side, each in a process that has loaded everything before it begins."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess

from winready.proof.choosing import Trial
from winready.proof.judgement import Proof, Soundness
from winready_sandbox.garbage import leave_alone_what_is_there

PRELOADED = ["winready.proof.trial", "winready_sandbox.programs.catalogue"]
"""What every worker needs: loaded once, before they part."""
SURROUNDINGS = {"PYTHONSAFEPATH": "1", "PYTHONHASHSEED": "0"}
"""Python's helpers start with ``python -c``, which would import whatever file lies where the user stands; and with an
order of sets that is another each time, and what happens at one moment in another order."""


def hold_trials(trials: Sequence[Trial], parallel: int | None) -> Iterator[Proof | Soundness]:
    """Each proof as soon as it is done; those that take long begin first, so that none is left over at the end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with _same_surroundings():
        forkserver.ensure_running()
    with ProcessPoolExecutor(min(parallel or _processors(), len(trials)), context, _prepare) as pool:
        try:
            ordered = sorted(trials, key=lambda trial: trial.seconds, reverse=True)
            for future in as_completed([pool.submit(_hold, trial) for trial in ordered]):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _same_surroundings() -> Iterator[None]:
    """What is started meanwhile finds the same surroundings each time."""
    before = {name: os.environ.get(name) for name in SURROUNDINGS}
    os.environ.update(SURROUNDINGS)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _prepare() -> None:
    """Make a worker ready: nothing that it has loaded by now is ever garbage, and little that a run makes is."""
    leave_alone_what_is_there()
    if parent := multiprocessing.parent_process():
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    """Nobody waits for the proof of a command that was killed."""
    parent.join()
    os._exit(1)


def _hold(trial: Trial) -> Proof | Soundness:
    # Here and not above: the process that only waits for workers needs no cluster.
    from winready.proof.trial import hold_trial

    return hold_trial(trial)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
