"""whoami, hostname, tasklist, taskkill, timeout, shutdown, systeminfo, setx."""

from __future__ import annotations

import asyncio
import itertools
import re
import time

from winready_sandbox.machine.machine import PowerRequest
from winready_sandbox.machine.process import Process, Program


async def whoami(process: Process) -> int:
    """The account, in lower case."""
    who = process.identity
    if who is None:
        return 1
    switches = {word.lower() for word in process.argv[1:]}
    if "/user" in switches:
        process.out("\r\nUSER INFORMATION\r\n----------------\r\n\r\n")
        process.out(f"User Name           SID\r\n=================== ========\r\n{who.qualified.lower()} {who.sid}\r\n")
    elif "/groups" in switches:
        process.out(
            "\r\nGROUP INFORMATION\r\n-----------------\r\n\r\n" + "".join(f"{each}\r\n" for each in sorted(who.groups))
        )
    else:
        process.out(f"{who.qualified.lower()}\r\n")
    return 0


async def hostname(process: Process) -> int:
    """The computer's name."""
    process.out(f"{process.container.hostname}\r\n")
    return 0


def _tasks(process: Process) -> list[tuple[str, int, int]]:
    found = [("System Idle Process", 0, 8), ("System", 4, 140), ("smss.exe", 392, 1200), ("services.exe", 440, 7000)]
    own = process.container.processes.values()
    found += [(each.path.rpartition("\\")[2], each.pid, each.memory // 1024) for each in own]
    if process.container.host_process:
        for index, service in enumerate(each for each in process.container.host.services if each.state == "Running"):
            name = service.path.strip('"').partition(".exe")[0].rpartition("\\")[2]
            if name != "MsMpEng" or process.container.host.defender.running:
                found.append((f"{name}.exe", 2000 + 4 * index, 30000))
    return found


async def tasklist(process: Process) -> int:
    """Running processes."""
    wanted = next((word for word in process.argv[1:] if "imagename eq" in word.lower()), "")
    name = wanted.lower().partition("eq ")[2].strip()
    tasks = [each for each in _tasks(process) if not name or each[0].lower() == name]
    if not tasks:
        process.out("INFO: No tasks are running which match the specified criteria.\r\n")
        return 0
    if "/nh" not in {word.lower() for word in process.argv[1:]}:
        process.out("\r\nImage Name                     PID Session Name        Session#    Mem Usage\r\n")
        process.out(f"{'=' * 25} {'=' * 8} {'=' * 16} {'=' * 11} {'=' * 12}\r\n")
    for image, pid, memory in tasks:
        process.out(f"{image[:25]:<25} {pid:8d} {'Services':<16} {0:11d} {memory:10,d} K\r\n")
    return 0


async def taskkill(process: Process) -> int:
    """End processes."""
    words = process.argv[1:]
    options = {flag.lower(): value for flag, value in itertools.pairwise(words)}
    targets = [
        each
        for each in process.container.processes.values()
        if str(each.pid) == options.get("/pid")
        or each.path.rpartition("\\")[2].lower() == options.get("/im", "").lower()
    ]
    if not targets:
        process.err(f'ERROR: The process "{options.get("/pid") or options.get("/im", "")}" not found.\r\n')
        return 128
    for target in targets:
        await target.kill(1)
        process.out(f"SUCCESS: The process with PID {target.pid} has been terminated.\r\n")
    return 0


async def timeout(process: Process) -> int:
    """Wait; refuses redirected input as the real one does."""
    numbers = [int(word) for word in process.argv[1:] if re.fullmatch(r"-?\d+", word)]
    if not process.tty:
        process.err("ERROR: Input redirection is not supported, exiting the process immediately.\r\n")
        return 1
    await process.container.clock.sleep(numbers[0] if numbers else 0)
    return 0


async def shutdown(process: Process) -> int:
    """Restart or stop the computer after a while, or take that back with /a."""
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
    if not {"/r", "/s", "/g"} & set(words):
        process.out("Usage: shutdown.exe [/i | /l | /s | /r | /g | /a | /p | /h | /e | /o] [/f] [/t xxx]\r\n")
        return 1
    if machine.power is not None:
        process.err("A system shutdown has already been scheduled.(1190)\r\n")
        return 1190
    delays = [int(word) for flag, word in itertools.pairwise(words) if flag == "/t" and word.isdigit()]
    machine.request_power(PowerRequest("/s" not in words, delays[0] if delays else 30))
    await asyncio.sleep(0)
    return 0


async def systeminfo(process: Process) -> int:
    """A summary of the computer."""
    container = process.container
    machine, build = container.machine, container.build
    boot = time.strftime("%m/%d/%Y, %I:%M:%S %p", time.localtime(machine.booted_at))
    rows = {
        "Host Name": container.computer_name,
        "OS Name": f"Microsoft {build.edition}",
        "OS Version": f"10.0.{build.number} N/A Build {build.number}",
        "OS Manufacturer": "Microsoft Corporation",
        "System Boot Time": boot,
        "System Manufacturer": "Microsoft Corporation",
        "System Type": "x64-based PC",
        "Total Physical Memory": f"{machine.memory_bytes // 2**20:,d} MB",
        "Domain": container.host.domain or "WORKGROUP",
    }
    process.out("\r\n" + "".join(f"{name + ':':<27}{value}\r\n" for name, value in rows.items()))
    return 0


async def setx(process: Process) -> int:
    """Set a variable for later processes of the machine."""
    words = [word for word in process.argv[1:] if not word.startswith("/")]
    if len(words) < 2:
        process.err('ERROR: Invalid syntax.\r\nType "SETX /?" for usage.\r\n')
        return 1
    process.container.host.machine_environment[words[0]] = words[1]
    process.out("\r\nSUCCESS: Specified value was saved.\r\n")
    return 0


PROGRAMS: dict[str, Program] = {
    "whoami.exe": whoami,
    "hostname.exe": hostname,
    "tasklist.exe": tasklist,
    "taskkill.exe": taskkill,
    "timeout.exe": timeout,
    "shutdown.exe": shutdown,
    "systeminfo.exe": systeminfo,
    "setx.exe": setx,
}
