"""Windows builds that the standard allows: dated data, read from the package."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Literal

import msgspec
import yaml

BuildList = Literal["draft", "published", "current"]


class Allowed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One list, the text it comes from, and the day on which it was taken from there."""

    text: str
    taken: str
    builds: list[str]


class Builds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All lists, and what people call the builds."""

    names: dict[str, str]
    lists: dict[BuildList, Allowed]

    def name(self, build: str) -> str:
        """A build as people know it."""
        known = self.names.get(build)
        return f"{known} ({build})" if known else f"build {build or 'unknown'}"


@functools.cache
def load_builds() -> Builds:
    """The builds that this version of winready knows."""
    text = resources.files("winready.spec").joinpath("windows_builds.yaml").read_text(encoding="utf-8")
    return msgspec.convert(yaml.safe_load(text), Builds)
