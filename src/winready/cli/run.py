"""``winready run``: verify a cluster and give the verdict."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.engines import chosen_engine, engine_options, read_cases, specification, upstream_options
from winready.cli.options import (
    cluster_options,
    colour_wanted,
    fail,
    parse_duration,
    parse_node_selector,
    parse_nodes,
    print_document,
    selection_options,
)

if TYPE_CHECKING:
    from winready.cluster.kubeconfig import Target
    from winready.engine.rules import RuleOptions
    from winready.engine.run import Options
    from winready.report.record import Record
    from winready.spec.model import Specification


@click.command()
@cluster_options
@click.option("--sandbox", is_flag=True, help="Verify a simulated cluster of its own, started and stopped by the run.")
@click.option("--speed", default="25", show_default=True, metavar="X", help="Speed of that sandbox, or 'max'.")
@click.option("--fault", "faults", multiple=True, metavar="NAME[@NODE]", help="Break that sandbox this way first.")
@selection_options
@engine_options
@click.option("--report-dir", metavar="DIR", help="Where run folders go (default: $ARTIFACTS, else ./winready-runs).")
@click.option("--parallel", type=click.IntRange(1, 64), default=16, show_default=True, help="Checks at the same time.")
@click.option("--timeout", metavar="T", help="Give up what is not finished after this time, such as 45m.")
@click.option(
    "--time-scale",
    type=click.FloatRange(min=0.01, max=100),
    metavar="X",
    help="Divide every wait by this (default: 1, on a sandbox its speed).",
)
@click.option("--tolerate", "tolerations", multiple=True, metavar="K[=V][:EFFECT]", help="Tolerate this taint.")
@click.option("--image-registry", default="", metavar="R", help="Take images from this registry.")
@click.option("--air-gapped", is_flag=True, help="The cluster has no way to the internet, on purpose.")
@click.option("--allow-downtime", is_flag=True, help="Reboots may take away the last replica of others' workloads.")
@click.option("--allow-small-cluster", is_flag=True, help="Judge a cluster with fewer than 2 + 2 nodes all the same.")
@click.option(
    "--windows-builds",
    type=click.Choice(["draft", "published", "current"]),
    default="published",
    show_default=True,
    help="Which text says what Windows is allowed: 1809-2022, 2019 and 2022, or 2022 and 2025.",
)
@click.option("--linux-conformance", metavar="FILE", help="Result of Linux conformance: JUnit XML or Sonobuoy archive.")
@click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
@click.option("--resume", metavar="RUN", help="Take over what an earlier run of this cluster finished; do the rest.")
@click.option("--rerun-failed", metavar="RUN", help="Verify again only what did not pass in that run.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="Form of the result.",
)
def run(**given: Any) -> None:  # fmt: skip
    """Verify a cluster against the standard and say Pass or Fail.

    Exit code: 0 Pass, 1 something failed, 2 wrong usage, 3 something could not be judged, 130 interrupted.

    \b
    winready run                                     the 24 core requirements on the current context
    winready run --sandbox                           the same on a simulated cluster, in seconds
    winready run --category core.network -o json     one category, for machines
    winready run --rerun-failed 261115-101500-ab12   only what did not pass
    winready run --engine both --e2e-binary ./e2e.test   checks and upstream tests must agree
    """
    from winready.cluster.errors import ConfigError
    from winready.engine.journal import Unreadable
    from winready.engine.selection import SelectionError
    from winready.report.folders import RunNotFound

    try:
        with ExitStack() as stack:
            target, options, standard = _prepare(given, stack)
            if given["dry_run"]:
                from winready.cli.plan import show_plan

                sys.exit(show_plan(target, options, standard, given["output"]))
            code = _run(target, options, standard, given)
    except ConfigError as error:
        fail(error.message, error.remedy)
    except (SelectionError, RunNotFound, Unreadable) as error:
        fail(str(error))
    sys.exit(code)


def _prepare(given: dict[str, Any], stack: ExitStack) -> tuple[Target, Options, Specification]:
    from winready.cluster.kubeconfig import find_target
    from winready.engine.run import Options
    from winready.report import folders

    run_id = folders.new_run_id()
    scale = given["time_scale"]
    engine = chosen_engine(given)
    cases = read_cases(given)
    if given["sandbox"]:
        from winready.cli.own_sandbox import own_sandbox

        if given["kubeconfig"] or given["context"]:
            raise click.UsageError("--sandbox verifies a cluster of its own; leave --kubeconfig and --context out")
        kubeconfig, speed = stack.enter_context(own_sandbox(f"run-{run_id}", given["speed"], given["faults"]))
        target = find_target(str(kubeconfig))
        scale = scale or speed
    elif given["faults"]:
        raise click.UsageError("--fault breaks a sandbox; it goes with --sandbox")
    else:
        target = find_target(given["kubeconfig"], given["context"])
    options = make_options(given, run_id, scale or 1.0)
    carried = _carried(given)
    record = {"sandbox": given["sandbox"], "faults": list(given["faults"])}
    output = folders.report_folder(given["report_dir"]) / run_id / "upstream"
    upstream = upstream_options(given, engine, target, output, cases)
    more = {"record": record, "engine": engine, "upstream": upstream}
    return target, Options(**{**vars(options), **carried, **more}), specification(cases)


def make_options(given: dict[str, Any], run_id: str, scale: float) -> Options:
    """The engine's options from the command line's."""
    from winready.cluster.settings import Settings, parse_toleration
    from winready.cluster.timing import Timing
    from winready.engine.run import Options
    from winready.engine.selection import Selection

    try:
        tolerations = tuple(parse_toleration(text) for text in given.get("tolerations", ()))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--tolerate") from None
    return Options(
        settings=Settings(
            run_id=run_id,
            timing=Timing(scale),
            image_registry=given.get("image_registry", ""),
            tolerations=tolerations,
            air_gapped=given.get("air_gapped", False),
            allow_downtime=given.get("allow_downtime", False),
        ),
        selection=Selection(
            profile="full" if given.get("test_directory") else given["profile"],
            categories=list(given["categories"]),
            requirements=list(given["requirements"]),
            skip=list(given["skip"]),
        ),
        nodes=parse_nodes(given["nodes"]),
        node_selector=parse_node_selector(given["node_selectors"]),
        allow_disruptive=given["allow_disruptive"],
        rules=_rule_options(given),
        parallel=given.get("parallel", 16),
        timeout=parse_duration(given.get("timeout"), "--timeout"),
    )


def _rule_options(given: dict[str, Any]) -> RuleOptions:
    from winready.engine.rules import RuleOptions
    from winready.engine.rules.conformance import ConformanceError, read_conformance

    conformance = None
    if file := given.get("linux_conformance"):
        try:
            conformance = read_conformance(Path(file))
        except ConformanceError as error:
            raise click.BadParameter(f"{file} {error}", param_hint="--linux-conformance") from None
    return RuleOptions(
        allow_small_cluster=given.get("allow_small_cluster", False),
        windows_builds=given.get("windows_builds", "published"),
        conformance=conformance,
    )


def _carried(given: dict[str, Any]) -> dict[str, Any]:
    """What ``--resume`` and ``--rerun-failed`` take from an earlier run."""
    if not given["resume"] and not given["rerun_failed"]:
        return {}
    if given["resume"] and given["rerun_failed"]:
        raise click.UsageError("--resume and --rerun-failed exclude each other")
    from winready.engine.selection import Selection
    from winready.report import folders, record

    base = folders.report_folder(given["report_dir"])
    earlier = record.read_story(folders.find(base, given["resume"] or given["rerun_failed"]))
    if given["rerun_failed"]:
        again = [item.id for item in earlier.requirements if item.outcome not in ("passed", "not-applicable")]
        if not again:
            fail(f"everything passed in run {earlier.run_id}; there is nothing to verify again")
        return {"selection": Selection(requirements=again)}
    nodes = [node.uid for node in earlier.cluster.nodes] if earlier.cluster else []
    return {"selection": earlier.selection, "carried": tuple(earlier.requirements), "carried_nodes": tuple(nodes)}


def _run(target: Target, options: Options, standard: Specification, given: dict[str, Any]) -> int:
    from winready.report import folders

    base = folders.report_folder(given["report_dir"])
    try:
        folder = folders.create(base, options.settings.run_id)
    except OSError as error:
        fail(f"the report folder {base} cannot be written: {error.strerror}", "choose another with --report-dir")
    record = asyncio.run(_follow(target, options, standard, folder, given["output"]))
    if given["output"] == "text":
        click.echo(f"report: {folder / 'report.html'}, also run.json and junit.xml there")
    else:
        print_document(record, given["output"])
    return record.exit_code


async def _follow(target: Target, options: Options, standard: Specification, folder: Path, output: str) -> Record:
    """Do the run: every event goes to the journal first, then to whoever looks."""
    from winready.cluster.client import Client
    from winready.engine.journal import Journal
    from winready.engine.run import Run
    from winready.report import junit, record, terminal
    from winready.report.html import page

    # With a document asked for, progress may only go where it does not mix with it.
    stream = sys.stdout if output == "text" else sys.stderr
    reporter = terminal.make_reporter(stream, options.settings.timing.scale, colour=colour_wanted())
    result = record.Record()
    async with Client.connect(target) as client:
        the_run = Run(client, standard, options)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, the_run.stop)
        with Journal(folder) as journal, reporter:
            async for event in the_run.stream():
                journal.append(event)
                result.apply(event)
                reporter.handle(event, result)
    result.sort()
    record.write(result, folder)
    junit.write(result, folder)
    page.write(result, folder)
    return result
