"""``winready dashboard``: the web pages over all runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from winready.cli.options import fail, say
from winready.cli.places import asked_place, kept_fresh, reading, shown
from winready.cli.runs import report_dir_option

if TYPE_CHECKING:
    from winready.report.dashboard.guard import Network

FRESH = 15.0
"""Seconds between two looks at a place elsewhere."""
SHORTEST = 16
"""Letters of a token."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Beyond loopback a token is asked for.")
@click.option("--port", type=click.IntRange(0, 65535), default=8578, show_default=True, help="0 takes a free one.")
@click.option("--token-file", metavar="FILE", help="Take the token from this file, instead of a new one at each start.")
@click.option("--path-prefix", default="", metavar="PATH", help="Serve everything below this path, such as /winready.")
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A reverse proxy: what it says in X-Forwarded-Prefix and X-Forwarded-Proto counts.",
)
@click.option(
    "--trust-user-header",
    default="",
    metavar="NAME",
    help="Let in whom that proxy names in this header; everybody else needs the token.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name, beside those of loopback, under which it may be asked for.",
)
@report_dir_option
def dashboard(
    host: str, port: int, token_file: str | None, path_prefix: str, proxies: tuple[str, ...], trust_user_header: str,
    hosts: tuple[str, ...], report_dir: str | None,
) -> None:  # fmt: skip
    """Serve the fleet, all runs, comparisons and runs in progress, until Ctrl-C.

    It only reads. Beside the pages there are a JSON API (/api/v1) and metrics (/metrics).

    \b
    winready dashboard
    winready dashboard --host 0.0.0.0 --port 8080      prints an address with a token
    winready dashboard --path-prefix /winready --trusted-proxy 127.0.0.1 --trust-user-header X-Remote-User
    """
    import asyncio
    import re
    import secrets

    from winready.report.dashboard.guard import PREFIX, Access, is_loopback
    from winready.report.dashboard.serving import serve

    prefix = path_prefix.rstrip("/")
    if prefix and not PREFIX.fullmatch(prefix):
        raise click.BadParameter(f"{path_prefix[:80]!r} is no path such as /winready", param_hint="--path-prefix")
    if trust_user_header and not re.fullmatch(r"[A-Za-z0-9-]{1,64}", trust_user_header):
        raise click.BadParameter(f"{trust_user_header[:80]!r} is no header", param_hint="--trust-user-header")
    if trust_user_header and not proxies:
        raise click.UsageError("anybody can send a header: --trusted-proxy ADDRESS says from whom it counts")
    base, place = reading(report_dir), asked_place(report_dir)
    if not base.is_dir():
        # It may come to be while the page is served; a slip of the pen must not look like that.
        say(f"note: there is no folder {base} yet; --report-dir names another", err=True)
    needed = bool(token_file or trust_user_header) or not is_loopback(host)
    token = (_read(token_file) if token_file else secrets.token_urlsafe(24)) if needed else None
    access = Access(
        token=token,
        prefix=prefix,
        proxies=tuple(_network(text) for text in proxies),
        user_header=trust_user_header,
        hosts=frozenset(name.casefold() for name in hosts),
    )

    def ready(address: str) -> None:
        # Who has the file knows what is in it; a log need not.
        click.echo(f"runs in {shown(base, report_dir)}: {address.partition('?')[0] if token_file else address}")

    try:
        with kept_fresh(place, None, FRESH):
            asyncio.run(serve(base, host, port, access, ready))
    except OSError as error:
        fail(f"cannot listen on {host}:{port}: {error.strerror or error}", "choose another with --host and --port")


def _network(text: str) -> Network:
    import ipaddress

    try:
        return ipaddress.ip_network(text, strict=True)
    except ValueError:
        raise click.BadParameter(
            f"{text[:80]!r} is neither an address nor a network; write 10.0.0.7 or 10.0.0.0/24",
            param_hint="--trusted-proxy",
        ) from None


def _read(path: str) -> str:
    """The token in a file."""
    from pathlib import Path

    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        token = ""
    if len(token) < SHORTEST or not token.isprintable() or " " in token:
        fail(f"{path} holds no token", f"write one line of {SHORTEST} letters and digits or more into it")
    return token
