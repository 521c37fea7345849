"""A HostProcess container uses what only the node itself may: WMI, services, registry, event log, local groups.

An ordinary container that makes a group of its own must not make one on the node.
"""

import contextlib
import random

from winready.checks.context import Context
from winready.checks.hosting import fields, record_script, run_script, said
from winready.checks.registry import check
from winready.cluster.errors import ExecFailed
from winready.cluster.failures import CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod, from_the_start
from winready.cluster.probes import describe, every

USE = (
    '"wmi=$((Get-CimInstance Win32_OperatingSystem).BuildNumber)"; '
    "\"services=$(@(Get-Service | ? Status -eq 'Running').Count)\"; "
    "$k='HKLM:\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion'; \"registry=$((Get-ItemProperty $k).CurrentBuild)\"; "
    '"events=$(@(Get-WinEvent -LogName System -MaxEvents 1).Count)"; '
    'net.exe localgroup {own} /add | Out-Null; "add=$LASTEXITCODE"; '
    'net.exe localgroup {own} | Out-Null; "show=$LASTEXITCODE"; '
    'net.exe localgroup {own} /delete | Out-Null; "delete=$LASTEXITCODE"; '
    'net.exe localgroup {own} | Out-Null; "gone=$LASTEXITCODE"; '
    'net.exe localgroup {other} | Out-Null; "other=$LASTEXITCODE"; net.exe localgroup {other} /delete | Out-Null; '
    '(Get-Service kubelet,containerd -ErrorAction SilentlyContinue) | % {{ "service $($_.Name)=$($_.Status)" }}; exit 0'
)
NAMES = {
    "wmi": "WMI (Win32_OperatingSystem)",
    "services": "the list of services",
    "registry": "the registry (HKLM)",
    "events": "the event log",
    "add": "making a local group",
    "show": "the group that it made",
    "delete": "removing that group",
    "gone": "the removal of that group",
}


@check("extend.hostprocess.system-api", fixtures=("hosts", "clients"), expected_s=10)
async def system_api(ctx: Context) -> None:
    """On every judged node, with an ordinary pod of that node as the other side."""
    clients = {pod.node.name: pod for pod in await ctx.world.fixtures.clients("windows")}

    async def judge(node: Node) -> None:
        await from_the_start(lambda: _judge(ctx, node, clients[node.name]))

    await every(*(judge(node) for node in ctx.windows_nodes))


async def _judge(ctx: Context, node: Node, ordinary: Pod) -> None:
    host = await ctx.host(node)
    own, other = (f"winready-{ctx.settings.run_id}-{random.randbytes(4).hex()}" for _ in range(2))
    # Whether its image can do that at all does not matter: the node must not have that group afterwards.
    with contextlib.suppress(ExecFailed):
        await ordinary.run(["cmd", "/c", "net", "localgroup", other, "/add"])
    script = USE.format(own=own, other=other)
    try:
        result = await run_script(ctx, host, script, again=False)
    except ExecFailed:
        for group in (own, other):
            await run_script(ctx, host, f"net.exe localgroup {group} /delete | Out-Null; exit 0")
        raise
    told, build = fields(result), host.build.split(".")[2]
    ctx.evidence.fact(f"services of {node.name}", {k: v for k, v in told.items() if k.startswith("service ")})
    right = {
        "wmi": told.get("wmi") == build,
        "services": told.get("services", "0") not in ("", "0"),
        "registry": told.get("registry") == build,
        "events": told.get("events", "0") not in ("", "0"),
        **{step: told.get(step) == "0" for step in ("add", "show", "delete")},
        "gone": told.get("gone", "0") != "0",
    }
    wrong = [NAMES[name] for name, ok in right.items() if not ok]
    expected = f"build {build} from WMI and registry, services, events, a local group made and removed"
    title = f"{host.name} uses interfaces of node {node.name}"
    record_script(ctx, title, not wrong, said(result), host, script, expected)
    leaked = told.get("other", "2") == "0"
    title = f"{ordinary.name} cannot change node {node.name}"
    record_script(ctx, title, not leaked, told.get("other", ""), host, script, f"no group {other}")
    if wrong or leaked:
        broken = (
            f"cannot use {', '.join(wrong)}" if wrong else f"sees a group that the ordinary pod {ordinary.name} made"
        )
        raise CheckFailed(
            f"HostProcess {describe(host)} {broken}: {said(result)}",
            expected=expected,
            observed=said(result),
            next_step=f"look at the user that HostProcess containers get on node {node.name}, and at these services",
        )
