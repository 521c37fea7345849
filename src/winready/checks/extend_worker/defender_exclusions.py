"""Microsoft Defender leaves the container runtime out of its scans; with it pods start in many times the time."""

import fnmatch
import ntpath
from typing import Any

from winready.checks.context import Context
from winready.checks.hosting import lines_of_json, record_script, run_script, said
from winready.checks.registry import check
from winready.cluster.failures import CheckBlocked, CheckFailed, NotApplicable
from winready.cluster.inventory import Node
from winready.cluster.probes import describe, every

LOOK = (
    "$p=Get-MpPreference -ErrorAction SilentlyContinue; "
    "@{running=@(Get-Process MsMpEng -ErrorAction SilentlyContinue).Count; told=($p -ne $null); "
    'runtime="$((Get-CimInstance Win32_Service -Filter "Name=\'containerd\'").PathName)"; '
    'programs=@(Get-Process containerd -ErrorAction SilentlyContinue | % {"$($_.Path)"}); '
    'processes=@($p.ExclusionProcess); paths=@($p.ExclusionPath); idle="$($p.DisableRealtimeMonitoring)"} '
    "| ConvertTo-Json -Compress; exit 0"
)
VARIABLES = {
    "%programfiles%": "c:\\program files",
    "%programdata%": "c:\\programdata",
    "%systemroot%": "c:\\windows",
    "%windir%": "c:\\windows",
    "%systemdrive%": "c:",
}


@check("extend.worker.defender-exclusions", fixtures=("hosts",), expected_s=10)
async def defender_exclusions(ctx: Context) -> None:
    """On every judged node where Defender runs; not applicable when it runs on none."""
    running = await every(*(_judge(ctx, node) for node in ctx.windows_nodes))
    if not any(running):
        raise NotApplicable("Microsoft Defender runs on no judged Windows node")


async def _judge(ctx: Context, node: Node) -> bool:
    """Whether Defender runs there, and leaves the runtime alone."""
    host = await ctx.host(node)
    result = await run_script(ctx, host, LOOK)
    found = lines_of_json(result)
    if not found:
        raise CheckBlocked(f"{describe(host)} could not look at Defender: {said(result)}")
    told = found[0]
    if not told.get("running"):
        ctx.evidence.fact(f"Defender on {node.name}", "does not run")
        record_script(ctx, f"Defender on {node.name}", True, "it does not run", host, LOOK, "")
        return False
    # Some distributions, such as RKE2, start containerd from a service of their own: then it is a process only.
    program = _program(str(told.get("runtime") or "")) or next(iter(_texts(told, "programs")), "")
    shown = _texts(told, "processes") + _texts(told, "paths")
    if not program or not told.get("told") or any(text.lower().startswith("n/a") for text in shown):
        hidden = "tells of no service and no process containerd" if not program else "does not show its exclusions"
        raise CheckBlocked(
            f"node {node.name} {hidden}: {said(result)}",
            next_step="look at the policy that sets them; HideExclusionsFromLocalAdmins hides them",
        )
    left_out = _excluded(program, told) or str(told.get("idle")).lower() == "true"
    seen = ", ".join(shown) or "no exclusions"
    title, expected = f"Defender on {node.name} leaves {program} alone", f"an exclusion that covers {program}"
    record_script(ctx, title, left_out, seen, host, LOOK, expected)
    if not left_out:
        raise CheckFailed(
            f"Microsoft Defender on node {node.name} scans the container runtime {program}: {seen}",
            expected=expected,
            observed=seen,
            next_step=f"Add-MpPreference -ExclusionProcess '{program}' on node {node.name}, or in its image",
        )
    return True


def _texts(told: dict[str, Any], name: str) -> list[str]:
    return [str(item) for item in told.get(name) or [] if item]


def _program(command: str) -> str:
    """The program of a service's command line."""
    if command.startswith('"'):
        return command[1:].partition('"')[0]
    head, found, _ = command.lower().partition(".exe")
    return command[: len(head) + 4] if found else command.partition(" ")[0]


def _excluded(program: str, told: dict[str, Any]) -> bool:
    path = program.lower()
    for text in map(_plain, _texts(told, "processes")):
        if fnmatch.fnmatchcase(path if "\\" in text else ntpath.basename(path), text):
            return True
    for text in map(_plain, _texts(told, "paths")):
        if fnmatch.fnmatchcase(path, text) or path.startswith(text.removesuffix("*").rstrip("\\") + "\\"):
            return True
    return False


def _plain(text: str) -> str:
    text = text.lower()
    for variable, value in VARIABLES.items():
        text = text.replace(variable, value)
    return text
