"""What the rules of a run are held against besides the cluster: the operator's decisions, and what was seen."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from winready.engine import defaults
from winready.spec.builds import BuildList, load_builds

T = TypeVar("T")
SMALL_CLUSTER = "--allow-small-cluster"


class Conformance(msgspec.Struct, frozen=True, kw_only=True):
    """What an imported result of Linux conformance says."""

    source: str
    passed: int
    failed: list[str]


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the operator decided about the rules."""

    windows_builds: BuildList = defaults.WINDOWS_BUILDS
    builds_taken: str = ""
    """The day on which that list of builds was taken from its text."""
    waived: list[str] = []
    """Flags that were given to waive rules."""
    conformance: Conformance | None = None
    images: list[str] = []
    """What Windows pods may run, without tags."""

    def stated(self, images: list[str]) -> Terms:
        """The terms as a run writes them down, so that anyone can judge by them again."""
        taken = load_builds().lists[self.windows_builds].taken
        return msgspec.structs.replace(self, builds_taken=taken, images=images)


class ImageSeen(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """An image that a container of a Windows pod ran, as its runtime says."""

    pod: str
    """With its namespace."""
    node: str
    image: str
    digest: str


class Sights(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run saw of its own pods."""

    namespaces: list[str] = []
    images: list[ImageSeen] = []
    misplaced: list[str] = []
    """Pods that lost their OS field or selector on the way, and how."""
    impostors: list[str] = []
    """Containers on Windows nodes that are not Windows, and what gave them away."""

    def __bool__(self) -> bool:
        return bool(self.namespaces or self.images or self.misplaced or self.impostors)

    def plus(self, more: Sights) -> Sights:
        """Both, nothing twice."""
        return Sights(
            namespaces=_together(self.namespaces, more.namespaces),
            images=_together(self.images, more.images),
            misplaced=_together(self.misplaced, more.misplaced),
            impostors=_together(self.impostors, more.impostors),
        )

    def beyond(self, known: Sights) -> Sights:
        """What is not known yet."""
        return Sights(
            namespaces=_beyond(self.namespaces, known.namespaces),
            images=_beyond(self.images, known.images),
            misplaced=_beyond(self.misplaced, known.misplaced),
            impostors=_beyond(self.impostors, known.impostors),
        )


def _together(some: list[T], others: list[T]) -> list[T]:
    return list(dict.fromkeys([*some, *others]))


def _beyond(some: list[T], known: list[T]) -> list[T]:
    old = set(known)
    return [each for each in some if each not in old]
