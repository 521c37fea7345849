"""From the choices on the command line to the engine's options; a choice that makes no sense ends the command."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.choices import PlanChoices, RunChoices
from winready.cli.options import fail, parse_duration, parse_node_selector, parse_nodes
from winready.engine import defaults

if TYPE_CHECKING:
    from winready.cluster.directory import ActiveDirectory
    from winready.cluster.settings import Settings
    from winready.engine.events import AnyEvent
    from winready.engine.options import Carried, Options
    from winready.engine.selection import Selection
    from winready.engine.terms import Conformance, Terms
    from winready.engine.with_upstream.prepare import UpstreamOptions
    from winready.engine.workloads import Workload


def plan_options(
    choices: PlanChoices, engine: defaults.Engine, upstream: UpstreamOptions | None, directory: ActiveDirectory | None
) -> Options:
    """The options that decide about a plan."""
    from winready.cluster.settings import Settings
    from winready.engine.options import Options

    return Options(
        settings=Settings(run_id="plan", active_directory=directory, namespace_prefix=choices.namespace_prefix),
        selection=_selection(choices),
        nodes=parse_nodes(choices.nodes),
        node_selector=parse_node_selector(choices.node_selectors),
        allow_disruptive=choices.allow_disruptive,
        engine=engine,
        upstream=upstream,
    )


def run_options(
    choices: RunChoices,
    run_id: str,
    scale: float,
    engine: defaults.Engine,
    upstream: UpstreamOptions | None,
    directory: ActiveDirectory | None,
) -> Options:
    """The options of a run, with what it takes over from an earlier one."""
    conformance = _conformance(choices.linux_conformance)
    earlier = _earlier(choices)
    planned = plan_options(choices, engine, upstream, directory)
    options = dataclasses.replace(
        planned,
        settings=_settings(choices, run_id, scale, earlier, directory),
        selection=earlier.selection if earlier else _selection(choices),
        terms=_terms(choices, conformance, earlier.terms if earlier else None),
        nodes=earlier.nodes if earlier and choices.nodes is None else planned.nodes,
        node_selector=planned.node_selector or (earlier.node_selector if earlier else {}),
        parallel=choices.parallel,
        timeout=parse_duration(choices.timeout, "--timeout"),
        carried=earlier.carried if earlier else None,
        workloads=earlier.workloads if earlier else (),
        record={"sandbox": choices.sandbox, "faults": list(choices.faults)},
    )
    if not options.selection.features:
        return options
    from winready.features.choosing import showing

    return showing(options, options.selection.features)


def wanted(choices: RunChoices) -> Selection:
    """What is to be verified: by the command line, or by the run that is taken up again."""
    earlier = _earlier(choices)
    return earlier.selection if earlier else _selection(choices)


@dataclasses.dataclass(frozen=True)
class Earlier:
    """What an earlier run decides about this one."""

    selection: Selection
    carried: Carried | None = None
    workloads: tuple[Workload, ...] = ()
    terms: Terms | None = None
    air_gapped: bool = False
    nodes: int | None = defaults.NODES
    node_selector: dict[str, str] = dataclasses.field(default_factory=dict)


def _selection(choices: PlanChoices) -> Selection:
    from winready.engine.selection import Selection

    selection = Selection(
        profile="full" if choices.test_directory else choices.profile,
        categories=list(choices.categories),
        requirements=list(choices.requirements),
        skip=list(choices.skip),
    )
    if not choices.features:
        return selection
    from winready.features.choosing import selected

    return selected(selection, choices.features)


def _settings(
    choices: RunChoices, run_id: str, scale: float, earlier: Earlier | None, directory: ActiveDirectory | None
) -> Settings:
    from winready.cluster.settings import Settings, parse_toleration
    from winready.cluster.timing import Timing

    try:
        tolerations = tuple(parse_toleration(text) for text in choices.tolerations)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--tolerate") from None
    return Settings(
        run_id=run_id,
        timing=Timing(scale),
        image_registry=choices.image_registry,
        tolerations=tolerations,
        air_gapped=choices.air_gapped or (earlier is not None and earlier.air_gapped),
        allow_downtime=choices.allow_downtime,
        active_directory=directory,
        namespace_prefix=choices.namespace_prefix,
    )


def to_be_granted(given: dict[str, Any], directory: ActiveDirectory | None) -> tuple[list[str], Settings]:
    """The requirements that a run with these options verifies, and its settings: what its rights depend on.

    Features that it shows by checks of their own are named like requirements.
    """
    from winready.cluster.settings import Settings
    from winready.engine.selection import Selection, SelectionError, select
    from winready.spec.loader import load_standard

    chosen = Selection(
        profile=given["profile"], categories=list(given["categories"]), requirements=list(given["requirements"]),
        skip=list(given["skip"]),
    )  # fmt: skip
    standard = load_standard()
    try:
        if features := _features(given.get("features", ())):
            from winready.features.choosing import selected

            chosen = selected(chosen, features)
        found = select(standard, chosen)
    except SelectionError as error:
        fail(str(error))
    ids = [item.id for item in found if given["allow_disruptive"] or not item.disruptive]
    ids += features
    if directory is not None:
        # Whoever names a domain wants it used.
        ids += [item.id for item in standard.requirements if "gmsa" in item.needs.features]
    settings = Settings(run_id="rights", active_directory=directory, namespace_prefix=given["namespace_prefix"])
    return list(dict.fromkeys(ids)), settings


def _features(words: Sequence[str]) -> list[str]:
    from winready.features.choosing import find

    return find(() if "all" in words else words) if words else []


def chosen_directory(file: Path | None) -> ActiveDirectory | None:
    """What the file for ``--active-directory`` says."""
    if file is None:
        return None
    from winready.cluster.directory import DirectoryError, read_directory

    try:
        return read_directory(file)
    except DirectoryError as error:
        fail(str(error), "'winready spec schema --of active-directory' prints what belongs into the file")


def _terms(choices: RunChoices, conformance: Conformance | None, earlier: Terms | None) -> Terms:
    """What was decided now; what was not is as the run that is resumed had it."""
    from winready.engine.terms import SMALL_CLUSTER, Terms

    before = earlier or Terms()
    waived = [SMALL_CLUSTER] if choices.allow_small_cluster else []
    return Terms(
        windows_builds=choices.windows_builds or before.windows_builds,
        waived=list(dict.fromkeys([*before.waived, *waived])),
        conformance=conformance or before.conformance,
    )


def _conformance(file: str | None) -> Conformance | None:
    if file is None:
        return None
    from winready.engine.rules.conformance import ConformanceError, read_conformance

    try:
        return read_conformance(Path(file))
    except ConformanceError as error:
        raise click.BadParameter(f"{file} {error}", param_hint="--linux-conformance") from None


def _earlier(choices: RunChoices) -> Earlier | None:
    """What ``--resume`` and ``--rerun-failed`` take from an earlier run."""
    named = choices.resume or choices.rerun_failed
    if not named:
        return None
    if choices.resume and choices.rerun_failed:
        raise click.UsageError("--resume and --rerun-failed exclude each other")
    from winready.engine.selection import Selection
    from winready.report import record

    if Path(named).is_file():
        from winready.cli.runs import folder_in_archive

        folder = folder_in_archive(Path(named))
    else:
        folder = _found(named, choices.report_dir)
    if choices.resume:
        return earlier_run(folder)
    earlier = record.from_events(record.read_events(folder))
    again, features = (
        [item.id for item in items if item.outcome not in ("passed", "not-applicable")]
        for items in (earlier.requirements, earlier.features)
    )
    if not again and not features:
        fail(f"everything passed in run {earlier.run_id}; there is nothing to verify again")
    return Earlier(Selection(requirements=again, features=features), **_same_nodes(earlier.settings))


def _found(named: str, report_dir: str | None) -> Path:
    """The folder of an earlier run: where it was written, or else what a place elsewhere has of it."""
    from winready.cli.places import reading_run, writing
    from winready.report import folders

    base, place = writing(report_dir)
    if place is not None:
        with suppress(folders.RunNotFound):
            return folders.find(base, named)
    name, base = reading_run(named, report_dir)
    return folders.find(base, name)


def earlier_run(folder: Path) -> Earlier:
    """What ``--resume`` takes over from the run in a folder."""
    from winready.engine.facts import gather
    from winready.engine.options import Carried
    from winready.report import record

    happened = record.read_events(folder)
    earlier, facts = record.from_events(happened), gather(happened)
    nodes = tuple(node.uid for node in earlier.cluster.nodes) if earlier.cluster else ()
    return Earlier(
        earlier.selection,
        Carried(
            tuple(earlier.requirements),
            nodes,
            frozenset(facts.judged_nodes),
            facts.sights,
            tuple(earlier.features),
            tuple(facts.tried),
            earlier.run_id,
            _disturbing(happened),
        ),
        tuple(facts.workloads),
        facts.terms,
        earlier.settings.get("air_gapped") is True,
        **_same_nodes(earlier.settings),
    )


def _disturbing(happened: Sequence[AnyEvent]) -> bool:
    """Whether a run ended while it disturbed nodes."""
    from winready.engine.events import PlanMade, RequirementFinished, RequirementStarted

    plans = [event.plan.requirements for event in happened if isinstance(event, PlanMade)]
    disruptive = {item.id for plan in plans for item in plan if item.disruptive}
    started = {event.id for event in happened if isinstance(event, RequirementStarted)}
    finished = {event.result.id for event in happened if isinstance(event, RequirementFinished)}
    return bool(disruptive & started - finished)


def _same_nodes(settings: dict[str, Any]) -> dict[str, Any]:
    """The choice of nodes that an earlier run made; runs of earlier versions do not tell theirs."""
    found: dict[str, Any] = {}
    if "nodes" in settings:
        found["nodes"] = parse_nodes(str(settings["nodes"]))
    if isinstance(selector := settings.get("node_selector"), dict):
        found["node_selector"] = {str(key): str(value) for key, value in selector.items()}
    return found
