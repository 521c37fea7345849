"""What the ways to deploy share: the command line of a run, and manifests that are printed or applied."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from winready.cli.options import (
    apply,
    cluster_options,
    parse_node_selector,
    parse_nodes,
    print_document,
    say,
)
from winready.engine import defaults

if TYPE_CHECKING:
    from winready.cluster.applying import Difference
    from winready.cluster.client import Client
    from winready.deploy.applying import Wanted

T = TypeVar("T")
act_options = apply(
    cluster_options,
    click.option("--apply", "applied", is_flag=True, help="Put the objects on the cluster instead of printing them."),
    click.option("--dry-run", is_flag=True, help="With --apply: show what would change, and change nothing."),
    click.option("--force", is_flag=True, help="With --apply: take over fields that somebody else has changed."),
    click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True,
                 help="Form of what is printed."),
)  # fmt: skip


def checked(option: str, check: Callable[..., T], *values: Any) -> T:
    """What an option was given, or a mistake that names the option."""
    try:
        return check(*values)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def tolerations(texts: tuple[str, ...], option: str) -> tuple[dict[str, Any], ...]:
    """Taints that are tolerated, as a pod has them."""
    from winready.cluster.settings import parse_toleration

    return tuple(checked(option, parse_toleration, text) for text in texts)


def run_arguments(given: dict[str, Any]) -> list[str]:
    """The run's own command line for these choices, once they are known to make sense."""
    parse_nodes(given["nodes"])
    parse_node_selector(given["node_selectors"])
    tolerations(given["tolerations"], "--tolerate")
    words = ["--timeout", given["timeout"]]
    if given["profile"] != defaults.PROFILE:
        words += ["--profile", given["profile"]]
    for option, values in (
        ("--category", given["categories"]),
        ("--requirement", given["requirements"]),
        ("--skip", given["skip"]),
        ("--node-selector", given["node_selectors"]),
        ("--tolerate", given["tolerations"]),
    ):
        words += [word for value in values for word in (option, value)]
    for option, value in (
        ("--nodes", given["nodes"]),
        ("--namespace-prefix", given.get("namespace_prefix")),
        ("--image-registry", given["image_registry"]),
        ("--windows-builds", given["windows_builds"]),
        ("--time-scale", None if given["time_scale"] is None else f"{given['time_scale']:g}"),
        ("--parallel", str(given["parallel"]) if given["parallel"] != defaults.PARALLEL else None),
    ):
        words += [option, value] if value else []
    flags = ("allow_disruptive", "air_gapped", "allow_downtime", "allow_small_cluster")
    return words + [f"--{flag.replace('_', '-')}" for flag in flags if given[flag]]


def deliver(given: dict[str, Any], make: Callable[[], Wanted]) -> list[Difference]:
    """Print what was asked for, or put it on the cluster; what changed there."""
    from winready.cluster.applying import manifest

    if not given["applied"]:
        for flag, name in (("--dry-run", "dry_run"), ("--force", "force"), ("--kubeconfig", "kubeconfig"),
                           ("--context", "context")):  # fmt: skip
            if given[name]:
                raise click.UsageError(f"{flag} goes with --apply")
    wanted = make()
    if given["applied"]:
        return _put(given, wanted)
    if given["output"] == "json":
        print_document({"apiVersion": "v1", "kind": "List", "items": wanted.objects}, "json")
    else:
        click.echo(manifest(wanted.objects), nl=False)
    sys.exit(0)


def _put(given: dict[str, Any], wanted: Wanted) -> list[Difference]:
    from winready.cli.node_commands import connected
    from winready.deploy.applying import differences, put

    async def act(client: Client) -> list[Difference]:
        if given["dry_run"]:
            return await differences(client, wanted, force=given["force"])
        return await put(client, wanted, force=given["force"])

    rights = "this takes an administrator: nobody may grant rights that he does not have"
    found = connected(given["kubeconfig"], given["context"], act, rights)
    if given["output"] == "json":
        changes = [{"object": item.title, "change": item.change, "lines": list(item.lines)} for item in found]
        print_document({"changes": changes}, "json")
        sys.exit(0)
    for item in found:
        say(f"{item.change}: {item.title}")
        for text in item.lines if given["dry_run"] or item.change == "kept" else ():
            say(f"  {text}")
    if given["dry_run"]:
        sys.exit(0)
    return found
