"""``winready matrix``: what does Windows support in this version?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from winready.cli.main import LazyGroup
from winready.cli.matrix_verify import refuse_without_verify, verify, verify_options
from winready.cli.options import fail, output_option, say
from winready.cli.tables import WIDE, page_text

if TYPE_CHECKING:
    from winready.lint.output.matrix import Page

COMMANDS: dict[str, tuple[str, str]] = {
    "audit": (
        "winready.cli.matrix_audit:audit",
        "Which fields, gates and specs are new, gone, or without a statement about Windows.",
    ),
}
_EXAMPLES = """
\b
Examples:
  winready matrix --kubernetes 1.34
  winready matrix --kubernetes 1.34 --feature "active directory"
  winready matrix --kubernetes 1.30-1.36 --feature host-process
  winready matrix --diff 1.30 1.36          an upgrade plan
  winready matrix --diff 1.32 1.36 --for deploy/    what it changes for these manifests
  winready matrix -o wide                   with ids, gates and lint rules
  winready matrix -o html > support.html
  winready matrix audit --from 1.32 --to 1.36
  winready matrix --verify --area networking           what of it this cluster shows
  winready matrix --verify --sandbox --feature probes  the same on a simulated cluster
"""


@click.group(cls=LazyGroup, commands_table=COMMANDS, invoke_without_command=True, epilog=_EXAMPLES)
@click.option("--kubernetes", metavar="V|RANGE", help="Version such as 1.34, or a range such as 1.30-1.36.")
@click.option("--feature", "queries", multiple=True, metavar="F", help="Id of a feature, or words of its name.")
@click.option("--diff", nargs=2, metavar="FROM TO", help="What an upgrade changes for Windows.")
@click.option("--for", "for_paths", multiple=True, metavar="PATH|-", help="With --diff: for the workloads in these.")
@output_option("text", "wide", "json", "markdown", "html")
@verify_options
def matrix(
    kubernetes: str | None,
    queries: tuple[str, ...],
    diff: tuple[str, str] | None,
    for_paths: tuple[str, ...],
    output: str,
    **given: Any,
) -> None:
    """Tell what Windows nodes support: yes, with limits, or never; stage, gate, and since when.

    With --verify the cluster answers: each feature that can be shown is, and held against the data. That changes no
    verdict. Exit code then: 0 everything shown agrees with the data, 1 something does not, 2 wrong usage, 3 something
    could not be judged, or nothing was shown, or something was left behind, 130 interrupted.
    """
    if (context := click.get_current_context()).invoked_subcommand:
        _refuse_options(context)
        return
    if given.pop("verify"):
        if diff or kubernetes:
            raise click.UsageError("--verify asks the cluster for its version; leave --kubernetes and --diff out.")
        sys.exit(verify(queries, output, given))
    refuse_without_verify(given)
    from winready.lint import matrix as data
    from winready.lint.output import matrix as pages
    from winready.lint.versions import CURRENT, VersionError, parse_minor, parse_range

    if diff and kubernetes:
        raise click.UsageError("--diff names both versions; leave --kubernetes out.")
    if for_paths and (not diff or queries):
        raise click.UsageError("--for tells what an upgrade changes for manifests; it goes with --diff, and alone.")
    features: list[data.Feature] = []
    for query in queries:
        found = data.find(query)
        if not found:
            raise click.UsageError(f"No feature matches {query!r}. 'winready matrix' lists them all.")
        features += [feature for feature in found if feature not in features]
    chosen = features or list(data.load())
    try:
        if diff:
            before, after = parse_minor(diff[0]), parse_minor(diff[1])
            page = (
                _upgrade(for_paths, before, after)
                if for_paths
                else pages.diff_page(before, after, chosen, with_rules=not features, wide=output == WIDE)
            )
        else:
            versions = parse_range(kubernetes or f"1.{CURRENT}")
            if features and output == "text":
                texts = [pages.detail_text(feature, versions) for feature in features]
                click.echo("\n".join(texts), nl=False)
                return
            page = pages.support_page(chosen, versions, wide=output == WIDE)
    except VersionError as error:
        raise click.UsageError(str(error)) from error
    pens = {
        "text": pages.as_text,
        WIDE: page_text,
        "json": pages.as_json,
        "markdown": pages.as_markdown,
        "html": pages.as_html,
    }
    for part in pens[output](page):
        click.echo(part, nl=False)


def _refuse_options(context: click.Context) -> None:
    """What is asked of the matrix itself means nothing to a command below it."""
    if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in context.params):
        raise click.UsageError(f"Options of the matrix do not go with '{context.invoked_subcommand}'; leave them out.")


def _upgrade(paths: tuple[str, ...], before: int, after: int) -> Page:
    from winready.features.asking import read
    from winready.features.manifests import ManifestError
    from winready.features.upgrade import upgrade_page

    try:
        found = read(paths, "")
    except ManifestError as error:
        fail(str(error))
    for notice in found.notices:
        say(f"note: {notice}", err=True)
    return upgrade_page(found, before, after)
