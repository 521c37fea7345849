"""``winready sonobuoy``: the plugin file, the run inside of the plugin's pod, and what came out of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from winready.cli.options import fail, parse_duration, parse_node_selector, say, table_option
from winready.cli.run import run as run_command
from winready.cli.tables import print_record

TRAVELS = (
    "profile", "categories", "requirements", "skip", "allow_disruptive", "nodes", "node_selectors", "active_directory",
    "parallel", "timeout", "time_scale", "tolerations", "image_registry", "air_gapped", "allow_downtime",
    "allow_small_cluster", "windows_builds", "linux_conformance",
)  # fmt: skip
"""The options of ``winready run`` that a plugin file can carry, by name."""
MODES = {"windows-conformance": "core", "operational-readiness": "core", "core": "core", "full": "full"}
"""What the drafts of the standard and this tool call a selection, and its profile."""
EXTENSIONS = ("hostProcess", "activeDirectory", "networkPolicy", "serviceProxy")
DOTTED = "windows."
DEADLINE = "5h"
RESULTS = "/tmp/sonobuoy/results"  # noqa: S108 - where Sonobuoy looks for results unless it is told otherwise


def _normal(token: str) -> str:
    """The drafts' flags in any letter case."""
    return token.lower() if token.lower().startswith(DOTTED) else token


@click.group()
def sonobuoy() -> None:
    """Run as a plugin of Sonobuoy: print the plugin file, read back what it brought."""


@sonobuoy.command("plugin", context_settings={"token_normalize_func": _normal})
@click.option(
    "--image", help="The image of winready that the plugin runs  [default: WINREADY_IMAGE, else winready:VERSION]."
)
@click.option(
    "--image-pull-policy",
    "pull_policy",
    type=click.Choice(["Always", "IfNotPresent", "Never"]),
    default="IfNotPresent",
    show_default=True,
    help="When that image is pulled.",
)
@click.option("--name", default="winready", show_default=True, help="Name of the plugin.")
@click.option(
    "--mode",
    type=click.Choice([*MODES], case_sensitive=False),
    help="The selection as the drafts of the standard name it; --windows.* add extensions.",
)
@click.option("--service-account", "account", metavar="NAME", help="Run as this account of Sonobuoy's namespace.")
@click.option(
    "--pod-node-selector",
    "pod_selectors",
    multiple=True,
    metavar="K=V",
    help="Run the plugin's own pod only on (Linux) nodes with this label.",
)
@click.option(
    "--pod-tolerate",
    "pod_tolerations",
    multiple=True,
    metavar="K[=V][:EFFECT]",
    help="Let the plugin's own pod tolerate this taint; those of control planes it does.",
)
@click.option("--to", metavar="FILE", help="Write to this file instead of standard output.")
@click.pass_context
def plugin(ctx: click.Context, /, to: str | None, **given: Any) -> None:
    """Print the plugin file for 'sonobuoy run -p', with the selection of these options of 'winready run'.

    The files for --active-directory and --linux-conformance travel inside. A run that does not pass has failed in
    'sonobuoy status', whatever kept it from passing.

    \b
    winready sonobuoy plugin --image registry.example/winready:1.0 > winready.yaml
    winready sonobuoy plugin --category core.network --nodes all
    winready sonobuoy plugin --mode windows-conformance --windows.hostProcess --windows.activeDirectory \\
                             --active-directory domain.yaml
    """
    from winready.cli.runs import write_text
    from winready.cluster.settings import parse_toleration
    from winready.deploy.image import image
    from winready.deploy.sonobuoy import ACCOUNT, PluginFile, TooLarge

    _check_name(given["name"])
    categories = _categories(given)
    _check_selection(given, categories)
    files: dict[str, str] = {}
    arguments = _arguments(ctx, given, categories, files)
    timeout = parse_duration(given["timeout"] or DEADLINE, "--timeout")
    try:
        tolerations = [parse_toleration(text) for text in given["pod_tolerations"]]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--pod-tolerate") from None
    file = PluginFile(
        name=given["name"],
        image=image(given["image"]),
        pull_policy=given["pull_policy"],
        arguments=arguments,
        timeout=timeout or 0.0,
        account=given["account"] or ACCOUNT,
        node_selector=parse_node_selector(given["pod_selectors"]),
        tolerations=tolerations,
        files=files,
    )
    try:
        write_text(file.text(), to)
    except TooLarge as error:
        fail(str(error), "mount the file with 'extra-volumes' and 'spec.volumeMounts' of the plugin file instead")


for _option in run_command.params:
    if _option.name in TRAVELS:
        plugin.params.append(_option)
for _extension in EXTENSIONS:
    _flag = f"--{DOTTED}{_extension.lower()}"
    plugin.params.append(
        click.Option(
            [_flag, f"windows_{_extension.lower()}"],
            is_flag=True,
            help=f"The extension {_extension}, as the drafts of the standard write it (any letter case).",
        )
    )


@sonobuoy.command("run", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF WINREADY RUN]...")
def run_in_pod(arguments: tuple[str, ...]) -> None:
    """In the plugin's pod: do a run, tell its progress, and hand over results on every way out.

    What the plugin file runs. The results of a run that failed, was refused, crashed or was killed are handed over,
    too; the exit code is that of the run.
    """
    from winready.deploy.sonobuoy_pod import Guard

    results = Path(os.environ.get("SONOBUOY_RESULTS_DIR") or RESULTS)
    port = os.environ.get("SONOBUOY_PROGRESS_PORT") or "8099"
    command = [sys.executable, "-P", "-m", "winready", "run", *arguments]
    text = _last_value(arguments, "--timeout")
    if text is None:
        command += ["--timeout", DEADLINE]
    try:
        seconds = parse_duration(text or DEADLINE, "--timeout")
    except click.BadParameter:
        seconds = None  # The run says so itself, and its words become the result.
    guard = Guard(
        command, results, int(port) if port.isdecimal() and len(port) <= 5 else 8099, timeout=seconds or 3600.0
    )
    try:
        code = guard.run()
    except OSError as error:
        fail(f"results cannot be handed over in {results}: {error.strerror or error}", code=3)
    sys.exit(code)


