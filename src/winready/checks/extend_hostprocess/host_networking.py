"""A HostProcess container makes host networking (HCN) objects, finds them in the list and removes them again.

What it makes stays inside the node: a network of type Private has no adapter, so the node keeps its own network.
Every object has an identifier of ours, and no other is ever named; what others have must be there afterwards as before.
"""

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from winready.checks.context import Context
from winready.checks.hosting import lines_of_json, record_script, run_script, said
from winready.checks.registry import check
from winready.cluster.errors import ClusterError, ExecFailed
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.host_scripts import delete_network_objects, network_objects, with_networking
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod, from_the_start
from winready.cluster.probes import describe, every

KINDS = {"network": "networks", "endpoint": "endpoints", "namespace": "namespaces"}
ADDRESS, PREFIX = "192.0.2.10", "192.0.2.0/24"
"""Of a range that is reserved for examples."""
LIST = (
    "@{{step='{step}'; codes=$c; networks=@(Get-HnsNetwork | % {{\"$($_.ID)\"}}); "
    'namespaces=@(Get-HnsNamespace | % {{"$($_.ID)"}}); '
    'endpoints=@(Get-HnsEndpoint | % {{"$($_.ID) $($_.IPAddress) $(@($_.Policies | % {{$_.Type}}))"}})}} '
    "| ConvertTo-Json -Compress; "
)
MAKE = (
    "CreateNetwork(ref Guid i,string s,out IntPtr h,out IntPtr e);",
    "CreateEndpoint(IntPtr n,ref Guid i,string s,out IntPtr h,out IntPtr e);",
    "CreateNamespace(ref Guid i,string s,out IntPtr h,out IntPtr e);",
)
VERSION = {"SchemaVersion": {"Major": 2, "Minor": 0}}


@dataclass
class Seen:
    """What there was at one step."""

    codes: list[int]
    objects: dict[str, set[str]]
    addresses: set[str]
    policies: dict[str, str] = field(default_factory=dict)


@check("extend.hostprocess.host-networking", fixtures=("hosts", "clients"), expected_s=15)
async def host_networking(ctx: Context) -> None:
    """On every judged node: a network, an endpoint with a policy in it, and a namespace."""
    clients = {pod.node.name: pod for pod in await ctx.world.fixtures.clients("windows")}

    async def judge(node: Node) -> None:
        # With new identifiers each time: nobody knows how far the one before came.
        await from_the_start(lambda: _judge(ctx, node, clients[node.name]))

    await every(*(judge(node) for node in ctx.windows_nodes))


async def _judge(ctx: Context, node: Node, ordinary: Pod) -> None:
    host, own = await ctx.host(node), network_objects(str(uuid.uuid4()))
    ctx.evidence.fact(f"identifiers on {node.name}", own)
    make = _make_script(f"winready-{ctx.settings.run_id}", own)
    try:
        before, made = await _look(ctx, host, make, ("before", "made"), "makes host networking objects")
        if [bool(code) for code in made.codes] == [False, True, False]:
            await _require_policy_to_blame(ctx, host, own, _codes(made))
        _require(ctx, host, make, not any(made.codes), "made", f"HNS refuses to make objects: {_codes(made)}")
        lacking = [kind for kind, name in own.items() if name not in made.objects[KINDS[kind]]]
        _require(ctx, host, make, not lacking, "listed", f"does not see the {_joined(lacking)} that it made")
        policy = made.policies.get(own["endpoint"], "")
        _require(
            ctx, host, make, "ACL" in policy, "listed with its policy", f"sees the endpoint with {policy or 'none'}"
        )
    except BaseException:
        await _remove(ctx, host, own)
        raise
    try:
        (after,) = await _look(ctx, host, _remove_script(own), ("after",), "removes them again")
    except ExecFailed:
        await _remove(ctx, host, own)
        raise
    _require(ctx, host, make, not any(after.codes), "removed", f"HNS refuses to remove objects: {_codes(after)}")
    left = [kind for kind, name in own.items() if name in after.objects[KINDS[kind]]]
    if left:
        ctx.world.leftovers.append(f"host networking objects {_joined([own[kind] for kind in left])} on {node.name}")
    _require(ctx, host, make, not left, "gone", f"still sees the {_joined(left)} that it removed")
    # Pods come and go meanwhile, and their endpoints with them; networks stay, and so does the pod that we know.
    lost = sorted(before.objects["networks"] - after.objects["networks"])
    lost += [ordinary.address] if ordinary.address in before.addresses - after.addresses else []
    what = f"lost objects of others while it removed its own: {_joined(lost)}"
    _require(ctx, host, make, not lost, "alone touched", what)


