"""Every program that files in images can stand for, by the name that `machine.executables` keeps in them."""

from __future__ import annotations

from winready_sandbox.machine.process import Program
from winready_sandbox.programs import record, simple
from winready_sandbox.programs.applications import APPLICATIONS
from winready_sandbox.programs.busybox.main import busybox
from winready_sandbox.programs.cmd.main import cmd
from winready_sandbox.programs.network import NETWORK_PROGRAMS
from winready_sandbox.programs.powershell.main import powershell_core, powershell_desktop
from winready_sandbox.programs.windows import WINDOWS_PROGRAMS

PROGRAMS: dict[str, Program] = record.noted(
    {
        "cmd": cmd,
        "powershell-core": powershell_core,
        "powershell-desktop": powershell_desktop,
        "busybox": busybox,
        **simple.PROGRAMS,
        **WINDOWS_PROGRAMS,
        **NETWORK_PROGRAMS,
        **APPLICATIONS,
    }
)
