"""Manual pages go into the wheel where there are some: a release writes them to ``man/`` first (tools/release.py).

Making them takes all of winready's dependencies, which whoever builds from a clone need not have.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPages(BuildHookInterface[Any]):
    """`man` finds what lies in share/man beside the bin of an environment; pipx links it from there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        pages = Path(self.root, "man", "man1")
        if version == "standard" and pages.is_dir():
            build_data["shared_data"][str(pages)] = "share/man/man1"
