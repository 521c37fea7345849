"""Options that several commands share, and the way from a user's mistake to exit code 2."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from winready.engine import defaults
from winready.report.printable import printable

Command = TypeVar("Command", bound=Callable[..., Any])


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Text for people; whatever a cluster, a file, a run or a bundle put into it cannot steer their terminal."""
    click.echo(printable(text), err=err, nl=nl)


def fail(message: str, remedy: str = "", code: int = 2) -> NoReturn:
    """Say what is wrong and what to do, and end."""
    say(f"error: {message}", err=True)
    if remedy:
        say(f"       {remedy}", err=True)
    sys.exit(code)


def apply(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Put several options on a command, in the order given."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def output_option(*forms: str) -> Callable[[Command], Command]:
    """``-o``: the form of what a command prints, the same in every command."""
    wide = "; wide: tables, with columns that text leaves out" if "wide" in forms else ""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help=f"Form of the result{wide}.",
    )


document_option = output_option("text", "json", "yaml")
table_option = output_option("text", "wide", "json", "yaml")

cluster_options = apply(
    click.option("--kubeconfig", metavar="FILE", help="Path of the kubeconfig (default: as kubectl finds it)."),
    click.option("--context", metavar="NAME", help="Context in the kubeconfig."),
)

sandbox_options = apply(
    click.option("--sandbox", is_flag=True,
                 help="Verify a simulated cluster of its own, started and stopped by the run."),
    click.option("--speed", metavar="X",
                 help="Run that sandbox on the wall clock, X times as fast, or 'max'; else time is simulated."),
    click.option("--fault", "faults", multiple=True, metavar="NAME[@NODE]", help="Break that sandbox this way first."),
)  # fmt: skip


def _namespace_prefix(context: click.Context, option: click.Parameter, value: str) -> str:
    from winready.cluster.settings import parse_namespace_prefix

    try:
        return parse_namespace_prefix(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


prefix_option = click.option(
    "--namespace-prefix",
    default="",
    metavar="P",
    callback=_namespace_prefix,
    help="Use the namespaces P-* that an administrator prepared with 'winready rbac', and make none.",
)
judged_options = apply(
    click.option("--nodes", metavar="N|all",
                 help=f"How many Windows nodes to judge, spread over the cluster.  [default: {defaults.NODES}]"),
    click.option("--node-selector", "node_selectors", multiple=True, metavar="K=V",
                 help="Judge only Windows nodes with this label."),
)  # fmt: skip
node_options = apply(
    judged_options,
    click.option("--active-directory", type=click.Path(path_type=Path), metavar="FILE",
                 help="The domain that pods can log on to by gMSA, as YAML; no secret is in it."),
    prefix_option,
)  # fmt: skip

requirement_options = apply(
    click.option("--profile", type=click.Choice(["core", "full"]), default=defaults.PROFILE, show_default=True,
                 help="core: the 24 requirements that decide; full: all 46."),
    click.option("--category", "categories", multiple=True, metavar="C", help="Only this category, any letter case."),
    click.option("--requirement", "requirements", multiple=True, metavar="ID", help="Only this requirement."),
    click.option("--skip", multiple=True, metavar="ID", help="Leave this requirement out."),
    click.option("--allow-disruptive", is_flag=True, help="Also verify what disturbs nodes (reboots), last."),
)  # fmt: skip
selection_options = apply(requirement_options, node_options)

place_options = apply(
    click.option("--tolerate", "tolerations", multiple=True, metavar="K[=V][:EFFECT]", help="Tolerate this taint."),
    click.option("--image-registry", default="", metavar="R", help="Take images from this registry."),
    click.option("--air-gapped", is_flag=True, help="The cluster has no way to the internet, on purpose."),
)

waiver_options = apply(
    place_options,
    click.option("--allow-downtime", is_flag=True,
                 help="Reboots may take away the last replica of others' workloads."),
    click.option("--allow-small-cluster", is_flag=True,
                 help="Judge a cluster with fewer than 2 + 2 nodes all the same."),
    click.option("--windows-builds", type=click.Choice(["draft", "published", "current"]),
                 help="Which text says what Windows is allowed: 1809-2022, 2019 and 2022, or 2022 and 2025  "
                 f"[default: {defaults.WINDOWS_BUILDS}]."),
)  # fmt: skip
condition_options = apply(
    waiver_options,
    click.option("--linux-conformance", metavar="FILE",
                 help="Result of Linux conformance: JUnit XML or Sonobuoy archive."),
)  # fmt: skip
parallel_option = click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    default=defaults.PARALLEL,
    show_default=True,
    help="Checks at the same time.",
)
report_dir_option = click.option(
    "--report-dir",
    metavar="DIR",
    help="Where runs go: a folder, or s3://BUCKET/PREFIX, gs://, az://, file:// "
    "(default: $ARTIFACTS, else ./winready-runs).",
)
timeout_option = click.option(
    "--timeout", metavar="T", help="Give up what is not finished after this time, such as 45m."
)
scale_option = click.option(
    "--time-scale",
    type=click.FloatRange(min=0.01, max=100),
    metavar="X",
    help="Divide every wait by this (default: 1, on a sandbox its speed).",
)


def parse_nodes(text: str | None) -> int | None:
    """``--nodes``: a number from 1, or ``all``."""
    if text is None:
        return defaults.NODES
    if text == "all":
        return None
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise click.BadParameter(f"{text[:80]!r} is neither a number from 1 nor 'all'", param_hint="--nodes")
    return int(text)


def parse_node_selector(texts: tuple[str, ...]) -> dict[str, str]:
    """``--node-selector K=V``."""
    selector = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--node-selector")
        selector[key] = value
    return selector


def parse_duration(text: str | None, option: str) -> float | None:
    """``90``, ``90s``, ``15m`` or ``2h`` in seconds."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(s|m|h)?", text.strip())
    if match is None or float(match[1]) <= 0:
        raise click.BadParameter(f"{text[:80]!r} is not a duration; write 90s, 15m or 2h", param_hint=option)
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2] or "s"]


def loudness() -> int:
    """How much is said: -1 with ``-q``, 1 with ``-v``, 0 by commands that have neither."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    return bool(given.get("verbose")) - bool(given.get("quiet"))


def colour_wanted() -> bool:
    """Colour unless the environment says otherwise."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def document_text(document: Any, output: str) -> str:
    """One document as JSON or YAML."""
    import msgspec

    if output == "json":
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
    import yaml

    return str(yaml.safe_dump(msgspec.to_builtins(document), sort_keys=False, allow_unicode=True))


def print_document(document: Any, output: str) -> None:
    """One document on standard output, as JSON or YAML."""
    click.echo(document_text(document, output), nl=False)
