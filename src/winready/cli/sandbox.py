"""``winready sandbox``: start, stop, inspect and break the simulated cluster."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from winready.cli.options import output_option
from winready.cli.prove import prove
from winready.cli.tables import WIDE, listed, print_table
from winready_sandbox.machine.builds import DEFAULT_CONTAINERD
from winready_sandbox.plan import Plan, PlanError
from winready_sandbox.state import DEFAULT_NAME, Place, StateError, all_places, ask, running_places, stop
from winready_sandbox.versions import DEFAULT_MINOR

if TYPE_CHECKING:
    from winready.proof.expected.model import Expectation
    from winready_sandbox.faults.model import Fault

Command = TypeVar("Command", bound=Callable[..., Any])


def name_option(command: Command) -> Command:
    """``--name``, the same for every command."""
    return click.option("--name", default=DEFAULT_NAME, show_default=True, help="Which sandbox; several can run.")(
        command
    )


document_option = output_option("text", "json")
table_option = output_option("text", "wide", "json")


@click.group()
def sandbox() -> None:
    """A simulated hybrid cluster on loopback that needs nothing installed.

    \b
    winready sandbox up --detach
    export KUBECONFIG=...          (up prints the line)
    kubectl get nodes
    winready sandbox down
    """


@sandbox.command()
@name_option
@click.option("--linux", type=int, default=2, show_default=True, metavar="N", help="Number of Linux nodes.")
@click.option("--windows", type=int, default=2, show_default=True, metavar="N", help="Number of Windows nodes.")
@click.option(
    "--windows-build", default="20348", show_default=True, metavar="B", help="Build or release: 20348, 2019, 2025 ..."
)
@click.option("--kubernetes", default="", metavar="V", help=f"Version to report.  [default: 1.{DEFAULT_MINOR}]")
@click.option("--port", type=int, default=0, metavar="P", help="Port of the API on 127.0.0.1.  [default: a free one]")
@click.option("--speed", default="1", show_default=True, metavar="X", help="Cluster seconds per second, or 'max'.")
@click.option("--dual-stack", is_flag=True, help="Give nodes, pods and services IPv6 addresses as well.")
@click.option(
    "--containerd", default=DEFAULT_CONTAINERD, show_default=True, metavar="V", help="The nodes' container runtime."
)
@click.option("--hyper-v", is_flag=True, help="Windows nodes can isolate pods by Hyper-V; a RuntimeClass offers it.")
@click.option(
    "--shutdown-grace",
    type=float,
    default=0.0,
    metavar="S",
    help="Seconds that pods get when their node shuts down  [default: none, as kubelets do].",
)
@click.option(
    "--shutdown-grace-critical", type=float, default=0.0, metavar="S", help="The part of them for critical pods."
)
@click.option(
    "--cluster-domain", default="cluster.local", show_default=True, metavar="D", help="Domain of the cluster's names."
)
@click.option(
    "--node-local-dns", is_flag=True, help="Give Linux nodes a DNS cache of their own, as NodeLocal DNSCache."
)
@click.option("--active-directory", is_flag=True, help="Let pods log on to a simulated domain, by gMSA.")
@click.option("--fault", "faults", multiple=True, metavar="NAME[@NODE]", help="Start with this fault.")
@click.option(
    "--control-plane",
    default="",
    envvar="KUBEBUILDER_ASSETS",
    metavar="DIR",
    help="Run the real etcd, kube-apiserver, kube-controller-manager and kube-scheduler of this folder"
    "  [default: KUBEBUILDER_ASSETS, else the embedded control plane].",
)
@click.option(
    "--host-node",
    is_flag=True,
    help="Add one Linux node that runs images as real, confined processes (needs Linux and bubblewrap).",
)
@click.option(
    "--host-image",
    "host_images",
    multiple=True,
    metavar="NAME=FOLDER",
    help="An image of the host node: a root file system or an OCI image layout.",
)
@click.option("--detach", is_flag=True, help="Return as soon as the sandbox is ready, and leave it running.")
@document_option
def up(
    name: str,
    linux: int,
    windows: int,
    windows_build: str,
    kubernetes: str,
    port: int,
    speed: str,
    dual_stack: bool,
    containerd: str,
    hyper_v: bool,
    shutdown_grace: float,
    shutdown_grace_critical: float,
    cluster_domain: str,
    node_local_dns: bool,
    active_directory: bool,
    faults: tuple[str, ...],
    control_plane: str,
    host_node: bool,
    host_images: tuple[str, ...],
    detach: bool,
    output: str,
) -> None:
    """Start a sandbox.

    Without --detach it runs until Ctrl-C. Several can run side by side, each with a --name of its own.

    \b
    winready sandbox up --detach --windows 3 --windows-build 2025
    winready sandbox up --name old --kubernetes 1.29 --speed max
    winready sandbox up --control-plane ~/kubernetes/bin
    winready sandbox up --host-node --host-image winready:1.0=build/image
    """
    from winready_sandbox import daemon
    from winready_sandbox.clock import parse_speed

    try:
        folder = str(Path(control_plane).resolve()) if control_plane else ""
        factor = parse_speed(speed)
        plan = Plan(
            name=name,
            linux=linux,
            windows=windows,
            windows_build=windows_build,
            kubernetes=kubernetes,
            port=port,
            speed=factor,
            dual_stack=dual_stack,
            faults=faults,
            control_plane=folder,
            containerd=containerd,
            hyper_v=hyper_v,
            shutdown_grace=shutdown_grace,
            shutdown_grace_critical=shutdown_grace_critical,
            cluster_domain=cluster_domain,
            node_local_dns=node_local_dns,
            active_directory=active_directory,
            host_node=host_node,
            host_images=tuple(_resolved(text) for text in host_images),
        )
        if detach:
            _show(daemon.start(plan), output)
            return
        daemon.run(plan, lambda document: _show(document, output, foreground=True))
    except (PlanError, StateError, ValueError) as error:
        _fail(str(error))


def _resolved(image: str) -> str:
    """The folder of ``NAME=FOLDER`` as a detached process finds it."""
    name, equals, folder = image.partition("=")
    return f"{name}={Path(folder).resolve()}" if equals and folder else image


@sandbox.command()
@name_option
@click.option("--all", "everything", is_flag=True, help="Stop every sandbox of this user.")
@document_option
def down(name: str, everything: bool, output: str) -> None:
    """Stop a sandbox; nothing of it is left: no process, no port, no file."""
    try:
        places = all_places() if everything else [Place.of(name)]
        stopped = [place.name for place in places if stop(place)]
    except StateError as error:
        _fail(str(error))
    if output == "json":
        click.echo(json.dumps({"stopped": stopped}))
    elif stopped:
        click.echo(f"Stopped: {', '.join(stopped)}")
    else:
        click.echo("No sandbox is running." if everything else f"No sandbox named {name!r} is running.")


@sandbox.command()
@name_option
@table_option
def status(name: str, output: str) -> None:
    """Show a running sandbox: its address, kubeconfig and nodes. Exit code 1 if there is none."""
    try:
        place = Place.of(name)
        if place.running():
            _show(ask(place, "status"), output)
            return
        failure = place.failure.read_text() if place.failure.exists() else ""
        others = [other.name for other in running_places()]
    except StateError as error:
        _fail(str(error))
    if output == "json":
        click.echo(json.dumps({"name": name, "running": False, "failure": failure or None, "others": others}))
    else:
        if failure:
            click.echo(f"The sandbox {name!r} ended by itself: {failure}")
        click.echo(f"No sandbox named {name!r} is running. Start one: winready sandbox up --detach")
        if others:
            click.echo(f"Running under other names: {', '.join(others)}")
    sys.exit(1)


@sandbox.command("faults")
@table_option
def list_faults(output: str) -> None:
    """List the faults that a sandbox can be given, and the requirements that must notice each."""
    from winready.proof.expected.table import expected
    from winready_sandbox.faults.table import FAULTS

    documents = [_listed(fault, expected(fault.name)) for fault in FAULTS.values()]
    if output == "json":
        click.echo(json.dumps({"faults": documents}, indent=2))
        return
    if output == WIDE:
        heads = ("FAULT", "PART", "WHERE", "BLOCKS", "DESCRIPTION", "NOTICED BY")
        print_table(heads, *(_wide(fault) for fault in documents))
    for fault in documents if output == "text" else ():
        click.echo(f"{fault['name']}\n    {fault['description']}")
        noticed = ", ".join(fault["requirements"]) or "nobody: whatever is verified must survive it"
        click.echo(f"    must be noticed by: {noticed}")


def _listed(fault: Fault, expectation: Expectation) -> dict[str, Any]:
    return {
        "name": fault.name,
        "description": fault.description,
        "requirements": expectation.requirements,
        "blocks": expectation.blocked,
        "parts": [fault.part],
        "where": fault.where,
    }


def _wide(fault: dict[str, Any]) -> tuple[str, ...]:
    parts, blocks, noticed = (listed(fault[name]) for name in ("parts", "blocks", "requirements"))
    return fault["name"], parts, fault["where"], blocks, fault["description"], noticed


@sandbox.command("break")
@click.argument("fault")
@name_option
@click.option("--node", metavar="N", help="Break this node  [default: the first that can have the fault].")
@document_option
def break_sandbox(fault: str, name: str, node: str | None, output: str) -> None:
    """Give a running sandbox a fault.

    \b
    winready sandbox break service-proxy.windows.not-programmed --node windows-2
    winready sandbox heal
    """
    _steer(name, output, "Broken", "break", name=fault, node=node)


@sandbox.command()
@click.argument("fault", required=False)
@name_option
@click.option("--node", metavar="N", help="Heal this node only.")
@document_option
def heal(fault: str | None, name: str, node: str | None, output: str) -> None:
    """Take a fault away again, or all of them."""
    _steer(name, output, "Healed", "heal", name=fault, node=node)


def _steer(sandbox_name: str, output: str, word: str, command: str, **arguments: Any) -> None:
    try:
        place = Place.of(sandbox_name)
        if not place.running():
            _fail(f"no sandbox named {sandbox_name!r} is running; start one: winready sandbox up --detach")
        changed = ask(place, command, **arguments)
    except StateError as error:
        _fail(str(error))
    if output == "json":
        click.echo(json.dumps({"changed": changed}))
        return
    for item in changed:
        click.echo(f"{word}: {item['fault']}" + (f" on {item['node']}" if item["node"] else ""))
    if not changed:
        click.echo("Nothing was broken.")


def _show(document: dict[str, Any], output: str, foreground: bool = False) -> None:
    if output == "json":
        click.echo(json.dumps({**document, "running": True}, indent=2))
        return
    click.echo(f"Sandbox {document['name']!r}: Kubernetes {document['kubernetes']} at {document['server']}")
    if output == WIDE:
        _show_wide(document)
    for node in document["nodes"] if output != WIDE else ():
        ready = "Ready" if node["ready"] else "NotReady"
        click.echo(f"  {node['name']:<11}  {node['os']:<7}  {node['build']:<18}  {ready}")
    click.echo("\nTo use it:\n")
    click.echo(f"  export KUBECONFIG={shlex.quote(document['kubeconfig'])}")
    click.echo("  kubectl get nodes -o wide\n")
    if foreground:
        click.echo("Ctrl-C stops it.")
    else:
        option = "" if document["name"] == DEFAULT_NAME else f" --name {document['name']}"
        click.echo(f"To stop it: winready sandbox down{option}")


def _show_wide(document: dict[str, Any]) -> None:
    plane, speed, pid = (document[name] for name in ("control_plane", "speed", "pid"))
    click.echo(f"{plane} control plane, {speed:g} times as fast as the clock, process {pid}")
    faults = document["faults"]
    heads = ("NODE", "OS", "BUILD", "KUBELET", "READY", "FAULTS")
    rows = []
    for node in document["nodes"]:
        own = listed(each["fault"] for each in faults if each["node"] == node["name"])
        ready = "Ready" if node["ready"] else "NotReady"
        rows.append((node["name"], node["os"], node["build"], node["version"], ready, own))
    print_table(heads, *rows)
    if everywhere := listed(each["fault"] for each in faults if not each["node"]):
        click.echo(f"broken everywhere: {everywhere}")


def _fail(message: str) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    sys.exit(2)


sandbox.add_command(prove)
