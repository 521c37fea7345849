"""The runs inside of an archive that ``sonobuoy retrieve`` wrote; messages of errors begin with a verb."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from winready.engine import journal
from winready.report import record, sonobuoy
from winready.spec.archives import ArchiveError, open_archive, shown

LARGEST = {record.NAME: journal.LARGEST, journal.NAME: journal.LARGEST, sonobuoy.NAME: 16 << 20}
"""What is read of a plugin's results, and how large it may be."""
LARGEST_ERROR = 1 << 20
LONGEST = 500
_WANTED = re.compile(r"plugins/([a-z0-9][a-z0-9.-]{0,252})/(?:results/[^/]+/([^/]+)|errors/[^/]+/[^/]+\.json)")


@dataclass
class Plugin:
    """What an archive holds of one plugin."""

    files: dict[str, bytes] = field(default_factory=dict)
    """``run.json`` and ``journal.jsonl``, if it was winready and came so far."""
    errors: list[str] = field(default_factory=list)
    """What Sonobuoy itself, or winready before its run, says went wrong."""


def looks_like_one(path: Path) -> bool:
    """Whether a file is compressed and no bundle of ours; everything else about it shows when it is read."""
    try:
        with path.open("rb") as file:
            head = file.read(200)
    except OSError:
        return False
    return head.startswith(b"\x1f\x8b") and b"winready-bundle sha256:" not in head


def read_archive(path: Path) -> dict[str, Plugin]:
    """The plugins of an archive that have a run or an error; raises `ArchiveError`."""
    plugins: dict[str, Plugin] = {}
    with open_archive(path) as archive:
        for name, member in archive:
            match = _WANTED.fullmatch(name)
            if match is None or member.isdir() or match[2] not in (None, *LARGEST):
                continue
            plugin, file = plugins.setdefault(match[1], Plugin()), match[2]
            data = archive.content(name, member, LARGEST_ERROR if file is None else LARGEST[file])
            if file is None:
                plugin.errors.append(f"Sonobuoy says of {match[1]}: {_error(data)}")
            elif file == sonobuoy.NAME:
                plugin.errors += [f"{match[1]} says: {words}" for words in _without_run(data)]
            elif file in plugin.files:
                raise ArchiveError(f"holds {shown(name)} twice, or results of several nodes")
            else:
                plugin.files[file] = data
    return plugins


def choose(plugins: dict[str, Plugin], name: str | None = None) -> dict[str, bytes]:
    """The files of the run that is meant; raises `ArchiveError`."""
    runs = sorted(key for key, plugin in plugins.items() if plugin.files)
    if name is None and len(runs) > 1:
        raise ArchiveError(f"holds runs of several plugins: {', '.join(runs)}")
    chosen = name or (runs[0] if runs else "")
    if chosen in runs:
        return plugins[chosen].files
    meant = {name: plugins.get(name, Plugin())} if name else plugins
    why = "".join(f"; {error}" for _, plugin in sorted(meant.items()) for error in plugin.errors)
    there = f"; there are runs of {', '.join(runs)}" if runs else ""
    of = f"of a plugin {name!r}" if name else f"of winready (plugins/*/results/*/{journal.NAME})"
    raise ArchiveError(f"holds no run {of}{why}{there}")


def _without_run(data: bytes) -> list[str]:
    """What a plugin says that came to no run: the tree is one leaf then, named after what is wrong."""
    try:
        document = yaml.safe_load(data)
        items = document["items"]
        return [str(items[0]["name"])[:LONGEST]] if len(items) == 1 and "items" not in items[0] else []
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return []


def _error(data: bytes) -> str:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return "an error that cannot be read"
    text = document.get("error") if isinstance(document, dict) else None
    return str(text if text is not None else document)[:LONGEST]
