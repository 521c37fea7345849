"""Cmdlets on the node itself, for HostProcess containers: host networking, addresses, firewall, Defender."""

from __future__ import annotations

import fnmatch
import uuid
from typing import Any

from winready_sandbox.chance import unique
from winready_sandbox.machine.windows_host import FirewallRule
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.values import PSObject, as_list, to_text


def _may_change(call: Invocation) -> bool:
    who = call.session.process.identity
    if who is None or who.administrator:
        return True
    call.error("Access is denied.", "UnauthorizedAccess", "PermissionDenied")
    return False


def _hns_answers(call: Invocation) -> bool:
    if not call.session.process.container.machine.defects.hns_down:
        return True
    call.error("The RPC server is unavailable.", "HNS failed with error", "ResourceUnavailable")
    return False


async def get_hns_network(call: Invocation) -> None:
    """Networks of the Host Networking Service."""
    if not _hns_answers(call):
        return
    for network in call.session.process.container.machine.hns_networks:
        values = {
            "ID": network.id,
            "Name": network.name,
            "Type": network.type,
            "State": 1,
            "Subnets": [PSObject("Subnet", {"AddressPrefix": network.subnet, "GatewayAddress": network.gateway})],
        }
        call.emit(PSObject("System.Management.Automation.PSCustomObject", values))


async def get_hns_endpoint(call: Invocation) -> None:
    """Endpoints of the containers on this node."""
    if not _hns_answers(call):
        return
    machine = call.session.process.container.machine
    networks = machine.hns_networks
    seen: set[str] = set()
    for container in machine.containers.values():
        if container.host_process or container.endpoint is None or container.endpoint.addresses[0] in seen:
            continue
        address = container.endpoint.addresses[0]
        seen.add(address)
        values = {
            "ID": str(uuid.uuid5(uuid.NAMESPACE_DNS, address)).upper(),
            "Name": f"Ethernet_{address}",
            "IPAddress": address,
            "VirtualNetworkName": networks[0].name if networks else "",
            "Type": networks[0].type if networks else "",
        }
        call.emit(PSObject("System.Management.Automation.PSCustomObject", values))
    for identifier, made in machine.windows_host.hns.endpoints.items():
        network = machine.windows_host.hns.networks[made.network]
        shown: dict[str, Any] = {
            "ID": identifier.upper(),
            "Name": made.name,
            "IPAddress": made.address,
            "VirtualNetworkName": network.name,
            "Type": network.type,
            "Policies": [PSObject("Policy", {"Type": each}) for each in made.policies],
        }
        call.emit(PSObject("System.Management.Automation.PSCustomObject", shown))


async def get_hns_namespace(call: Invocation) -> None:
    """Network namespaces: one per pod, and those made by hand."""
    if not _hns_answers(call):
        return
    machine = call.session.process.container.machine
    pods = [
        str(uuid.uuid5(uuid.NAMESPACE_OID, container.endpoint.addresses[0]))
        for container in machine.containers.values()
        if container.endpoint is not None and not container.host_process
    ]
    wanted = call.text("Id").lower()
    for identifier in [*dict.fromkeys(pods), *machine.windows_host.hns.namespaces]:
        if not wanted or identifier.lower() == wanted:
            call.emit(
                PSObject("System.Management.Automation.PSCustomObject", {"ID": identifier.upper(), "Type": "Guest"})
            )


async def remove_hns_namespace(call: Invocation) -> None:
    """Delete a namespace that was made by hand."""
    if not _hns_answers(call):
        return
    machine = call.session.process.container.machine
    namespaces = machine.windows_host.hns.namespaces
    for identifier in [to_text(each) for each in as_list(call.get("Id"))]:
        if identifier.lower() not in namespaces:
            call.error("Element not found.", "HNS failed with error", "ObjectNotFound")
        elif _may_change(call):
            machine.hns_delete(namespaces, identifier)


async def get_compute_process(call: Invocation) -> None:
    """Compute systems: the containers of this node, and the virtual machines of isolated pods."""
    machine = call.session.process.container.machine
    systems = [(each.id, "Container") for each in machine.containers.values() if not each.host_process]
    for identifier, kind in [*systems, *((each, "VirtualMachine") for each in sorted(machine.virtual_machines))]:
        values = {"Id": identifier, "Type": kind, "Owner": "containerd-shim-runhcs-v1.exe", "State": "Running"}
        call.emit(PSObject("Microsoft.HostCompute.ComputeProcess", values))


