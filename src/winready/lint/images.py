"""What an image reference tells about Windows: whether it is one, and for which build."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from winready.lint import catalog
from winready.lint.versions import Range, parse_data_range

_WINDOWS_NAME = re.compile(
    r"(?i)nanoserver|servercore|windows/server|dotnet/framework|^mcr\.microsoft\.com/windows[/:]"
)
_WINDOWS_TAG = re.compile(r"(?i)nanoserver|servercore|ltsc20\d\d|(?:^|[-_.])windows(?:[-_.]|$)|(?:^|[-_])10\.0\.\d{5}")
_LINUX_TAG = re.compile(
    r"(?:^|[-_.\d])(?:alpine|bookworm|bullseye|buster|trixie|bionic|focal|jammy|noble|ubi[89])(?:[-_.\d]|$)"
)
_DOCKER_HUB = re.compile(r"(?:(?:index\.)?docker\.io/)?(?:library/)?")
_BUILD = re.compile(r"(?:^|[-_v])10\.0\.(\d{5})")


@dataclass(frozen=True, slots=True)
class BuildTable:
    """The table of Windows builds, and of images that none of them runs."""

    releases: dict[int, str]
    tags: dict[str, int]
    supported: tuple[tuple[Range, frozenset[int]], ...]
    accepts_from: dict[int, int]
    linux_only: frozenset[str]


@cache
def builds() -> BuildTable:
    """The table, read once."""
    data = catalog.read_data("windows.yaml")
    return BuildTable(
        releases={int(build): row["release"] for build, row in data["builds"].items()},
        tags={tag: int(build) for build, row in data["builds"].items() for tag in row["tags"]},
        supported=tuple((parse_data_range(text), frozenset(row)) for text, row in data["supported"].items()),
        accepts_from={int(host): oldest for host, oldest in data["accepts_from"].items()},
        linux_only=frozenset(data["linux_only"]),
    )


def split(image: str) -> tuple[str, str]:
    """Repository and tag; a digest is left out."""
    image = image.partition("@")[0]
    head, slash, last = image.rpartition("/")
    name, _, tag = last.partition(":")
    return head + slash + name, tag


@lru_cache(4096)
def is_windows(image: str) -> bool:
    """Whether the name or the tag says that this is a Windows image."""
    repository, tag = split(image)
    return bool(_WINDOWS_NAME.search(repository) or _WINDOWS_TAG.search(tag))


@lru_cache(4096)
def is_linux(image: str) -> bool:
    """Whether it is known that there is no such image for Windows: by its name, or by the distribution in its tag."""
    repository, tag = split(image)
    if is_windows(image):
        return False
    return _DOCKER_HUB.sub("", repository, count=1) in builds().linux_only or bool(_LINUX_TAG.search(tag))


@lru_cache(4096)
def build_of(image: str) -> int | None:
    """The Windows build that the tag of a Windows image names."""
    if not is_windows(image):
        return None
    tag = split(image)[1].lower()
    if match := _BUILD.search(tag):
        return int(match[1])
    found = [builds().tags[part] for part in re.split(r"[-_.]", tag) if part in builds().tags]
    return found[-1] if found else None


def runs_on(image_build: int, host_build: int) -> bool:
    """Whether a host of this build runs the image in process isolation."""
    return builds().accepts_from.get(host_build, host_build) <= image_build <= host_build


def release(build: int) -> str:
    """The name of the release that a build belongs to."""
    return builds().releases.get(build, f"build 10.0.{build}")


def unlisted(build: int, versions: Range) -> Range | None:
    """The versions of the range whose documentation does not list this build."""
    for span, known in builds().supported:
        if span.overlaps(versions) and build not in known:
            return span
    return None