async def _require_policy_to_blame(ctx: Context, host: Pod, own: dict[str, str], code: str) -> None:
    """Blocked, if an endpoint without a policy can be made: HNS may have no use for one where no traffic enters."""
    await _remove(ctx, host, own)
    plain = network_objects(str(uuid.uuid4()))
    script = _make_script(f"winready-{ctx.settings.run_id}", plain, policies=False)
    try:
        _, made = await _look(ctx, host, script, ("before", "made"), "makes host networking objects without a policy")
    finally:
        await _remove(ctx, host, plain)
    ok = not any(made.codes)
    record_script(ctx, f"control: {host.name} makes them without a policy", ok, _codes(made) or "so", host, script, "")
    if ok:
        raise CheckBlocked(
            f"HostProcess {describe(host)} makes a network, an endpoint and a namespace, but HNS refuses an ACL policy "
            f"on an endpoint of a Private network ({code}): whether it makes policies elsewhere cannot be told without "
            f"touching networks of others",
            next_step=f"look at the event log of the Host Networking Service on node {host.node.name}; leave this out "
            f"with --skip where its build has no such policies",
        )


def _require(ctx: Context, host: Pod, script: str, ok: bool, step: str, otherwise: str) -> None:
    node = host.node.name
    title = f"{host.name}: its objects on node {node} are {step}"
    record_script(ctx, title, ok, "so" if ok else otherwise, host, script, f"objects of its own are {step}")
    if not ok:
        raise CheckFailed(
            f"HostProcess {describe(host)} {otherwise}",
            expected=f"objects of its own are {step}",
            observed=otherwise,
            next_step=f"look at the Host Networking Service of node {node}: 'hnsdiag list all', and its event log",
        )


async def _look(ctx: Context, host: Pod, script: str, steps: tuple[str, ...], what: str) -> list[Seen]:
    """Run a script that does something and lists what there is at these steps."""
    result = await run_script(ctx, host, script, again=False)
    found = {item.get("step"): item for item in lines_of_json(result)}
    if missing := [step for step in steps if step not in found]:
        reason = f"cannot be told what HNS has ({missing[0]}): {said(result)}"
        _require(ctx, host, script, False, f"listed when it {what}", reason)
    return [_seen(found[step]) for step in steps]


def _seen(document: dict[str, Any]) -> Seen:
    endpoints = [str(item).split(" ", 2) for item in document["endpoints"]]
    objects = {kind: {str(item).lower() for item in document[kind]} for kind in ("networks", "namespaces")}
    objects["endpoints"] = {parts[0].lower() for parts in endpoints}
    policies = {parts[0].lower(): parts[2] if len(parts) > 2 else "" for parts in endpoints}
    return Seen(document["codes"], objects, {parts[1] for parts in endpoints if len(parts) > 1}, policies)


def _make_script(name: str, own: dict[str, str], *, policies: bool = True) -> str:
    subnet = {"IpAddressPrefix": PREFIX}
    network = {"Name": name, "Type": "Private", "Ipams": [{"Type": "Static", "Subnets": [subnet]}], **VERSION}
    rule = {"Protocols": "6", "Action": "Allow", "Direction": "In", "LocalPorts": "80", "Priority": 200}
    wanted = [{"Type": "ACL", "Settings": rule}] if policies else []
    config = [{"IpAddress": ADDRESS, "PrefixLength": 24}]
    endpoint = {"Name": name, "IpConfigurations": config, "Policies": wanted, **VERSION}
    calls = (
        f"$i=[guid]'{own['network']}'; $n=[IntPtr]0; "
        f"$c+=[Winready.Hcn]::HcnCreateNetwork([ref]$i,'{_compact(network)}',[ref]$n,[ref]$e); "
        f"$i=[guid]'{own['endpoint']}'; $h=[IntPtr]0; "
        f"$c+=[Winready.Hcn]::HcnCreateEndpoint($n,[ref]$i,'{_compact(endpoint)}',[ref]$h,[ref]$e); "
        f"$i=[guid]'{own['namespace']}'; $h=[IntPtr]0; "
        f"$c+=[Winready.Hcn]::HcnCreateNamespace([ref]$i,'{_compact(VERSION)}',[ref]$h,[ref]$e); "
    )
    return with_networking(MAKE, LIST.format(step="before") + calls + LIST.format(step="made"))


def _remove_script(own: dict[str, str]) -> str:
    return delete_network_objects(own, LIST.format(step="after"))


async def _remove(ctx: Context, host: Pod, own: dict[str, str]) -> None:
    """Whatever happened, nothing of ours stays."""
    try:
        await run_script(ctx, host, _remove_script(own))
    except ClusterError as error:
        names = _joined(list(own.values()))
        ctx.world.leftovers.append(f"host networking objects {names} on node {host.node.name} ({error.message})")


def _compact(settings: dict[str, Any]) -> str:
    return json.dumps(settings, separators=(",", ":"))


def _codes(seen: Seen) -> str:
    return ", ".join(f"0x{code & 0xFFFFFFFF:08X}" for code in seen.codes if code)


def _joined(words: list[str]) -> str:
    return ", ".join(words)
