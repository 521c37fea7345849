"""The cmdlets, by name, and the short names people use."""

from __future__ import annotations

from winready_sandbox.programs.powershell.binding import Cmdlet
from winready_sandbox.programs.powershell.cmdlets import files, host, jobs, objects, system

CMDLETS: dict[str, Cmdlet] = {
    cmdlet.name.lower(): cmdlet for module in (objects, files, system, jobs, host) for cmdlet in module.CMDLETS
}

ALIASES: dict[str, str] = {
    "?": "where-object",
    "%": "foreach-object",
    "echo": "write-output",
    "cat": "get-content",
    "ls": "get-childitem",
    "sleep": "start-sleep",
}
