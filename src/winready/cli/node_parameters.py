"""What the add-ons and the preflight are about: the parameters of a bundle, or what the cluster and options say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.node_commands import bundle_option, opened
from winready.cli.options import apply

if TYPE_CHECKING:
    from winready.cluster.client import Client
    from winready.node.discovery import Findings
    from winready.node.parameters import Parameters

parameter_options = apply(
    bundle_option,
    click.option("--kubernetes", default="", metavar="V", help="Release of Windows nodes (default: the cluster's)."),
    click.option("--cni", type=click.Choice(["flannel", "none"]), help="Pod network.  [default: flannel]"),
    click.option("--mode", type=click.Choice(["overlay", "l2bridge"]),
                 help="overlay: VXLAN; l2bridge: host gateway, all nodes on one segment.  [default: overlay]"),
    click.option("--network-name", default="", metavar="NAME",
                 help="With --cni none: the HNS network of the other pod network, such as Calico."),
    click.option("--endpoint", default="", metavar="HOST:PORT", help="API server as Windows nodes reach it."),
    click.option("--pod-cidr", "pod_cidrs", multiple=True, metavar="CIDR", help="Addresses of pods."),
    click.option("--service-cidr", "service_cidrs", multiple=True, metavar="CIDR", help="Addresses of services."),
    click.option("--dns", "dns_servers", multiple=True, metavar="IP", help="The cluster's DNS server."),
    click.option("--interface", default="", metavar="NAME", help="Network adapter (default: the node address's)."),
    click.option("--registry", default="", metavar="R", help="Take images from this registry instead of their own."),
)  # fmt: skip
NAMES = ("bundle", "kubernetes", "cni", "mode", "network_name", "endpoint", "pod_cidrs", "service_cidrs", "dns_servers",
         "interface", "registry")  # fmt: skip


def of_bundle(given: dict[str, Any]) -> Parameters | None:
    """The parameters of ``--bundle``, which leaves nothing open."""
    if not isinstance(given["bundle"], Path):
        return None
    found = opened(given["bundle"])
    if twice := sorted(name for name in NAMES if given.get(name) and name != "bundle"):
        raise click.UsageError(f"the bundle says it already: leave --{twice[0].rstrip('s').replace('_', '-')} out")
    return found.parameters


async def settled(client: Client, given: dict[str, Any], found: Findings | None = None) -> Parameters:
    """Parameters from options and from what the cluster says; raises `ParametersError`."""
    from winready.node.discovery import look
    from winready.node.settling import Wishes, settle

    found = found or await look(client)
    wishes = Wishes(
        kubernetes=given["kubernetes"],
        containerd="none",
        cni=given["cni"] or "flannel",
        mode=given["mode"] or "overlay",
        registry=given["registry"],
        endpoint=given["endpoint"],
        pod_cidrs=list(given["pod_cidrs"]),
        service_cidrs=list(given["service_cidrs"]),
        dns_servers=list(given["dns_servers"]),
        interface=given["interface"],
        network_name=given["network_name"],
    )
    return settle(wishes, found, (given["kubernetes"] or found.server).removeprefix("v"))
