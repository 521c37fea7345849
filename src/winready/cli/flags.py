"""The options that ``run``, ``plan`` and ``doctor`` share, and the commands that follow from what was chosen."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from winready.cli.choices import RunChoices
from winready.cli.engines import engine_options
from winready.cli.options import (
    apply,
    cluster_options,
    condition_options,
    parallel_option,
    report_dir_option,
    sandbox_options,
    scale_option,
    selection_options,
    table_option,
    timeout_option,
)
from winready.cli.workloads import workload_options
from winready.engine import defaults

if TYPE_CHECKING:
    pass

run_flags = apply(
    cluster_options,
    sandbox_options,
    selection_options,
    engine_options,
    report_dir_option,
    parallel_option,
    timeout_option,
    scale_option,
    condition_options,
    click.option("--resume", metavar="RUN",
                 help="Take over what an earlier run of this cluster finished; do the rest."),
    click.option("--rerun-failed", metavar="RUN", help="Verify again only what did not pass in that run."),
    workload_options,
    table_option,
)  # fmt: skip


def place_flags(choices: RunChoices) -> str:
    """Which cluster, and where its runs are; what is not recorded, since it says more of a machine than of a run."""
    given = (("--kubeconfig", choices.kubeconfig), ("--context", choices.context), ("--report-dir", choices.report_dir))
    return _written((name, str(value)) for name, value in given if value)


def resume_flags(choices: RunChoices) -> str:
    """What taking up a run again has to be told, as it takes over everything else from its journal."""
    return _written(_resumed(choices))


def _resumed(choices: RunChoices) -> Iterator[tuple[str, str]]:
    switches = ("allow_disruptive", "allow_downtime", "steer_by_taint")
    yield from ((f"--{name.replace('_', '-')}", "") for name in switches if getattr(choices, name))
    plain = ("engine", "e2e_binary", "shards", "test_directory", "active_directory", "namespace_prefix")
    if choices.time_scale:
        yield "--time-scale", f"{choices.time_scale:g}"
    for name in (*plain, "image_registry", "timeout"):
        if value := getattr(choices, name):
            yield f"--{name.replace('_', '-')}", str(value)
    if choices.provider != defaults.PROVIDER:
        yield "--provider", choices.provider
    if choices.parallel != defaults.PARALLEL:
        yield "--parallel", str(choices.parallel)
    yield from (("--tolerate", text) for text in choices.tolerations)
    if choices.try_them:
        yield from (("--for", path) for path in choices.for_paths)
        yield from ((name, "") for name, given in (("--for-live", choices.for_live), ("--try", True)) if given)
        if choices.namespace:
            yield "--namespace", choices.namespace


def _written(flags: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> str:
    """Options as they are typed, with a blank before each."""
    return "".join(f" {name} {shlex.quote(value)}" if value else f" {name}" for name, value in flags)