@sonobuoy.command("results")
@click.argument("tarball", type=click.Path(path_type=Path))
@click.option("--plugin", "name", metavar="NAME", help="Which plugin, where several of them were winready.")
@table_option
def results(tarball: Path, name: str | None, output: str) -> None:
    """Read back what 'sonobuoy retrieve' got: the verdict and what kept the run from passing, with its exit code.

    report, compare, certify, status and verify take such a tarball as a RUN, too.

    \b
    winready sonobuoy results 202611171201_sonobuoy_2f0c.tar.gz
    winready sonobuoy results 202611171201_sonobuoy_2f0c.tar.gz -o json
    """
    from winready.cli.runs import run_in_archive
    from winready.report import words

    _, found = run_in_archive(tarball, name)
    if output != "text":
        print_record(found, output)
        sys.exit(found.exit_code)
    for result in found.requirements:
        say(words.result_line(result))
    for rule in found.rules:
        if rule.outcome != "passed":
            waived = f" (waived by {rule.waived_by})" if rule.waived_by else ""
            say(f"{words.MARKS[rule.outcome]} {rule.id} {rule.outcome}{waived}: {rule.reason}")
    judged = {result.id for result in found.requirements}
    if lost := [each for each in found.selected if each not in judged]:
        say(f"not judged: {', '.join(lost)}")
    for line in words.not_judged_lines(found):
        say(line)
    say(found.verdict_text)
    sys.exit(found.exit_code)


def _check_name(name: str) -> None:
    import re

    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", name) or name == "sonobuoy":
        raise click.BadParameter(
            f"{name!r} is no name for a plugin; write lower-case letters, digits and '-', at most 40",
            param_hint="--name",
        )


def _categories(given: dict[str, Any]) -> list[str]:
    """The categories that are chosen, with what the drafts' flags add to the core."""
    added = [name for name in EXTENSIONS if given[f"windows_{name.lower()}"]]
    chosen = list(given["categories"])
    if not added or (given["mode"] == "full" and not chosen):
        return chosen
    from winready.spec.loader import load_standard

    core = [each.name for each in load_standard().document.categories if each.level == "core"]
    return [*(chosen or core), *added]


def _check_selection(given: dict[str, Any], categories: list[str]) -> None:
    """What the run in the pod would refuse is refused here, where somebody reads it at once."""
    from winready.cli.options import parse_nodes
    from winready.cluster.settings import parse_toleration
    from winready.engine.selection import Selection, SelectionError, select
    from winready.spec.loader import load_standard

    profile = MODES[given["mode"]] if given["mode"] else given["profile"]
    chosen = Selection(
        profile=profile, categories=categories, requirements=list(given["requirements"]), skip=list(given["skip"])
    )
    try:
        select(load_standard(), chosen)
    except SelectionError as error:
        fail(str(error))
    parse_nodes(given["nodes"])
    parse_node_selector(given["node_selectors"])
    try:
        for text in given["tolerations"]:
            parse_toleration(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--tolerate") from None


def _arguments(ctx: click.Context, given: dict[str, Any], categories: list[str], files: dict[str, str]) -> list[str]:
    """The options of the run, in the words of the command line; what they name as files goes into the plugin file."""
    values = {**given, "categories": categories, "timeout": given["timeout"] or DEADLINE}
    if given["mode"]:
        values["profile"] = MODES[given["mode"]]
    for name, made in (("active_directory", _directory), ("linux_conformance", _conformance)):
        if given[name]:
            values[name] = made(Path(given[name]), files)
    arguments: list[str] = []
    for option in run_command.params:
        value = values.get(option.name or "")
        if option.name not in TRAVELS or value in (None, (), [], "", False):
            continue
        stated = ctx.get_parameter_source(option.name) is not click.core.ParameterSource.DEFAULT
        if not stated and value == given[option.name] and option.name != "timeout":
            continue
        flag = option.opts[0]
        if value is True:
            arguments.append(flag)
        else:
            for each in value if isinstance(value, list | tuple) else [value]:
                arguments += [flag, f"{each:g}" if isinstance(each, float) else str(each)]
    return arguments


def _directory(path: Path, files: dict[str, str]) -> str:
    from winready.cli.run_options import chosen_directory
    from winready.deploy.sonobuoy import CONFIG, DOMAIN

    chosen_directory(path)
    files[DOMAIN] = path.read_text(encoding="utf-8-sig")
    return f"{CONFIG}/{DOMAIN}"


def _conformance(path: Path, files: dict[str, str]) -> str:
    from winready.deploy.sonobuoy import CONFIG, CONFORMANCE
    from winready.engine.rules.conformance import ConformanceError, shortened

    try:
        files[CONFORMANCE] = shortened(path)
    except ConformanceError as error:
        raise click.BadParameter(f"{path} {error}", param_hint="--linux-conformance") from None
    return f"{CONFIG}/{CONFORMANCE}"


def _last_value(arguments: tuple[str, ...], flag: str) -> str | None:
    found = None
    for index, argument in enumerate(arguments):
        if argument == flag and index + 1 < len(arguments):
            found = arguments[index + 1]
        elif argument.startswith(f"{flag}="):
            found = argument.partition("=")[2]
    return found
