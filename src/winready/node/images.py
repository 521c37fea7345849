"""The images that every Windows node needs: what a registry says about them, or that nobody was asked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

from winready.node.findings import Finding
from winready.node.parameters import Parameters
from winready.node.registries import Answer, Entry, Registries

STABLE = 20348
"""From this build on, hosts also run containers of older builds, back to this one."""
FIRST_PAUSE = {20348: (3, 6)}
"""The first release of the pause image that hosts of a build, and newer ones, can run."""
PULL = "'crictl pull {}' on the machine shows it"


async def image_findings(parameters: Parameters, builds: list[int], *, ask: bool) -> list[Finding]:
    """Both images for these builds of Windows; without ``ask`` it is said that nobody was asked."""
    images = {"pause image": parameters.images.pause, "HostProcess image": parameters.images.host_process}
    if not ask:
        why = "no registry was asked about it (--no-registries)"
        return [Finding("images", "unknown", f"the {what} {image}: {why}", PULL.format(image))
                for what, image in images.items()]  # fmt: skip
    async with Registries(parameters.proxy, parameters.containerd.mirrors) as registries:
        answers = await asyncio.gather(*(registries.ask(image) for image in images.values()))
    found: list[Finding] = []
    for (what, image), answer in zip(images.items(), answers, strict=True):
        found += _judged(what, image, answer, builds)
    return found


def _judged(what: str, image: str, answer: Answer, builds: list[int]) -> Iterator[Finding]:
    named = f"the {what} {image}"
    if answer.state == "found":
        yield from _platforms(named, answer, builds)
    elif answer.state == "missing":
        todo = "correct its name (--registry, --pause-image), or put the image there"
        yield Finding("images", "problem", f"{named} is not in the registry {answer.registry}: {answer.why}", todo)
    else:
        known = _by_name(image, builds)
        if known:
            yield Finding("images", "problem", f"{named} {known}; pods would not start", "see --pause-image")
        words = {"refused": "does not tell", "silent": "could not be asked", "garbled": "does not say it"}[answer.state]
        where = f"the registry {answer.registry}" if answer.registry else "its registry"
        text = f"whether {named} is there is not known: {where} {words}: {answer.why}"
        yield Finding("images", "unknown", text, PULL.format(image))


def _platforms(named: str, answer: Answer, builds: list[int]) -> Iterator[Finding]:
    entries = [entry for entry in answer.entries if entry.os == "windows" and entry.architecture in ("amd64", "")]
    shown = f"{named} ({answer.digest})"
    if not entries:
        text = f"{shown} has nothing for Windows on amd64, says {answer.registry}"
        yield Finding("images", "problem", text, "name an image that has (--registry, --pause-image)")
        return
    for build in builds:
        fit = _fit(entries, build)
        if fit is None:
            have = ", ".join(sorted({str(entry.build) for entry in entries}))
            text = f"{shown} has no entry for Windows build {build}, only for {have}, says {answer.registry}"
            yield Finding("images", "problem", f"{text}; pods would not start", "name one that has (--pause-image)")
            continue
        which = "every build" if fit.build is None else f"build {fit.build}"
        through = "" if fit.build == build else f" by its entry for {which}"
        yield Finding("images", "ok", f"{shown} is there for build {build}{through}, says {answer.registry}")


def _fit(entries: list[Entry], build: int) -> Entry | None:
    """The entry that a host of a build takes: its own, the nearest older one that it may run, or one for all."""
    older = [entry for entry in entries if entry.build is not None and STABLE <= entry.build <= build]
    exact = [entry for entry in entries if entry.build == build]
    every = [entry for entry in entries if entry.build is None]
    return next(iter([*exact, *sorted(older, key=lambda entry: -(entry.build or 0)), *every]), None)


def _by_name(image: str, builds: list[int]) -> str:
    """What is wrong with a pause image as far as its release tells, where no registry does."""
    match = re.search(r"/pause:(\d{1,9}(?:\.\d{1,9})+)$", image)
    if match is None:
        return ""
    have = tuple(int(part) for part in match[1].split("."))
    for build in builds:
        need = next((first for known, first in sorted(FIRST_PAUSE.items(), reverse=True) if known <= build), None)
        if need is not None and have < need:
            return f"has no entry for Windows build {build} by its release, {'.'.join(map(str, need))} is the first one"
    return ""
