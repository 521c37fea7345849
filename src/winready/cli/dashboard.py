"""``winready dashboard``: the local web page over all runs."""

from __future__ import annotations

import click

from winready.cli.options import fail, say
from winready.cli.places import asked_place, kept_fresh, reading, shown
from winready.cli.runs import report_dir_option

FRESH = 15.0
"""Seconds between two looks at a place elsewhere."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Beyond loopback a token is asked for.")
@click.option("--port", type=click.IntRange(0, 65535), default=8578, show_default=True, help="0 takes a free one.")
@report_dir_option
def dashboard(host: str, port: int, report_dir: str | None) -> None:
    """Serve the grid of all runs, each run, comparisons and runs in progress, until Ctrl-C.

    \b
    winready dashboard
    winready dashboard --host 0.0.0.0 --port 8080      prints an address with a token
    """
    import asyncio
    import secrets

    from winready.report.dashboard.guard import is_loopback
    from winready.report.dashboard.serving import serve

    base, place = reading(report_dir), asked_place(report_dir)
    if not base.is_dir():
        # It may come to be while the page is served; a slip of the pen must not look like that.
        say(f"note: there is no folder {base} yet; --report-dir names another", err=True)
    token = None if is_loopback(host) else secrets.token_urlsafe(24)

    def ready(address: str) -> None:
        click.echo(f"runs in {shown(base, report_dir)}: {address}")

    try:
        with kept_fresh(place, None, FRESH):
            asyncio.run(serve(base, host, port, token, ready))
    except OSError as error:
        fail(f"cannot listen on {host}:{port}: {error.strerror or error}", "choose another with --host and --port")
