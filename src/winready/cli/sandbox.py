"""``winready sandbox``: start, stop, inspect and break the simulated cluster."""

from __future__ import annotations

import click


@click.group()
def sandbox() -> None:
    """A simulated hybrid cluster on loopback that needs nothing installed."""
