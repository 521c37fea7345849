"""Every program that files in images can stand for, by the name that `machine.executables` keeps in them."""

from __future__ import annotations

from winready.sandbox.machine.process import Program
from winready.sandbox.programs import simple
from winready.sandbox.programs.cmd.main import cmd

PROGRAMS: dict[str, Program] = {
    "cmd": cmd,
    **simple.PROGRAMS,
}
