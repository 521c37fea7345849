"""Programs that do one small thing: pause, a server that only runs, the memory eater testlimit."""

from __future__ import annotations

import re

from winready_sandbox.machine.errors import OutOfMemory
from winready_sandbox.machine.process import Process, Program


async def pause(process: Process) -> int:
    """The pause container: waits to be stopped."""
    await process.stop_requested.wait()
    if not process.windows:
        process.err("Shutting down, got signal: Terminated\n")
    return 0


async def consumer(process: Process) -> int:
    """The server of the resource-consumer image, which nobody asks for anything here."""
    await process.stop_requested.wait()
    return 0


async def hostname(process: Process) -> int:
    """The Go replacement of hostname in the busybox image: LF, the full name."""
    process.out(f"{process.container.hostname}\n")
    return 0


async def nnp(process: Process) -> int:
    """The program of the nonewprivs image: it tells whose rights it has."""
    process.out(f"Effective uid: {process.identity.uid if process.identity else 0}\n")
    return 0


async def testlimit(process: Process) -> int:
    """Sysinternals testlimit: `-d 100Mb -e 5 -c 5` leaks 100 MB every 5 s, 5 times, and keeps it."""
    options = {"-d": "1", "-e": "0", "-c": "1000000"}
    for flag, value in zip(process.argv, process.argv[1:], strict=False):
        if flag in options:
            options[flag] = value
    size = int(re.sub(r"\D", "", options["-d"]) or 1) * 2**20
    process.out("\r\nTestlimit v5.24 - test Windows limits\r\n\r\n")
    leaked = 0
    for _ in range(int(options["-c"])):
        try:
            process.allocate(size)
        except OutOfMemory:
            process.out(
                "\r\nFailed to allocate memory: The paging file is too small for this operation to complete.\r\n"
            )
            break
        leaked += size
        process.out(f"Leaked {leaked // 2**20} MB of private memory ({leaked // 2**20} MB total leaked). ")
        await process.container.clock.sleep(float(options["-e"]))
    await process.stop_requested.wait()
    return 0


PROGRAMS: dict[str, Program] = {
    "pause": pause,
    "consumer": consumer,
    "hostname": hostname,
    "nnp": nnp,
    "testlimit": testlimit,
}
