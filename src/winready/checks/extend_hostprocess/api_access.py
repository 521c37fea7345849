"""A HostProcess container calls the API server with the service account that is mounted into it.

Where it finds that account depends on the runtime: at the usual path since containerd 1.7, below its own folder before.
A token that the API server does not accept is answered with 401 whatever the path, so any answer of success means that
it was accepted. The token stays on the node.
"""

from collections.abc import Sequence

from winready.checks.context import Context
from winready.checks.host_holding import TRIES, Holding
from winready.checks.hosting import fields, record_script, run_script, said
from winready.checks.registry import check
from winready.cluster.commands import Ask, Dialled, lines
from winready.cluster.errors import ApiError
from winready.cluster.execution import Execution
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe, every
from winready.cluster.resources import ENDPOINT_SLICES

OF_API_SERVER = "kubernetes.io/service-name=kubernetes"
UNVERIFIED = "60"
"""How curl ends when no authority that it was given has signed the server's certificate."""
ENDED = ("52", "56")
"""How curl ends when the server, which had shown its certificate, ends the connection without an answer."""
PREPARE = (
    "$m=$env:CONTAINER_SANDBOX_MOUNT_POINT.TrimEnd('\\'); $d='\\var\\run\\secrets\\kubernetes.io\\serviceaccount'; "
    "if ($m -eq 'C:\\hpc') {$d='C:'+$d} else {$d=$m+$d}; \"folder=$d\"; "
    '$t=\'\'; if (Test-Path "$d\\token") {$t="$(Get-Content "$d\\token")"}; "token=$($t.Length)"; '
    "$f=\"$m\\winready-call.txt\"; Set-Content -Path $f -Encoding Ascii -Value ('Authorization: Bearer ' + $t); "
)
CALL = (
    'curl.exe -s -S --connect-timeout 10 --max-time 15 --ssl-no-revoke {trust} -H "@$f" -o NUL '
    "-w 'code=%{{http_code}}\\n' {url}; \"exit=$LASTEXITCODE\"; "
)
FINISH = "cmd.exe /c del $f"
BY_SERVICE = CALL.format(
    trust='--cacert "$d\\ca.crt"', url='"https://$($env:KUBERNETES_SERVICE_HOST):$($env:KUBERNETES_SERVICE_PORT)/api"'
)
SERVICE, ANSWERER = Ask("kubernetes", 443), "the API server"


@check("extend.hostprocess.api-access", fixtures=("hosts",), expected_s=75)
async def api_access(ctx: Context) -> None:
    """On every judged node: answers of success through the address that pods are given, for a minute."""
    await every(*(_judge(ctx, node) for node in ctx.windows_nodes))


async def _judge(ctx: Context, node: Node) -> None:
    host, script = await ctx.host(node), _script(BY_SERVICE)

    async def attempt() -> Try:
        result = await run_script(ctx, host, script)
        return Try(fields(result).get("code") == "200", said(result), result)

    found = await ctx.probe.until(
        f"{host.name} calls the API server with its mounted account",
        attempt,
        window=ctx.times.service_reachable,
        pod=host,
        command=["powershell.exe", "-Command", script],
        expected="200",
    )
    if found.ok:
        await _go_on(ctx, host)
    elif found.execution is not None:
        await _explain(ctx, host, found.execution)


def _script(call: str, times: int = 1) -> str:
    return PREPARE + call * times + FINISH


async def _go_on(ctx: Context, host: Pod) -> None:
    """One answer may be luck: each call is a new connection, and few may get lost."""

    async def ask(asks: Sequence[Ask]) -> list[Dialled]:
        return [await _call(ctx, host, each.tries) for each in asks]

    holding = Holding(host.name, {SERVICE: [ANSWERER]}, ask, ctx.timing)
    await holding.go_on(ctx.times.api_calls)
    seen, bound = holding.samples[SERVICE].text(), holding.bound(SERVICE)
    title = f"{host.name} goes on calling the API server"
    record_script(ctx, title, not holding.broken, seen, host, _script(BY_SERVICE, TRIES), f"200, {bound}")
    if holding.broken:
        raise CheckFailed(
            f"HostProcess {describe(host)} reaches the API server and loses some of its calls: {seen}",
            expected=f"200, {bound}",
            observed=seen,
            next_step=await _where_to_look(ctx, host),
        )


async def _call(ctx: Context, host: Pod, times: int) -> Dialled:
    result = await run_script(ctx, host, _script(BY_SERVICE, times))
    told = lines(result.stdout)
    codes, ends = ([line.partition("=")[2] for line in told if line.startswith(f"{key}=")] for key in ("code", "exit"))
    calls = list(zip(codes, ends, strict=False))
    lost = [said(result) if code == "000" else f"HTTP {code}" for code, end in calls if not _arrived(code, end)]
    return Dialled([ANSWERER] * (len(calls) - len(lost)), lost)


def _arrived(code: str, end: str) -> bool:
    """Whether a call came to the API server and was not refused; its troubles are not the node's."""
    return code in ("200", "429") or code.startswith("5") or (code == "000" and end in ENDED)


async def _where_to_look(ctx: Context, host: Pod) -> str:
    node = host.node.name
    if direct := await _direct(ctx, host):
        return f"the API server itself answers at {direct}: look at the service proxy on node {node}"
    return f"look for packet loss between node {node} and the API server"


async def _explain(ctx: Context, host: Pod, result: Execution) -> None:
    told, who = fields(result), f"HostProcess {describe(host)}"
    code, seen, place = told.get("code", ""), said(result), told.get("folder", "its mount point")
    if not (told.get("token") or "0").strip("0"):
        reason, step = f"finds no token in {place}", "look at the pod's volumes and at the version of containerd there"
    elif told.get("exit") == UNVERIFIED:
        raise CheckBlocked(
            f"{who} cannot verify the API server by {place}\\ca.crt: {seen}",
            next_step=f"compare that file with the cluster's authority; curl on {host.node.name} must be 7.60 or newer",
        )
    elif code not in ("", "000"):
        reason, step = f"is refused by the API server with its mounted token: {code}", "look at the API server's log"
    elif direct := await _direct(ctx, host):
        reason = f"reaches the API server at {direct}, but not through its service address"
        step = f"look at the service proxy on node {host.node.name}: does it serve the node itself?"
    else:
        reason, step = "does not reach the API server", f"look at the network of node {host.node.name}"
    raise CheckFailed(f"{who} {reason}: {seen}", expected="200", observed=seen, next_step=step)


async def _direct(ctx: Context, host: Pod) -> str:
    """The API server's own address, if the node reaches it there with the same token."""
    try:
        slices = await ctx.world.client.list(ENDPOINT_SLICES, "default", labels=OF_API_SERVER)
    except ApiError:
        # Not every operator may look there, and what was found holds without it.
        return ""
    for item in slices:
        for endpoint in item.get("endpoints") or []:
            address = f"{endpoint['addresses'][0]}:{(item.get('ports') or [{}])[0].get('port')}"
            script = _script(CALL.format(trust="-k", url=f'"https://{address}/api"'))
            result = await run_script(ctx, host, script)
            ok = fields(result).get("code") == "200"
            record_script(ctx, f"control: {host.name} calls {address}", ok, said(result), host, script, "200")
            if ok:
                return address
    return ""
