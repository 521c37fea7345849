"""whoami, hostname, shutdown."""

from __future__ import annotations

import asyncio
import itertools

from winready_sandbox.machine.machine import PowerRequest
from winready_sandbox.machine.process import Process, Program


async def whoami(process: Process) -> int:
    """The account, in lower case; with ``/user /fo csv /nh`` also its identifier, the same in every language."""
    who = process.identity
    if who is None:
        return 1
    words = [word.lower() for word in process.argv[1:]]
    if words == ["/user", "/fo", "csv", "/nh"]:
        process.out(f'"{who.qualified.lower()}","{who.sid}"\r\n')
        return 0
    if words:
        process.err(f"ERROR: Invalid argument/option - '{process.argv[1]}'.\r\nType \"WHOAMI /?\" for usage.\r\n")
        return 1
    process.out(f"{who.qualified.lower()}\r\n")
    return 0


async def hostname(process: Process) -> int:
    """The computer's name."""
    process.out(f"{process.container.hostname}\r\n")
    return 0


async def shutdown(process: Process) -> int:
    """Restart the computer after a while, or take that back with /a."""
    words = [word.lower().replace("-", "/", 1) if word.startswith("-") else word.lower() for word in process.argv[1:]]
    machine, who = process.container.machine, process.identity
    if not process.container.host_process or (who is not None and not who.administrator):
        process.err("Access is denied.(5)\r\n")
        return 5
    if "/a" in words:
        if machine.power is None:
            process.err("Unable to abort the system shutdown because no shutdown was in progress.(1116)\r\n")
            return 1116
        machine.request_power(None)
        return 0
    if "/r" not in words:
        process.out("Usage: shutdown.exe [/i | /l | /s | /r | /g | /a | /p | /h | /e | /o] [/f] [/t xxx]\r\n")
        return 1
    if machine.power is not None:
        process.err("A system shutdown has already been scheduled.(1190)\r\n")
        return 1190
    delays = [int(word) for flag, word in itertools.pairwise(words) if flag == "/t" and word.isdigit()]
    machine.request_power(PowerRequest(True, delays[0] if delays else 30))
    await asyncio.sleep(0)
    return 0


PROGRAMS: dict[str, Program] = {
    "whoami.exe": whoami,
    "hostname.exe": hostname,
    "shutdown.exe": shutdown,
}
