"""``winready lint``: will these manifests run on Windows?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from winready.cli.options import cluster_options, fail, output_option, say

if TYPE_CHECKING:
    from winready.lint.config import Config
    from winready.lint.finding import Summary
    from winready.lint.run import Result, Settings

_EXAMPLES = """
\b
Examples:
  winready lint deploy/
  helm template chart | winready lint -
  winready lint --kubernetes 1.30-1.36 --fail-on error app.yaml
  winready lint --diff app.yaml        what --fix would change
  winready lint --rules                all rules: id, severity, one sentence
  winready lint --explain sc-privileged
  winready lint -o sarif deploy/ > lint.sarif
  winready lint --cluster deploy/      judge for the cluster of your kubeconfig
  winready lint --live -n web          lint what runs there
"""


@click.command(epilog=_EXAMPLES)
@click.argument("paths", nargs=-1, metavar="FILE|DIR|-...")
@click.option("--kubernetes", metavar="V|RANGE", help="Version such as 1.34, or a range such as 1.30-1.36.")
@output_option("text", "wide", "json", "sarif", "junit", "github")
@click.option(
    "--severity", type=click.Choice(["info", "warning", "error"]), help="Show findings from here on [warning]."
)
@click.option(
    "--fail-on", type=click.Choice(["info", "warning", "error", "never"]), help="Exit 1 from here on [warning]."
)
@click.option("--fix", is_flag=True, help="Write the safe repairs back, keeping comments and layout.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option("--windows-nodes", is_flag=True, help="The cluster has Windows nodes: look at every Service and policy.")
@click.option(
    "--windows-build", "builds", multiple=True, metavar="B", help="Build of the Windows nodes, as 10.0.20348."
)
@click.option(
    "--windows-taint", "taints", multiple=True, metavar="T", help="Taint of the Windows nodes, KEY=VALUE:EFFECT."
)
@click.option("--cni", metavar="NAME", help="CNI plugin of the Windows nodes, such as calico, antrea or azure-npm.")
@click.option("-n", "--namespace", metavar="NS", help="Namespace of objects that name none.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Files in folders to leave out.")
@click.option("--config", "config_path", metavar="FILE", help="Configuration instead of the nearest .winready.yaml.")
@click.option(
    "--cluster", is_flag=True, help="Take version, builds, taints and classes from the cluster, not from flags."
)
@click.option("--live", is_flag=True, help="Lint the objects of the cluster (with -n, of one namespace).")
@cluster_options
@click.option(
    "--rules", "listed", is_flag=True, help="List the rules; with -o wide in full, with -o json for machines."
)
@click.option("--explain", metavar="ID", help="Tell everything about a rule.")
@click.option("--color/--no-color", default=None, help="Colour, by default on a terminal.")
def lint(paths: tuple[str, ...], explain: str | None, listed: bool, **options: Any) -> None:
    """Check manifests against what Windows nodes support.

    Reads YAML and JSON files, folders and standard input. Exit code 0: clean; 1: findings at or above --fail-on;
    2: wrong usage, or an input that could not be read.
    """
    if explain is not None:
        click.echo(_explain(explain), nl=False)
        return
    if listed:
        click.echo(_rules(options["output"]), nl=False)
        return
    if options["output"] == "wide":
        raise click.UsageError("-o wide is a form of the list of rules; it goes with --rules.")
    if not paths and not options["live"]:
        raise click.UsageError("Name at least one file or folder, or - for standard input.")
    sys.exit(_lint(list(paths), options))


def _rules(output: str) -> str:
    from winready.lint.explain import listing, listing_json, listing_rows

    if output not in ("text", "wide", "json"):
        raise click.UsageError(f"--rules is told as text, wide or json, not as {output}.")
    if output == "wide":
        from winready.cli.tables import table_text

        return table_text(*listing_rows())
    return listing() if output == "text" else listing_json()


def _explain(name: str) -> str:
    import difflib

    from winready.lint import catalog
    from winready.lint.explain import explain

    rules = catalog.load()
    if name in rules:
        return explain(rules[name])
    near = difflib.get_close_matches(name, rules, n=3, cutoff=0.5) or [rule for rule in rules if name in rule][:3]
    hint = f" Did you mean {', '.join(near)}?" if near else " 'winready lint --rules' lists them all."
    raise click.UsageError(f"There is no rule {name!r}.{hint}")


def _lint(paths: list[str], options: dict[str, Any]) -> int:
    from winready.lint.catalog import SEVERITIES, rank
    from winready.lint.config import ConfigError
    from winready.lint.run import Run
    from winready.lint.versions import VersionError

    try:
        config = _config(options)
        settings = _settings(config, options)
    except (ConfigError, VersionError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    threshold = options["severity"] or config.texts.get("severity", "warning")
    fail_on = options["fail_on"] or config.texts.get("fail-on", "warning")
    settings.minimum = SEVERITIES[min(rank(threshold), rank("error" if fail_on == "never" else fail_on))]
    if options["cluster"] or options["live"]:
        if options["live"] and (options["fix"] or options["diff"]):
            raise click.UsageError("--fix and --diff change files; leave --live out.")
        settings = _ask_cluster(settings, options)
    if (options["fix"] or options["diff"]) and "-" in paths:
        raise click.UsageError("--fix and --diff change files; standard input is none.")
    if options["fix"] or options["diff"]:
        _repair(paths, settings, write=options["fix"], show=options["diff"])
        if options["diff"] and not options["fix"]:
            click.echo()
    run = Run(paths, settings)
    shown = _Shown(run.results(), threshold, fail_on, with_suppressed=options["output"] == "sarif")
    for chunk in _render(options, shown, run.summary, str(settings.profile.versions), fail_on):
        click.echo(chunk, nl=False)
    for notice in run.summary.notices:
        say(f"note: {notice}", err=True)
    if run.summary.unreadable:
        return 2
    return 1 if shown.failed else 0


class _Shown:
    """The results that are to be shown; counts those that fail the run and those that are left out."""

    def __init__(self, results: Iterable[Result], threshold: str, fail_on: str, with_suppressed: bool) -> None:
        self.results, self.threshold, self.fail_on = results, threshold, fail_on
        self.with_suppressed = with_suppressed
        self.failed = self.hidden = 0

    def __iter__(self) -> Iterator[Result]:
        from winready.lint.catalog import rank
        from winready.lint.finding import Finding

        for one in self.results:
            if isinstance(one, Finding):
                if one.suppressed:
                    if self.with_suppressed:
                        yield one
                    continue
                self.failed += self.fail_on != "never" and rank(one.severity) >= rank(self.fail_on)
                if rank(one.severity) < rank(self.threshold):
                    self.hidden += 1
                    continue
            yield one


def _render(options: dict[str, Any], shown: _Shown, summary: Summary, kubernetes: str, fail_on: str) -> Iterable[str]:
    from winready.lint.output import github, junit, machine, sarif, text

    match options["output"]:
        case "json":
            return machine.render(shown, summary, kubernetes)
        case "sarif":
            return sarif.render(shown, summary)
        case "junit":
            return junit.render(shown, summary, fail_on)
        case "github":
            return github.render(shown, summary)
    import os

    colour = options["color"]
    if colour is None:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return text.render(shown, summary, colour, lambda: shown.hidden + summary.untold)


def _config(options: dict[str, Any]) -> Config:
    from pathlib import Path

    from winready.lint import config

    path = Path(options["config_path"]) if options["config_path"] else config.find(Path.cwd())
    return config.load(path) if path else config.Config()


def _settings(config: Config, options: dict[str, Any]) -> Settings:
    from winready.lint.context import Profile, Taint
    from winready.lint.run import Settings
    from winready.lint.versions import CURRENT, parse_range
    from winready.spec.windows import build_number

    builds = []
    for text in options["builds"] or config.lists.get("windows-builds", []):
        if (build := build_number(text)) is None:
            raise ValueError(f"{text!r} is not a Windows build; write 10.0.20348")
        builds.append(build)
    profile = Profile(
        versions=parse_range(options["kubernetes"] or config.texts.get("kubernetes", f"1.{CURRENT}")),
        windows_nodes=options["windows_nodes"] or config.windows_nodes,
        builds=tuple(builds),
        taints=tuple(Taint.parse(text) for text in options["taints"] or config.lists.get("windows-taints", [])),
        cni=(options["cni"] or config.texts.get("cni", "")).lower(),
        namespace=options["namespace"] or config.texts.get("namespace", ""),
    )
    exclude = (*options["exclude"], *config.lists.get("exclude", []))
    return Settings(profile, config.severities, tuple(config.ignores), exclude)


def _ask_cluster(settings: Settings, options: dict[str, Any]) -> Settings:
    import asyncio
    from dataclasses import replace

    from winready.cli.patience import patiently
    from winready.cluster.errors import ClusterError, ConfigError
    from winready.cluster.kubeconfig import find_target
    from winready.lint.live import ask

    try:
        target = find_target(options["kubeconfig"], options["context"])
        asking = ask(target, settings.profile, options["live"], options["namespace"] or "")
        live = asyncio.run(patiently(target.server, asking))
    except ClusterError as error:
        fail(error.message, error.remedy, code=2 if isinstance(error, ConfigError) else 3)
    for notice in live.notices:
        say(f"note: {notice}", err=True)
    return replace(settings, profile=live.profile, extra=live.inputs)


def _repair(paths: list[str], settings: Settings, write: bool, show: bool) -> None:
    from winready.lint.fix import Repairs
    from winready.lint.run import Run

    repairs = Repairs(settings.profile)
    for _ in Run(paths, settings, repairs).results():
        pass
    for change in repairs.changes:
        if show:
            # A patch must stay what it is, but on a terminal it is text like any other.
            (say if sys.stdout.isatty() else click.echo)(change.diff(), nl=False)
        if write:
            try:
                change.write()
            except OSError as error:
                fail(f"{change.path} cannot be written: {error.strerror}", "check its permissions")
    for path, problem in repairs.skipped:
        say(f"{path}: not repaired: {problem}", err=True)
    if write:
        count = len(repairs.changes)
        say(f"repaired {repairs.count} findings in {count} {'file' if count == 1 else 'files'}", err=True)
