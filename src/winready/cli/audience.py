"""Whom a run tells what becomes of it, besides the terminal and its folder: the options, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.options import apply, fail, say

if TYPE_CHECKING:
    from winready.deploy.following import Audience

audience_options = apply(
    click.option("--publish", multiple=True, metavar="THING=WHERE",
                 help="In a pod: tell the cluster. job=NS/NAME (annotations and events), configmap=NS/NAME, "
                 "policy-report=NS/NAME, termination-log=FILE."),
    click.option("--metrics-file", type=click.Path(path_type=Path), metavar="FILE",
                 help="Keep Prometheus metrics in this file."),
    click.option("--metrics-listen", metavar="[HOST:]PORT",
                 help="Serve Prometheus metrics while the run goes on: on loopback, or with ':PORT' everywhere."),
)  # fmt: skip


def chosen_audience(publish: tuple[str, ...], metrics_file: Path | None, metrics_listen: str | None) -> Audience | None:
    """What the options say; None when nobody else is to hear. A mistake ends the command."""
    if not (publish or metrics_file or metrics_listen):
        return None
    from winready.deploy.following import Audience
    from winready.deploy.metrics import listen, parse_listen
    from winready.deploy.places import read_places

    try:
        places = read_places(publish)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--publish") from None
    if metrics_file is not None and (metrics_file.is_dir() or not metrics_file.absolute().parent.is_dir()):
        what = "is a folder" if metrics_file.is_dir() else "is in no folder that exists"
        raise click.BadParameter(f"{metrics_file} {what}", param_hint="--metrics-file")
    if metrics_listen is None:
        return Audience(places, metrics_file)
    try:
        host, port = parse_listen(metrics_listen)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--metrics-listen") from None
    try:
        bound = listen(host, port)
    except OSError as error:
        fail(f"--metrics-listen {metrics_listen}: {error.strerror}", "choose another address or port")
    shown = f"[{host}]" if ":" in host else host or "this machine"
    say(f"metrics: http://{shown}:{bound.getsockname()[1]}/metrics", err=True)
    return Audience(places, metrics_file, (bound, host))
