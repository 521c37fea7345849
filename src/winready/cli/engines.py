"""The options about verifiers that ``run`` and ``plan`` share: our own checks, upstream's tests, or both."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.choices import PlanChoices
from winready.cli.options import apply, fail, say
from winready.engine import defaults

if TYPE_CHECKING:
    from winready.cluster.kubeconfig import Target
    from winready.engine.with_upstream.prepare import UpstreamOptions
    from winready.spec.model import Specification
    from winready.upstream.foreign import Folder

engine_options = apply(
    click.option("--engine", type=click.Choice(["native", "upstream", "both"]),
                 help="Who verifies: winready's own checks, Kubernetes' e2e.test, or both  "
                 f"[default: {defaults.ENGINE}]."),
    click.option("--e2e-binary", type=click.Path(path_type=Path), metavar="F",
                 help="The e2e.test to use (default: the one that 'winready upstream fetch' got)."),
    click.option("--provider", default=defaults.PROVIDER, show_default=True, metavar="P",
                 help="The provider that e2e.test is told."),
    click.option("--steer-by-taint", is_flag=True,
                 help="Taint the Linux nodes for the time of upstream tests, instead of steering single pods."),
    click.option("--shards", type=click.IntRange(1, 32),
                 help="The most processes of e2e.test at a time (default: four per Windows node, at most 8)."),
    click.option("-v", "--verbose", is_flag=True,
                 help="Show what each requirement was judged by, and what e2e.test says as it says it."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but the verdict."),
    click.option("--test-directory", type=click.Path(path_type=Path), metavar="DIR",
                 help="Verify the test cases of op-readiness' spec.yaml files below this folder instead."),
)  # fmt: skip


def chosen_engine(choices: PlanChoices) -> defaults.Engine:
    """The engine that is asked for; test cases of op-readiness have no other verifier than e2e.test."""
    engine = choices.engine or ("upstream" if choices.test_directory else defaults.ENGINE)
    if choices.test_directory and engine != "upstream":
        raise click.UsageError("--test-directory goes with --engine upstream: its cases are tests of e2e.test")
    if engine != "native" and choices.namespace_prefix:
        raise click.UsageError("--namespace-prefix goes with --engine native: e2e.test makes namespaces of its own")
    if engine == "native" and choices.e2e_binary:
        raise click.UsageError("--e2e-binary goes with --engine upstream or both")
    return engine


def read_cases(choices: PlanChoices) -> Folder | None:
    """The folder of ``--test-directory``; its mistakes end the command."""
    if not choices.test_directory:
        return None
    from winready.spec.loader import SpecificationError
    from winready.upstream.foreign import read_folder

    try:
        return read_folder(choices.test_directory, choices.provider)
    except SpecificationError as error:
        for mistake in error.mistakes:
            say(str(mistake), err=True)
        fail(f"{len(error.mistakes)} mistakes below {choices.test_directory}")


def specification(folder: Folder | None) -> Specification:
    """What the run is about: the standard, unless a folder was given."""
    from winready.spec.loader import load_standard

    return folder.specification if folder is not None else load_standard()


def upstream_options(
    choices: PlanChoices, engine: defaults.Engine, target: Target, folder: Path, cases: Folder | None
) -> UpstreamOptions | None:
    """How e2e.test is to be used; ends the command when there is none that answers."""
    if engine == "native":
        return None
    from winready.engine.with_upstream.prepare import UpstreamOptions
    from winready.upstream.binary import BinaryError, inspect, list_specs
    from winready.upstream.foreign import counted_twice

    path = choices.e2e_binary or _beside(cases) or _cached(target)
    listing, notes = None, []
    try:
        binary = asyncio.run(inspect(path))
        if cases is not None:
            listing = asyncio.run(list_specs(binary))
            notes = [*cases.notes, *counted_twice(cases.cases, listing)]
            for note in notes:
                say(f"note: {note}", err=True)
    except BinaryError as error:
        fail(error.message, error.remedy)
    return UpstreamOptions(
        binary=binary,
        listing=listing,
        folder=folder,
        provider=choices.provider,
        steer_by_taint=choices.steer_by_taint,
        parallel=choices.shards,
        cases=cases.cases if cases is not None else {},
        notes=notes,
        echo=_show if choices.verbose else None,
    )


def _show(output: bytes) -> None:
    say(output.decode("utf-8", errors="replace"), nl=False, err=True)


def _beside(cases: Folder | None) -> Path | None:
    """Where op-readiness looks for e2e.test unless told otherwise."""
    path = Path("e2e.test")
    return path if cases is not None and path.is_file() else None


def _cached(target: Target) -> Path:
    """The fetched e2e.test that fits the cluster."""
    from winready.cluster.client import Client
    from winready.cluster.errors import ClusterError
    from winready.spec.versions import Version
    from winready.upstream.fetch import cached

    async def ask() -> str:
        async with Client.connect(target) as client:
            return (await client.version()).get("gitVersion") or ""

    try:
        version = Version.parse(asyncio.run(ask()))
    except ClusterError as error:
        fail(error.message, error.remedy, code=3)
    except ValueError as error:
        fail(f"the API server does not tell its version: {error}", "name e2e.test with --e2e-binary", code=3)
    path = cached(version)
    if path is None:
        fail(
            f"no e2e.test for Kubernetes {version} is here",
            f"get it with 'winready upstream fetch --kubernetes {version}', or name one with --e2e-binary",
        )
    return path
