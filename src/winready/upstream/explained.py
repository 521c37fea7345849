"""What specs say about Windows: those of [sig-windows], and why others are tagged [LinuxOnly]."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal

import msgspec

from winready.spec import yamlfile
from winready.upstream.listing import plain
from winready.upstream.mapping import load_mapping

WINDOWS = "[sig-windows]"
LINUX_ONLY = "[LinuxOnly]"
_TAG = re.compile(r"\[[^\[\]]*\]")
_SIG = re.compile(r"\[sig-[a-z-]+\]")
_BEFORE_PUNCTUATION = re.compile(r" (?=[,.])")
WAYS: dict[str, str] = {
    "none": "no",
    "other": "another way",
    "limited": "in part",
    "works": "yes",
}


class Meaning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a spec of [sig-windows] is about: requirements, features, or a reason why it is about neither."""

    requirements: list[str] = []
    features: list[str] = []
    reason: str = ""


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Specs that leave Windows out for the same reason."""

    id: str
    match: list[str]
    tests: str
    way: Literal["none", "other", "limited", "works"]
    windows: str
    features: list[str] = []
    requirements: list[str] = []

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """Found in the text of each of its specs."""
        return re.compile("|".join(self.match))


class _Data(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    windows: dict[str, Meaning]
    linux_only: list[Group]


@dataclass(frozen=True)
class Folded:
    """The specs of a listing that this is about, without tags and repetitions."""

    windows: tuple[str, ...]
    """Texts of [sig-windows]."""
    linux_only: Mapping[str, int]
    """How often each text is tagged [LinuxOnly]."""


def fold(text: str) -> str:
    """A spec's text without any tag but that of its SIG: tags change between versions and drivers."""
    sig = _SIG.match(text)
    words = _BEFORE_PUNCTUATION.sub("", plain(_TAG.sub(" ", text)))
    return f"{sig[0]} {words}" if sig else words


def folded(texts: Iterable[str]) -> Folded:
    """What a listing has for this module."""
    windows = {fold(text) for text in texts if text.startswith(WINDOWS)}
    linux_only = Counter(fold(text) for text in texts if LINUX_ONLY in text)
    return Folded(tuple(sorted(windows)), dict(sorted(linux_only.items())))


def meaning(text: str) -> Meaning | None:
    """What a spec of [sig-windows] is about; None where nobody has said."""
    text = fold(text)
    return _mapped().get(text) or _data().windows.get(text)


def group(text: str) -> Group | None:
    """Why a spec leaves Windows out; None where nobody has said."""
    text = fold(text)
    return next((one for one in groups() if one.pattern.search(text)), None)


def groups() -> list[Group]:
    """Every group of [LinuxOnly] specs, in the order in which they are asked."""
    return _data().linux_only


def windows_specs() -> Mapping[str, Meaning]:
    """Every spec of [sig-windows] that has a meaning of its own in the data."""
    return _data().windows


@functools.cache
def _mapped() -> Mapping[str, Meaning]:
    """The specs that requirements are mapped to, in every version."""
    mapping = load_mapping()
    users: dict[str, list[str]] = {}
    for requirement, coverage in mapping.requirements.items():
        for name in coverage.tests:
            for text in mapping.tests[name].texts.values():
                known = users.setdefault(fold(text), [])
                if requirement not in known:
                    known.append(requirement)
    return {text: Meaning(requirements=found) for text, found in users.items()}


@functools.cache
def _data() -> _Data:
    data = resources.files("winready.upstream").joinpath("specs.yaml").read_bytes()
    documents = [item for item in yamlfile.read(yamlfile.decode(data)) if isinstance(item, yamlfile.Document)]
    return msgspec.convert(documents[0].value, _Data)
