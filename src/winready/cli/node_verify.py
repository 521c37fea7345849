"""``winready node verify``: wait for one Windows node and judge it."""

from __future__ import annotations

import sys
from typing import Any, Literal

import click

from winready.cli.node_commands import connected
from winready.cli.options import cluster_options, fail, parse_duration, say, table_option


@click.command()
@cluster_options
@click.argument("name")
@click.option("--timeout", default="15m", show_default=True, metavar="T", help="How long to wait until it is Ready.")
@click.option("--run-timeout", metavar="T", help="Give up what is not judged after this time, such as 45m.")
@click.option(
    "--profile",
    type=click.Choice(["core", "full"]),
    default="core",
    show_default=True,
    help="core: the requirements that decide; full: extensions, too.",
)
@click.option("--requirement", "requirements", multiple=True, metavar="ID", help="Only this requirement.")
@click.option("--skip", multiple=True, metavar="ID", help="Leave this requirement out.")
@click.option("--report-dir", metavar="DIR", help="Where run folders go (default: $ARTIFACTS, else ./winready-runs).")
@click.option(
    "--time-scale",
    type=click.FloatRange(min=0.01, max=100),
    default=1.0,
    metavar="X",
    help="Divide every wait by this; for sandboxes.",
)
@click.option("--tolerate", "tolerations", multiple=True, metavar="K[=V][:EFFECT]", help="Tolerate this taint.")
@click.option("--image-registry", default="", metavar="R", help="Take images from this registry.")
@click.option("--air-gapped", is_flag=True, help="The cluster has no way to the internet, on purpose.")
@table_option
def verify(kubeconfig: str | None, context: str | None, name: str, timeout: str, run_timeout: str | None,
           output: Literal["text", "wide", "json", "yaml"], **given: Any) -> None:  # fmt: skip
    """Wait until a Windows node is Ready, then judge exactly that node: Pass or Fail, with the report of a run.

    Left out are requirements that need a second Windows node or disturb nodes: 'winready run' judges those. Exit codes
    are those of 'run'. A node that is not Ready in time has failed: the report says what its conditions were.

    \b
    winready node verify windows-3
    winready node verify windows-3 --timeout 30m --profile full -o json
    """
    from winready.cli.run import carry_out
    from winready.cli.venue import outside
    from winready.cluster.errors import ConfigError
    from winready.cluster.kubeconfig import find_target
    from winready.engine.selection import Selection, SelectionError
    from winready.node import verifying
    from winready.spec.loader import load_standard

    patience = parse_duration(timeout, "--timeout") or 0
    limit = parse_duration(run_timeout, "--run-timeout")
    settings = _settings(given)
    standard = load_standard()
    wanted = Selection(
        profile=given["profile"], requirements=list(given["requirements"]), skip=list(given["skip"])
    )  # fmt: skip
    try:
        requirements = verifying.concerning_one_node(standard, wanted)
    except SelectionError as error:
        fail(str(error))
    if not requirements:
        fail("none of these requirements can be judged on one node", "'winready run' judges them")
    tell = say if output == "text" else lambda line: say(line, err=True)
    try:
        target = find_target(kubeconfig, context)
        raw = connected(
            kubeconfig,
            context,
            lambda client: verifying.wait_until_ready(client, name, timeout=patience, say=tell),
        )
        options = verifying.verify_options(raw, settings, requirements, limit)
    except verifying.NotReady as error:
        why = verifying.unmet(name, error, timeout)
        options = verifying.failed_options(name, settings, requirements, why)
    except ConfigError as error:
        fail(error.message, error.remedy)
    with outside(target) as venue:
        code = carry_out(venue, options, standard, given["report_dir"], output)
    sys.exit(code)


def _settings(given: dict[str, Any]) -> Any:
    from winready.cluster.settings import Settings, parse_toleration
    from winready.cluster.timing import Timing
    from winready.report.folders import new_run_id

    try:
        tolerations = tuple(parse_toleration(text) for text in given["tolerations"])
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--tolerate") from None
    return Settings(
        run_id=new_run_id(),
        timing=Timing(given["time_scale"]),
        image_registry=given["image_registry"],
        tolerations=tolerations,
        air_gapped=given["air_gapped"],
    )
