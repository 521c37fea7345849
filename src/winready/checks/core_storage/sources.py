"""What the sources of a pod's volumes hold, in two versions, and which of them a container sees.

A config map and a secret have several keys: a small one, a large one, one whose path has a folder in it, one that goes
and one that comes with the second version, and one that is no text. All change together, and the kubelet swaps all
files of a volume in one step: whoever reads them finds the old ones or the new ones, and no mixture that stays.
"""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from winready.checks.core_storage.files import LARGE, difference, long_marker, marker
from winready.cluster.client import Object
from winready.cluster.commands import numbered

SMALL, BIG, NESTED, GOES, COMES, BINARY = "a-small", "large", "nested", "goes", "comes", "binary"
PROJECTED = {SMALL: SMALL, BIG: BIG, NESTED: "folder/below"}
"""Keys of a projection, whose list is fixed, and the paths that their files have in it."""
BINARY_BYTES = 3000


@dataclass(frozen=True)
class Version:
    """One version of a source."""

    texts: dict[str, list[str]]
    """The lines of each key."""
    binary: bytes

    @property
    def digest(self) -> str:
        """The SHA-256 of the binary key, as PowerShell prints it."""
        return hashlib.sha256(self.binary).hexdigest().upper()


def version(absent: str) -> Version:
    """Contents that were never anywhere before, without one of the keys."""
    texts = {key: [f"{marker()} is {key}"] for key in (SMALL, NESTED, GOES, COMES) if key != absent}
    # Every byte there is, line feeds and the old end-of-file mark among them.
    binary = bytes(range(256)) + random.randbytes(BINARY_BYTES)
    return Version({**texts, BIG: numbered(long_marker(), LARGE)}, binary)


@dataclass(frozen=True)
class Source:
    """A config map or a secret."""

    old: Version = field(default_factory=lambda: version(COMES))
    new: Version = field(default_factory=lambda: version(GOES))

    def data(self, *, secret: bool, update: bool = False) -> Object:
        """Its fields in the API; an update takes out what the new version does not have."""
        wanted = self.new if update else self.old
        texts: dict[str, str | None] = {key: "\n".join([*text, ""]) for key, text in wanted.texts.items()}
        if update:
            texts[GOES] = None
        binary = base64.b64encode(wanted.binary).decode()
        if not secret:
            return {"data": texts, "binaryData": {BINARY: binary}}
        encoded = {key: text and base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        return {"data": {**encoded, BINARY: binary}}


def items(folder: str) -> list[Object]:
    """The keys of a projection and the paths that they are found under, all in one folder."""
    return [{"key": key, "path": f"{folder}/{path}"} for key, path in PROJECTED.items()]


@dataclass(frozen=True)
class Group:
    """The files of one source in one volume: they change together."""

    what: str
    folder: str
    source: Source
    projected: bool = False

    def files(self, wanted: Version) -> dict[str, list[str]]:
        """The lines of each file when the volume has this version; none where it must not be there."""
        paths = PROJECTED if self.projected else {key: key for key in (SMALL, BIG, NESTED, GOES, COMES)}
        return {f"{self.folder}\\" + path.replace("/", "\\"): wanted.texts.get(key, []) for key, path in paths.items()}

    def state(self, found: Mapping[str, Sequence[str]]) -> State:
        """Which version these files are."""
        old, new = self.files(self.source.old), self.files(self.source.new)
        wrong, olds, news = list[str](), list[str](), list[str]()
        for path in old:
            lines = list(found.get(path, []))
            if lines == old[path]:
                olds.append(path)
            elif lines == new[path]:
                news.append(path)
            else:
                right = old[path] if lines[:1] == old[path][:1] else new[path]
                wrong.append(difference(path, lines, right))
        return State(self.what, olds, news, wrong)


@dataclass(frozen=True)
class State:
    """Which files of a group are old and which are new."""

    what: str
    old: list[str]
    new: list[str]
    wrong: list[str]

    @property
    def mixed(self) -> bool:
        """Whether both versions, or something that is neither, is there."""
        return bool(self.wrong or (self.old and self.new))

    def __str__(self) -> str:
        if self.wrong:
            return f"{self.what}: {'; '.join(self.wrong[:2])}"
        if self.mixed:
            return f"{self.what} is a mixture: {', '.join(self.new)} new, {', '.join(self.old)} old"
        return f"{self.what} is {'new' if self.new else 'old'}"
