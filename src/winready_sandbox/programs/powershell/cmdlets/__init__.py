"""The cmdlets, by name, and the short names people use."""

from __future__ import annotations

from winready_sandbox.programs.powershell.binding import Cmdlet
from winready_sandbox.programs.powershell.cmdlets import files, host, jobs, network, objects, system, web

CMDLETS: dict[str, Cmdlet] = {
    cmdlet.name.lower(): cmdlet
    for module in (objects, files, system, jobs, host, network, web)
    for cmdlet in module.CMDLETS
}

ALIASES: dict[str, str] = {
    "echo": "write-output",
    "write": "write-output",
    "?": "where-object",
    "where": "where-object",
    "%": "foreach-object",
    "foreach": "foreach-object",
    "select": "select-object",
    "sort": "sort-object",
    "measure": "measure-object",
    "group": "group-object",
    "ft": "format-table",
    "fl": "format-list",
    "cat": "get-content",
    "type": "get-content",
    "gc": "get-content",
    "sc": "set-content",
    "ac": "add-content",
    "ls": "get-childitem",
    "dir": "get-childitem",
    "gci": "get-childitem",
    "gi": "get-item",
    "rm": "remove-item",
    "del": "remove-item",
    "ri": "remove-item",
    "rmdir": "remove-item",
    "cp": "copy-item",
    "copy": "copy-item",
    "mv": "move-item",
    "md": "mkdir",
    "ni": "new-item",
    "cd": "set-location",
    "sl": "set-location",
    "pwd": "get-location",
    "gl": "get-location",
    "sleep": "start-sleep",
    "ps": "get-process",
    "gps": "get-process",
    "kill": "stop-process",
    "gsv": "get-service",
    "gcim": "get-ciminstance",
    "gwmi": "get-wmiobject",
    "gp": "get-itemproperty",
    "iwr": "invoke-webrequest",
    "irm": "invoke-restmethod",
    "iex": "invoke-expression",
    "gcm": "get-command",
    "sajb": "start-job",
    "gjb": "get-job",
    "wjb": "wait-job",
    "rcjb": "receive-job",
    "gm": "get-member",
}
