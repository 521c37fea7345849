"""Archives of strangers: members with other contents, names, kinds and sizes than they should have."""

from __future__ import annotations

import functools
import gzip
import io
import tarfile
import zipfile
from random import Random

from fuzz.mutate import TEXTS, json_document, json_lines, torn

KINDS = (tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)
NAMES = ("../x", "/etc/x", "a/../../x", "plugins", "plugins/e2e/results/global/x", "C:\\x", "\\\\s\\x", *TEXTS)


def changed(files: dict[str, bytes], random: Random) -> dict[str, bytes]:
    """Files of which some have another content or name, or are missing."""
    found = dict(files)
    for _ in range(random.choice((1, 1, 2))):
        if not found:
            return found
        name = random.choice(list(found))
        match random.randrange(6):
            case 0:
                del found[name]
            case 1:
                found[random.choice(NAMES)] = found.pop(name)
            case 2:
                found[name] = torn(found[name], random)
            case _:
                mutate = json_lines if name.endswith(".jsonl") else json_document if name.endswith("json") else torn
                found[name] = mutate(found[name], random)
    return found


def tarball(files: dict[str, bytes], random: Random) -> bytes:
    """A gzipped tar of these, with members of odd kinds now and then."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name.encode("utf-8", "replace").decode())
            info.size = len(data)
            if random.random() < 0.05:
                info.type, info.linkname = (
                    random.choice(KINDS),
                    random.choice(NAMES).encode("utf-8", "replace").decode(),
                )
            tar.addfile(info, io.BytesIO(data))
    plain = raw.getvalue()
    if random.random() < 0.2:
        plain = torn(plain, random)
    packed = gzip.compress(plain, 1, mtime=0)
    return torn(packed, random) if random.random() < 0.15 else packed


@functools.cache
def opened(data: bytes) -> dict[str, bytes]:
    """The files of a sound archive."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar if each.isfile()}  # type: ignore[union-attr]


def zipped(files: dict[str, bytes], random: Random) -> bytes:
    """A ZIP file of these, as it should be or torn."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.encode("utf-8", "replace").decode().replace("\x00", "") or "x", data)
    return torn(raw.getvalue(), random) if random.random() < 0.3 else raw.getvalue()
