"""``winready matrix --verify``: the cluster answers instead of the data."""

from __future__ import annotations

from typing import Any

import click

from winready.cli.choices import RunChoices
from winready.cli.engines import engine_options
from winready.cli.options import (
    apply,
    cluster_options,
    fail,
    node_options,
    parallel_option,
    place_options,
    report_dir_option,
    sandbox_options,
    scale_option,
    timeout_option,
)
from winready.engine import defaults

verify_options = apply(
    click.option("--verify", is_flag=True, help="Show the features on a cluster, and hold it against the data."),
    click.option("--area", "areas", multiple=True, metavar="A", help="With --verify: only features of this area."),
    cluster_options,
    sandbox_options,
    engine_options,
    node_options,
    place_options,
    report_dir_option,
    parallel_option,
    timeout_option,
    scale_option,
    click.option("--dry-run", is_flag=True, help="With --verify: show the plan and change nothing."),
)


def refuse_without_verify(given: dict[str, Any]) -> None:
    """What only a cluster can answer to goes with ``--verify``."""
    from click.core import ParameterSource

    context = click.get_current_context()
    names = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in given:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{names[name]} goes with --verify")


def verify(queries: tuple[str, ...], output: str, given: dict[str, Any]) -> int:
    """Show features on a cluster; the exit code."""
    from winready.cli.run import start
    from winready.engine.selection import SelectionError
    from winready.features.choosing import find
    from winready.features.judging import exit_code

    if output not in ("text", "wide", "json"):
        raise click.UsageError(f"--verify writes text, wide or json; 'winready report' makes {output} of the run")
    if given.pop("test_directory"):
        raise click.UsageError("--test-directory is about requirements; it goes with 'winready run'")
    try:
        features = find(queries, given.pop("areas"))
    except SelectionError as error:
        fail(str(error))
    choices = RunChoices(
        profile=defaults.PROFILE,
        categories=(),
        requirements=(),
        skip=(),
        allow_disruptive=False,
        allow_downtime=False,
        allow_small_cluster=False,
        windows_builds=None,
        linux_conformance=None,
        resume=None,
        rerun_failed=None,
        test_directory=None,
        output=output,  # type: ignore[arg-type]
        features=tuple(features),
        **given,
    )
    return start(choices, weigh=exit_code)
