"""The container image that manifests name, unless somebody names another one."""

from __future__ import annotations

import os

from winready import __version__

REPOSITORY = "winready"
IMAGE = f"{REPOSITORY}:{__version__}"
"""As ``make image`` names it; a cluster that pulls it from a registry needs that registry in front."""
VARIABLE = "WINREADY_IMAGE"
"""The environment variable that names another one for every command."""


def image(given: str | None = None) -> str:
    """The image to use: what was given on the command line, else the environment's, else our own."""
    return given or os.environ.get(VARIABLE) or IMAGE