async def get_mp_preference(call: Invocation) -> None:
    """Settings of Microsoft Defender."""
    defender = call.session.process.container.host.defender
    if not defender.running:
        call.error("The extrinsic Method could not be executed.", "MI RESULT 16", "MetadataError")
        return
    defects = call.session.process.container.machine.defects
    paths, processes = list(defender.exclusion_paths), list(defender.exclusion_processes)
    if defects.defender_exclusions_missing:
        paths, processes = [], []
    elif defects.defender_excludes_docker:
        paths, processes = ["C:\\ProgramData\\docker"], ["C:\\Program Files\\Docker\\dockerd.exe"]
    values = {
        "ExclusionPath": paths or None,
        "ExclusionProcess": processes or None,
        "ExclusionExtension": None,
        "DisableRealtimeMonitoring": False,
    }
    call.emit(
        PSObject(
            "Microsoft.Management.Infrastructure.CimInstance#root/Microsoft/Windows/Defender/MSFT_MpPreference", values
        )
    )


def _rule(rule: FirewallRule) -> PSObject:
    values = {
        "Name": rule.name,
        "DisplayName": rule.display_name,
        "Enabled": rule.enabled,
        "Direction": rule.direction,
        "Action": rule.action,
        "Protocol": rule.protocol,
        "LocalPort": rule.local_port,
    }
    return PSObject("MSFT_NetFirewallRule", values)


async def new_firewall_rule(call: Invocation) -> None:
    """Add a rule."""
    if not _may_change(call):
        return
    name = call.text("Name") or unique()
    rule = FirewallRule(
        name,
        call.text("DisplayName", name),
        call.text("Direction", "Inbound"),
        call.text("Action", "Allow"),
        protocol=call.text("Protocol", "Any"),
        local_port=call.text("LocalPort", "Any"),
        added=True,
    )
    call.session.process.container.host.firewall.append(rule)
    call.emit(_rule(rule))


async def get_firewall_rule(call: Invocation) -> None:
    """Rules whose names match."""
    patterns = [to_text(each).lower() for each in as_list(call.get("Name"))] or ["*"]
    found = [
        rule
        for rule in call.session.process.container.host.firewall
        if any(fnmatch.fnmatchcase(rule.name.lower(), pattern) for pattern in patterns)
    ]
    for rule in found:
        call.emit(_rule(rule))
    if not found:
        call.error("No MSFT_NetFirewallRule objects found.", "CmdletizationQuery_NotFound", "ObjectNotFound")


async def remove_firewall_rule(call: Invocation) -> None:
    """Remove rules."""
    rules = call.session.process.container.host.firewall
    names = [to_text(each) for each in as_list(call.get("Name"))]
    if _may_change(call):
        rules[:] = [each for each in rules if each.name not in names]


async def get_net_ip_address(call: Invocation) -> None:
    """Addresses of the node."""
    endpoint = call.session.process.container.endpoint
    for address in [*(endpoint.addresses if endpoint else []), "127.0.0.1"]:
        loopback = address.startswith("127.")
        values = {
            "IPAddress": address,
            "InterfaceIndex": 1 if loopback else 9,
            "InterfaceAlias": "Loopback Pseudo-Interface 1" if loopback else "Ethernet",
            "AddressFamily": "IPv6" if ":" in address else "IPv4",
            "PrefixLength": 8 if loopback else 24,
        }
        call.emit(PSObject("MSFT_NetIPAddress", values))


CMDLETS = [
    Cmdlet("Get-HnsNetwork", get_hns_network, host_only=True),
    Cmdlet("Get-HnsEndpoint", get_hns_endpoint, host_only=True),
    Cmdlet("Get-HnsNamespace", get_hns_namespace, (), (), ("Id",), host_only=True),
    Cmdlet("Remove-HnsNamespace", remove_hns_namespace, (), (), ("Id",), host_only=True),
    Cmdlet("Get-ComputeProcess", get_compute_process, host_only=True),
    Cmdlet("Get-MpPreference", get_mp_preference, host_only=True),
    Cmdlet(
        "New-NetFirewallRule",
        new_firewall_rule,
        (),
        (),
        ("Name", "DisplayName", "Direction", "Action", "Protocol", "LocalPort"),
        host_only=True,
    ),
    Cmdlet("Get-NetFirewallRule", get_firewall_rule, ("Name",), host_only=True),
    Cmdlet("Remove-NetFirewallRule", remove_firewall_rule, ("Name",), host_only=True),
    Cmdlet("Get-NetIPAddress", get_net_ip_address, desktop_only=True),
]
