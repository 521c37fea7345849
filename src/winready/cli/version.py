"""``winready version``: which winready this is."""

from __future__ import annotations

import click

from winready import __version__
from winready.cli.options import document_option, print_document, say


@click.command()
@document_option
def version(output: str) -> None:
    """Print the version of winready, and of the standard that it verifies.

    \b
    winready version
    winready version -o json
    """
    import platform

    from winready.spec.loader import load_standard

    standard = load_standard()
    if output == "text":
        say(f"winready {__version__}")
        say(f"standard {standard.document.version}, {standard.digest}")
        say(f"Python {platform.python_version()}")
        return
    document = {
        "winready": __version__,
        "standard": {"version": standard.document.version, "digest": standard.digest},
        "python": platform.python_version(),
    }
    print_document(document, output)
