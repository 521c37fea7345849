"""``winready matrix audit``: what does a Kubernetes version have that nobody has said anything about for Windows?"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.options import cluster_options, fail, output_option
from winready.cli.tables import WIDE, page_text
from winready.report.printable import printable

if TYPE_CHECKING:
    from winready.features.audit.snapshot import Snapshot
    from winready.upstream.listing import Listing

_EXAMPLES = """
\b
Examples:
  winready matrix audit --from 1.32 --to 1.36          what four releases changed
  winready matrix audit                                the cluster of your kubeconfig
  winready matrix audit --to openapi.json --to metrics.txt --e2e specs.txt
  winready matrix audit --to 1.36 --linux-only         why specs leave Windows out
  winready matrix audit --to 1.36 --all -o json        every field, gate and spec
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--from",
    "before",
    multiple=True,
    metavar="V|FILE",
    help="Version to compare with, or files  [default: the nearest bundled one].",
)
@click.option(
    "--to",
    "after",
    multiple=True,
    metavar="V|FILE",
    help="Version to audit: a bundled one, or files (OpenAPI, metrics, listing).",
)
@cluster_options
@click.option("--sandbox", is_flag=True, help="Audit the API of a sandbox, started and stopped for it.")
@click.option("--e2e", type=click.Path(path_type=Path), metavar="FILE", help="Listing of the audited version's specs.")
@click.option("--e2e-binary", type=click.Path(path_type=Path), metavar="F", help="The audited version's e2e.test.")
@click.option("--linux-only", is_flag=True, help="Tell why specs tagged [LinuxOnly] leave Windows out.")
@click.option("--all", "everything", is_flag=True, help="Also show what has a statement and did not change.")
@output_option("text", "wide", "json", "markdown")
def audit(
    before: tuple[str, ...],
    after: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    sandbox: bool,
    e2e: Path | None,
    e2e_binary: Path | None,
    linux_only: bool,
    everything: bool,
    output: str,
) -> None:  # fmt: skip
    """Say which pod fields, feature gates and specs are new, gone, or without a statement about Windows.

    Fields come from OpenAPI (/openapi/v2, or /openapi/v3/api/v1), gates from /metrics, specs from e2e.test; files are
    as 'kubectl get --raw PATH' saves them, gzipped or not.

    Exit code 0: everything has a statement; 1: something lacks one; 2: wrong usage or input; 3: the cluster cannot be
    asked.
    """
    from winready.features.audit import compare, pages, sources
    from winready.lint.output import matrix as pens

    if after and (kubeconfig or context or sandbox):
        raise click.UsageError("--to names what is audited; leave --kubeconfig, --context and --sandbox out.")
    if e2e and e2e_binary:
        raise click.UsageError("--e2e and --e2e-binary exclude each other.")
    notes: list[str] = []
    try:
        # What is given as a file is read first: a mistake there must not cost a call to the cluster.
        old = sources.read_files(before) if before else None
        listing = _listing(e2e, e2e_binary)
        new = sources.read_files(after) if after else _asked(kubeconfig, context, sandbox, notes)
        if listing is not None:
            new = sources.with_listing(new, listing)
        elif new.specs is None and not after:
            notes.append("[sig-windows] specs were not audited: give --e2e or --e2e-binary")
    except sources.SourceError as error:
        fail(str(error))
    if linux_only and new.linux_only is None:
        fail("no listing of specs is known for that version", "give --e2e FILE or --e2e-binary F")
    result = compare.audit(old or sources.nearest(new.minor), new, notes)
    page = (
        pages.linux_only_page(result, wide=output == WIDE)
        if linux_only
        else pages.audit_page(result, everything=everything, wide=output == WIDE)
    )
    pen = {"text": pens.as_text, WIDE: page_text, "json": pens.as_json, "markdown": pens.as_markdown}[output]
    for part in pen(page):
        # JSON escapes by itself; names of types and specs come from files of strangers.
        click.echo(part if output == "json" else printable(part), nl=False)
    unstated = len(result.linux_only.unexplained) if linux_only and result.linux_only else result.unstated
    sys.exit(1 if unstated else 0)


def _listing(e2e: Path | None, e2e_binary: Path | None) -> Listing | None:
    import asyncio

    from winready.upstream.binary import BinaryError, inspect, list_specs
    from winready.upstream.listing import ListingError, read_listing

    async def listed(program: Path) -> Listing:
        return await list_specs(await inspect(program))

    try:
        if e2e is not None:
            return read_listing(e2e)
        return asyncio.run(listed(e2e_binary)) if e2e_binary is not None else None
    except ListingError as error:
        fail(str(error))
    except BinaryError as error:
        fail(error.message, error.remedy)


def _asked(kubeconfig: str | None, context: str | None, sandbox: bool, notes: list[str]) -> Snapshot:
    import asyncio

    from winready.cluster.errors import ClusterError, ConfigError
    from winready.cluster.kubeconfig import find_target
    from winready.features.audit.sources import ask

    with ExitStack() as stack:
        if sandbox:
            if kubeconfig or context:
                raise click.UsageError("--sandbox is a cluster of its own; leave --kubeconfig and --context out.")
            import os

            from winready.cli.own_sandbox import own_sandbox

            kubeconfig = str(stack.enter_context(own_sandbox(f"audit-{os.getpid()}", "25"))[0])
        try:
            found, said = asyncio.run(ask(find_target(kubeconfig, context)))
        except ConfigError as error:
            fail(error.message, error.remedy)
        except ClusterError as error:
            fail(error.message, error.remedy, code=3)
    notes += said
    return found
