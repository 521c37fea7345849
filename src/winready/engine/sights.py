"""What a run saw of its own pods, as far as the rules look at it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from winready.checks.world import World

T = TypeVar("T")


class ImageSeen(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """An image that a container of a Windows pod ran, as its runtime says."""

    pod: str
    """With its namespace."""
    node: str
    image: str
    digest: str


class NodeAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, order=True):
    """What a container on a node said when it was asked what it is."""

    node: str
    os: str
    """What it was started as."""
    build: str
    """The Windows build, or the name of the system."""
    host: bool = False
    """Said by the node itself, through a HostProcess container."""


class Sights(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run saw of its own pods."""

    namespaces: list[str] = []
    images: list[ImageSeen] = []
    misplaced: list[str] = []
    """Pods that lost their OS field or selector on the way, and how."""
    impostors: list[str] = []
    """Containers that are not of their node's system, and what gave them away."""

    answers: list[NodeAnswer] = []
    """What nodes are as seen from inside."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__struct_fields__)

    def plus(self, more: Sights) -> Sights:
        """Both, nothing twice."""
        return Sights(
            namespaces=_together(self.namespaces, more.namespaces),
            images=_together(self.images, more.images),
            misplaced=_together(self.misplaced, more.misplaced),
            impostors=_together(self.impostors, more.impostors),
            answers=_together(self.answers, more.answers),
        )

    def beyond(self, known: Sights) -> Sights:
        """What is not known yet."""
        return Sights(
            namespaces=_beyond(self.namespaces, known.namespaces),
            images=_beyond(self.images, known.images),
            misplaced=_beyond(self.misplaced, known.misplaced),
            impostors=_beyond(self.impostors, known.impostors),
            answers=_beyond(self.answers, known.answers),
        )


def look(world: World) -> Sights:
    """What can be seen of the run's own pods now."""
    spaces = world.namespaces
    images = {
        ImageSeen(pod=f"{space.name}/{used.pod}", node=used.node, image=used.image, digest=used.digest)
        for space in spaces
        for used in space.images
    }
    answers = {
        NodeAnswer(node=said.node, os=said.os, build=said.build, host=said.on_host)
        for space in spaces
        for said in space.answers
    }
    return Sights(
        answers=sorted(answers),
        namespaces=[space.name for space in spaces],
        images=sorted(images),
        misplaced=[f"{space.name}/{name}: {how}" for space in spaces for name, how in space.misplaced.items()],
        impostors=[text for space in spaces for text in space.impostors.values()] + world.impostors,
    )


def _together(some: list[T], others: list[T]) -> list[T]:
    return list(dict.fromkeys([*some, *others]))


def _beyond(some: list[T], known: list[T]) -> list[T]:
    old = set(known)
    return [each for each in some if each not in old]
