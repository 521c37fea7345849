"""busybox itself: the name it is called by decides what it does."""

from __future__ import annotations

from winready_sandbox.machine.process import Process, Program
from winready_sandbox.programs import record
from winready_sandbox.programs.busybox import file_applets, system_applets, text_applets
from winready_sandbox.programs.busybox.tool import Applet, Tool
from winready_sandbox.programs.sh.main import sh

APPLETS: dict[str, Applet] = {**file_applets.APPLETS, **system_applets.APPLETS, **text_applets.APPLETS}
_SHELLS: dict[str, Program] = dict.fromkeys(("sh", "bash"), sh)


async def busybox(process: Process) -> int:
    """The program."""
    arguments = list(process.argv)
    name = _applet_name(arguments[0])
    if name == "busybox":
        if len(arguments) < 2:
            process.out("BusyBox v1.37.0 multi-call binary.\n")
            return 0
        arguments = arguments[1:]
        process.argv = arguments
        name = arguments[0]
    if name in _SHELLS:
        record.note(process, "applet", name)
        return await _SHELLS[name](process)
    applet = APPLETS.get(name)
    if applet is not None:
        record.note(process, "applet", name)
        return await applet(Tool(process, name, arguments[1:]))
    elsewhere = process.container.machine.programs.get(name)
    if elsewhere is not None:
        return await elsewhere(process)
    process.err(f"{name}: applet not found\n")
    return 127


def _applet_name(argv0: str) -> str:
    base = argv0.replace("\\", "/").rpartition("/")[2]
    return base[:-4] if base.lower().endswith(".exe") else base
