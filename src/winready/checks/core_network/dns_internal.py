"""A Windows pod resolves and reaches services and pods by their cluster DNS names."""

from winready.checks.context import Context
from winready.checks.core_network.name_failures import require
from winready.checks.core_network.name_holding import hold
from winready.checks.core_network.name_objects import Names, prepare
from winready.checks.core_network.name_records import read_records, require_records, wrong_records
from winready.checks.core_network.names import Led
from winready.checks.registry import check
from winready.cluster.commands import connect, dig, name_error
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe, every
from winready.cluster.timing import now

GLANCE = 1.0
"""Seconds for a connection that nobody will accept, when only the name counts."""


@check("core.network.dns-internal", fixtures=("clients", "servers", "services"), expected_s=150)
async def dns_internal(ctx: Context) -> None:
    """Names of services, pods and the API server lead where they should, follow what changes, and do so for minutes."""
    names = await prepare(ctx)
    clients, controls = await ctx.clients("windows"), await ctx.clients("linux")
    await every(*(_first(ctx, client, controls, names) for client in clients))
    await names.change(ctx)
    changed = now()
    await every(*(_hold(ctx, client, controls, names) for client in clients))
    # Whoever was told the old answer may go on believing it for its time to live, and so may whoever told it.
    rest = ctx.times.dns_answer + 2 * names.ttl - (now() - changed) * ctx.timing.scale
    await ctx.timing.pause(max(0.0, rest))
    window = ctx.times.hold
    await every(*(require(ctx, client, controls, names.after, window=window) for client in clients))


async def _hold(ctx: Context, client: Pod, controls: list[Pod], names: Names) -> None:
    await hold(ctx, client, controls, list(names.records), names.steady, records=names.records)


async def _first(ctx: Context, client: Pod, controls: list[Pod], names: Names) -> None:
    await require(ctx, client, controls, names.before, window=ctx.times.dns_answer)
    await _records(ctx, client, names)
    await _large_answers(ctx, client, controls, names.wide)


async def _records(ctx: Context, client: Pod, names: Names) -> None:
    """What cluster DNS says is what the API says. How often it says nothing is judged later."""
    wanted, command = names.records, dig(list(names.records))
    said: dict[str, str] = {}

    async def attempt() -> Try:
        result = await client.run(command)
        said.update(read_records(wanted, names.read(result.stdout)))
        seen = "; ".join(f"{name}: {said.get(name, 'no answer')}" for name in wanted)
        return Try(len(said) == len(wanted) and not wrong_records(wanted, said), seen, result)

    title = f"{client.name} compares records with the API"
    expected = "; ".join(f"{name}: {address}" for name, address in wanted.items())
    window = ctx.times.dns_answer
    await ctx.probe.until(title, attempt, window=window, pod=client, command=command, expected=expected)
    require_records(client, wanted, said)


async def _large_answers(ctx: Context, client: Pod, controls: list[Pod], address: str) -> None:
    """An answer that does not fit into a datagram is asked for again over TCP."""
    if await _resolves(ctx, client, address):
        return
    control = controls[0]
    if not await _resolves(ctx, control, address):
        raise CheckBlocked(
            f"{address} does not resolve from {describe(control)} either",
            next_step="cluster DNS must answer over TCP as well: look at port 53/TCP of its service and pods",
        )
    raise CheckFailed(
        f"{describe(client)} does not resolve {address}, whose answer is too large for a datagram; "
        f"{describe(control)} does",
        expected="an answer over TCP",
        observed=Led.UNRESOLVED.value,
        next_step=f"look at TCP port 53 on the way from node {client.node.name} to cluster DNS",
    )


async def _resolves(ctx: Context, pod: Pod, address: str) -> bool:
    command = connect(address, seconds=GLANCE)

    async def attempt() -> Try:
        result = await pod.run(command)
        resolved = not name_error(result.stderr)
        return Try(resolved, "resolved" if resolved else result.stderr.decode(errors="replace").strip(), result)

    title, window = f"{pod.name} asks for a name with many addresses", ctx.times.dns_answer / 2
    found = await ctx.probe.until(title, attempt, window=window, pod=pod, command=command, expected="resolved")
    return found.ok
