"""``winready node bundle``: everything that a Windows machine needs to become a worker, in one folder."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.options import apply, cluster_options, fail, print_document, say

if TYPE_CHECKING:
    from winready.node.bundle import Written
    from winready.node.discovery import Findings
    from winready.node.parameters import Parameters
    from winready.node.settling import Wishes

_EXAMPLES = """
\b
Examples:
  winready node bundle --to bundle                     versions and addresses from the cluster
  winready node bundle --offline --to node.zip         with every program, for a machine without a way out
  winready node bundle --kubernetes 1.36.3 --endpoint api.example.com:6443 --pod-cidr 10.244.0.0/16 \\
      --service-cidr 10.96.0.0/12 --dns 10.96.0.10     without asking a cluster
"""

_network_options = apply(
    click.option("--endpoint", default="", metavar="HOST:PORT", help="API server as the machine reaches it."),
    click.option("--pod-cidr", "pod_cidrs", multiple=True, metavar="CIDR", help="Addresses of pods."),
    click.option("--service-cidr", "service_cidrs", multiple=True, metavar="CIDR", help="Addresses of services."),
    click.option("--dns", "dns_servers", multiple=True, metavar="IP", help="The cluster's DNS server."),
    click.option("--dns-domain", default="", metavar="D", help="The cluster's DNS domain."),
    click.option("--network-name", default="", metavar="NAME", help="HNS network of another CNI, for kube-proxy."),
    click.option("--interface", default="", metavar="NAME", help="Network adapter (default: the default route's)."),
)  # fmt: skip

_supply_options = apply(
    click.option("--registry", default="", metavar="R", help="Take images from this registry instead of their own."),
    click.option("--registry-mirror", "registry_mirrors", multiple=True, metavar="HOST=URL",
                 help="containerd asks URL first for images of the registry HOST."),
    click.option("--pause-image", default="", metavar="IMAGE", help="Image of the pod sandbox."),
    click.option("--mirror", default="", metavar="URL", help="Fetch from here: URL/<host>/<path> of each file."),
    click.option("--digest", "digests", multiple=True, metavar="NAME=SHA256", help="Trust this digest for a file."),
    click.option("--http-proxy", default="", metavar="URL", help="Proxy of the machine for http."),
    click.option("--https-proxy", default="", metavar="URL", help="Proxy of the machine for https."),
    click.option("--no-proxy", multiple=True, metavar="HOST", help="Reached without the proxy, besides the cluster."),
)  # fmt: skip


@click.command(epilog=_EXAMPLES)
@cluster_options
@click.option("--kubernetes", default="", metavar="V", help="Release such as 1.36.3, or 1.36 (default: the cluster's).")
@click.option(
    "--cni", type=click.Choice(["flannel", "none"]), default="flannel", show_default=True, help="Pod network."
)
@click.option("--mode", type=click.Choice(["overlay", "l2bridge"]), default="overlay", show_default=True,
              help="overlay: VXLAN; l2bridge: host gateway, all nodes on one segment.")  # fmt: skip
@click.option("--containerd", default="", metavar="V|none", help="Release to install, or none if the machine has one.")
@_network_options
@_supply_options
@click.option("--label", "labels", multiple=True, metavar="K=V", help="Label of the new node.")
@click.option("--taint", "taints", multiple=True, metavar="K=V:EFFECT", help="Taint of the new node.")
@click.option("--hyperv", is_flag=True, help="Also enable Hyper-V, for machines that offer it.")
@click.option("--offline", is_flag=True, help="Put every file in, so that the machine needs no way out.")
@click.option(
    "--to", "target", default="winready-node", show_default=True, metavar="DIR|ZIP", help="Where to write it."
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def bundle(target: str, output: str, offline: bool, mirror: str, digests: tuple[str, ...], **options: Any) -> None:
    """Write the folder or ZIP file that makes a Windows machine a worker of this cluster.

    What is not given by options is read from the cluster; with --kubernetes, --endpoint, --pod-cidr, --service-cidr and
    --dns no cluster is asked. Digests come from the releases' own lists, and nothing that is not verified is written.
    The same input gives the same bytes. Exit code 0: written; 2: something cannot be; 3: the cluster or a source of
    files cannot be asked. Nothing is written then.
    """
    from winready.cluster.errors import ClusterError, ConfigError
    from winready.node.downloads import Unreachable
    from winready.node.joining import upgrade_line
    from winready.node.parameters import ParametersError

    try:
        parameters, written = asyncio.run(_bundle(options, Path(target), offline, mirror, _pinned(digests)))
    except (ParametersError, ClusterError) as error:
        asked_rightly = isinstance(error, Unreachable | ClusterError) and not isinstance(error, ConfigError)
        fail(error.message, error.remedy, code=3 if asked_rightly else 2)
    except KeyboardInterrupt:
        say("interrupted", err=True)
        sys.exit(130)
    upgrade = upgrade_line(written.digest, written.entry_digest)
    if output == "json":
        print_document(
            {"path": str(written.path), "digest": written.digest, "files": written.files, "changed": written.changed,
             "kubernetes": parameters.kubernetes, "offline": offline, "upgrade": upgrade},
            "json",
        )  # fmt: skip
        return
    _tell(parameters, written, offline)


async def _bundle(
    options: dict[str, Any], target: Path, offline: bool, mirror: str, pinned: dict[str, str]
) -> tuple[Parameters, Written]:
    import tempfile

    import msgspec

    from winready.node.bundle import contents, write
    from winready.node.downloads import Downloads
    from winready.node.parameters import ParametersError
    from winready.node.settling import settle
    from winready.node.sources import sources

    kubeconfig, context = options.pop("kubeconfig"), options.pop("context")
    wishes = _wishes(options)
    found = await _ask(wishes, kubeconfig, context)
    async with Downloads(mirror, pinned, lambda line: say(line, err=True)) as downloads:
        parameters = settle(wishes, found, await _release(wishes, found, downloads))
        wanted = sources(parameters.kubernetes, parameters.containerd.version, wishes.cni, parameters.paths, mirror)
        if unknown := sorted(set(pinned) - {source.name for source in wanted}):
            raise _wrong_digest(unknown[0], sorted(source.name for source in wanted))
        parameters = msgspec.structs.replace(parameters, files=await downloads.resolve(wanted))
        if not offline:
            return parameters, write(contents(parameters), target)
        try:
            with tempfile.TemporaryDirectory(prefix="winready-node-") as folder:
                await downloads.fetch(parameters.files, Path(folder))
                return parameters, write(contents(parameters, Path(folder)), target)
        except OSError as error:
            raise ParametersError(
                f"the programs cannot be kept in {tempfile.gettempdir()} for a moment: {error.strerror}",
                "make room there, or name another folder in TMPDIR",
            ) from None


def _wishes(options: dict[str, Any]) -> Wishes:
    from winready.node.settling import Wishes

    given: dict[str, Any] = {}
    for name, value in options.items():
        given[name] = list(value) if isinstance(value, tuple) else value
    return Wishes(**given)


async def _ask(wishes: Wishes, kubeconfig: str | None, context: str | None) -> Findings:
    from winready.cluster.client import Client
    from winready.cluster.kubeconfig import find_target
    from winready.node.discovery import Findings, look

    if wishes.complete and not kubeconfig and not context:
        return Findings()
    async with Client.connect(find_target(kubeconfig, context)) as client:
        return await look(client)


async def _release(wishes: Wishes, found: Findings, downloads: Any) -> str:
    """The release as it was asked for; only a minor version has to be looked up."""
    wanted = (wishes.kubernetes or found.server).removeprefix("v")
    if re.fullmatch(r"\d+\.\d+", wanted):
        return str(await downloads.newest_patch(wanted))
    return wanted


def _pinned(texts: tuple[str, ...]) -> dict[str, str]:
    pinned = {}
    for text in texts:
        name, _, digest = text.partition("=")
        if not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
            raise click.BadParameter(f"{text!r} is not NAME=SHA256", param_hint="--digest")
        pinned[name] = digest.lower()
    return pinned


def _wrong_digest(name: str, names: list[str]) -> Exception:
    from winready.node.parameters import ParametersError

    return ParametersError(f"this bundle has no file {name!r} to trust a digest for", f"there are {', '.join(names)}")


def _tell(parameters: Parameters, written: Written, offline: bool) -> None:
    network = parameters.network
    version = parameters.containerd.version
    runtime = f"containerd {version}" if version else "the machine's own container runtime"
    cni = f"Flannel ({network.mode})" if network.cni == "flannel" else "no pod network"
    say(f"Kubernetes {parameters.kubernetes}, {runtime}, {cni}; API server {parameters.endpoint}")
    what = f"{written.files} files, every program included" if offline else f"{written.files} files"
    say(f"{'wrote' if written.changed else 'unchanged:'} {written.path} ({what})")
    say(f"digest {written.digest}")
    say(f"next: 'winready node join-command --bundle {written.path}' for a new machine, 'upgrade-command' for a worker")
    if parameters.endpoint.host.startswith("127.") or parameters.endpoint.host in ("localhost", "::1"):
        say(f"note: {parameters.endpoint} is this very computer; other machines need --endpoint HOST:PORT", err=True)
