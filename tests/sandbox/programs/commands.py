"""Everything that simulated programs can do, by kind and name, with the options that each knows."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from winready_sandbox.programs import curl_options, dns_tools, nc, ping, wget
from winready_sandbox.programs.agnhost import SUBCOMMANDS
from winready_sandbox.programs.busybox.main import APPLETS
from winready_sandbox.programs.catalogue import PROGRAMS
from winready_sandbox.programs.cmd.builtins import BUILTINS as CMD_BUILTINS
from winready_sandbox.programs.powershell.cmdlets import ALIASES, CMDLETS
from winready_sandbox.programs.powershell.members import METHODS
from winready_sandbox.programs.powershell.operators import FAMILIES
from winready_sandbox.programs.powershell.statics import STATICS
from winready_sandbox.programs.powershell.types import CASTS, OBJECTS
from winready_sandbox.programs.sh.builtins import BUILTINS as SH_BUILTINS

Commands = dict[str, set[str]]

_OPTIONS: dict[str, set[str]] = {
    "curl": {*curl_options.LONG_SWITCHES, *curl_options.LONG_VALUES},
    "dig": {*dns_tools.DIG_OPTIONS, *dns_tools.DIG_VALUES},
    "nc": set(nc.OPTIONS),
    "ping": {*ping.WINDOWS_OPTIONS, *ping.LINUX_OPTIONS},
    "wget": set(wget.OPTIONS),
}


def _letters(applet: Callable[..., Any]) -> set[str]:
    """The letters that an applet hands to `Tool.options`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(applet)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    given = [call.args[0] for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "options"]
    texts = [each.value for each in given if isinstance(each, ast.Constant)]
    return {letter for text in texts for letter in str(text) if letter != ":"}


def catalogue() -> Commands:
    """All of it, in the words of `winready_sandbox.programs.record`; operators are counted by family."""
    found: Commands = {f"program {name}": _OPTIONS.get(name, set()) for name in PROGRAMS}
    found |= {f"applet {name}": _letters(applet) for name, applet in APPLETS.items()}
    found |= {f"applet {name}": set() for name in ("sh", "bash")}
    found |= {f"sh {name}": set() for name in SH_BUILTINS}
    found |= {f"cmd {name}": set() for name in CMD_BUILTINS}
    found |= {f"agnhost {name}": {f"--{flag}" for flag in each.flags} for name, each in SUBCOMMANDS.items()}
    for cmdlet in CMDLETS.values():
        names = (*cmdlet.parameters, *cmdlet.switches, *cmdlet.named_only)
        found[f"cmdlet {cmdlet.name}"] = {name.lower() for name in names}
    found |= {f"alias {name}": set() for name in ALIASES}
    found |= {f"static {type_}::{member}": set() for type_, member in STATICS}
    found |= {f"type {name}": set() for name in (*CASTS, *OBJECTS)}
    found |= {f"method {name}": set() for name in METHODS}
    found |= {f"operators {name}": set() for name in FAMILIES}
    return found
