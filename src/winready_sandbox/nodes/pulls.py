"""Images on one node: what is cached, how long a pull takes, what a failed one leaves behind."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass

from winready_sandbox.clock import Clock
from winready_sandbox.machine import images
from winready_sandbox.machine.images import Image
from winready_sandbox.machine.tree import Directory
from winready_sandbox.nodes import latency
from winready_sandbox.nodes.defects import RuntimeDefects


@dataclass(frozen=True)
class Pulled:
    """A pull that went well."""

    image: Image
    seconds: float
    waited: float


class ImageStore:
    """The image cache of one node; several pods that want one image wait for one pull."""

    def __init__(
        self,
        os: latency.OS,
        build: str,
        clock: Clock,
        defects: RuntimeDefects,
        rng: random.Random,
        least: float = 0.0,
    ) -> None:
        """``least``: what a pull takes at least on a Windows node that does not have the image."""
        self._os: latency.OS = os
        self._build = build
        self._clock = clock
        self._defects = defects
        self._rng = rng
        self._least = least if os == "windows" else 0.0
        self._cached: dict[str, Image] = {}
        self._pulls: dict[str, asyncio.Lock] = {}
        self._uses: Counter[str] = Counter()

    def cached(self, reference: str) -> Image | None:
        """The image if it is on the node already; raises `InvalidReference` for what is no reference."""
        return self._cached.get(images.full_reference(reference))

    def use(self, image: Image) -> int:
        """A container is made from an image; how many there were before."""
        before = self._uses[image.name]
        self._uses[image.name] += 1
        return before

    def all(self) -> list[Image]:
        """Every image on the node."""
        return list(self._cached.values())

    def preload(self, reference: str) -> None:
        """Put an image on the node that its installation brought along."""
        image = images.resolve(reference, self._os, self._build)
        self._cached[image.name] = image

    async def tree(self, reference: str, policy: str) -> Directory:
        """The files of an image, for whoever mounts it as a volume; raises `PullError`."""
        cached = self.cached(reference)
        if cached is not None and policy != "Always":
            return cached.root
        if policy == "Never":
            raise images.ImageNotFound(f'image "{reference}" is not present with pull policy of Never')
        return (await self.pull(reference)).image.root

    async def pull(self, reference: str) -> Pulled:
        """Bring an image to the node; raises `PullError` with the runtime's words."""
        name = images.full_reference(reference)
        lock = self._pulls.setdefault(name, asyncio.Lock())
        begun = self._clock.now()
        async with lock:
            waited = self._clock.now() - begun
            figures = latency.of(self._os)
            seconds = latency.draw(self._rng, figures.pull_base)
            if self._defects.pulls_fail:
                await self._clock.sleep(seconds)
                raise images.PullError(
                    f'failed to pull and unpack image "{name}": failed to resolve reference "{name}": '
                    "failed to do request: dial tcp: i/o timeout"
                )
            try:
                image = images.resolve(reference, self._os, self._build)
            except images.PullError:
                await self._clock.sleep(seconds)
                raise
            if name not in self._cached:
                seconds = max(seconds + image.size / figures.pull_bytes_per_second, self._least)
            await self._clock.sleep(seconds)
            self._cached[name] = image
        return Pulled(image, seconds, waited)
