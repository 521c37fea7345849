"""Running a sandbox for as long as it is wanted: in the foreground, or as a process of its own.

``up --detach`` starts this module with the plan as JSON and one end of a pipe. Exactly one line
comes back through it: the document of a sandbox that is ready, or the reason why there is none.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from winready_sandbox.garbage import leave_alone_what_is_there
from winready_sandbox.plan import Plan
from winready_sandbox.state import Place, StateError

READY_TIMEOUT, EACH_NODE = 60.0, 0.2
"""Wall seconds that a sandbox has for its start on a busy machine, and for each of its nodes besides."""
LOG_LINES = 15
Ready = Callable[[dict[str, Any]], None]


async def serve(plan: Plan, place: Place, ready: Ready) -> None:
    """Run a sandbox until somebody stops it."""
    # Hardly anything made while starting is garbage: the collector waits, and later leaves it all out of its rounds.
    gc.disable()
    from winready_sandbox.up import Sandbox

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    place.sign()
    async with Sandbox(plan, place, stopping) as sandbox:
        document = await sandbox.document()
        place.document.write_text(json.dumps(document))
        leave_alone_what_is_there()
        gc.enable()
        ready(document)
        await sandbox.wait()


def run(plan: Plan, ready: Ready) -> None:
    """Run a sandbox in this process; returns when it was stopped."""
    place = Place.of(plan.name)
    with place.claimed():
        asyncio.run(serve(plan, place, ready))


def start(plan: Plan) -> dict[str, Any]:
    """Start a sandbox as a process of its own and return its document once it is ready."""
    place = Place.of(plan.name)
    if place.running():
        raise StateError(place.taken())
    place.folder.mkdir(mode=0o700, exist_ok=True)
    patience = READY_TIMEOUT + EACH_NODE * len(plan.nodes)
    reading, writing = os.pipe()
    command = [sys.executable, "-P", "-m", "winready_sandbox.daemon", json.dumps(asdict(plan)), str(writing)]
    with place.log.open("ab") as log, open(os.devnull, "rb") as nothing:
        process = subprocess.Popen(  # noqa: S603  our own interpreter and module
            command, stdin=nothing, stdout=log, stderr=log, pass_fds=[writing], start_new_session=True
        )
    os.close(writing)
    try:
        with open(reading, encoding="utf-8") as pipe:
            late = not select.select([pipe], [], [], patience)[0]
            line = "" if late else pipe.readline()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    if late:
        process.kill()
    if not line:
        process.wait()
        tail = _tail(place)
        place.sweep()
        what = f"was not ready after {patience:g} s" if late else "ended while it was starting"
        raise StateError(f"the sandbox {what} (exit code {process.returncode})\n{tail}".rstrip())
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        process.wait()
        place.sweep()
        raise StateError(answer["error"])
    process.returncode = 0  # it lives on; nobody here waits for it
    return answer


def _tail(place: Place) -> str:
    with contextlib.suppress(FileNotFoundError):
        return "\n".join(place.log.read_text(errors="replace").splitlines()[-LOG_LINES:])
    return ""


def main() -> None:
    """The detached process."""
    values, descriptor = json.loads(sys.argv[1]), int(sys.argv[2])
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    pipe = os.fdopen(descriptor, "w", encoding="utf-8")

    def tell(document: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(document), file=pipe, flush=True)
        pipe.close()

    try:
        run(Plan.read(values), tell)
    except StateError as error:
        if pipe.closed:
            Place.of(values["name"]).leave_word(str(error))
        else:
            tell({"error": str(error)})
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
