"""The locked wheels for other machines than this one: uv finds them, a cache keeps them, the lock judges each use."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging import tags
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

import sbom
from real_programs import cache_root

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "locks" / "run.txt"
STORE = ROOT / "locks" / "store.txt"
"""What object stores need, on top."""
SYSTEMS = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}
TRIES, SILENCE = 3, 60.0


class WheelError(Exception):
    """A wheel cannot be had; the message names it."""


@dataclass(frozen=True)
class Target:
    """A Python on a platform. ``platforms`` are the names that wheels have for it, the best first."""

    name: str
    system: str
    python: str
    platforms: tuple[str, ...]

    @property
    def abi(self) -> str:
        return "cp" + self.python.replace(".", "")

    @property
    def markers(self) -> dict[str, str]:
        """What the lock's conditions ask for."""
        return {
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "sys_platform": self.system,
            "platform_system": SYSTEMS[self.system],
            "os_name": "nt" if self.system == "win32" else "posix",
            "extra": "",
        }

    def tags(self) -> Iterator[tags.Tag]:
        """What a wheel may be tagged with, the best first."""
        major, minor = map(int, self.python.split("."))
        yield from tags.cpython_tags((major, minor), [self.abi], self.platforms)
        yield from tags.compatible_tags((major, minor), self.abi, self.platforms)


def here() -> Target:
    """The Python that runs this."""
    major, minor = sys.version_info[:2]
    names = tuple(dict.fromkeys(tag.platform for tag in tags.sys_tags() if tag.platform != "any"))
    return Target("here", sys.platform, f"{major}.{minor}", names)


def requirements(target: Target, *, building: bool = False, lock: Path | None = None) -> list[str]:
    """The lines of the lock that a run needs there; with ``building`` also what makes the wheel of winready."""
    needed, lines = sbom.needed(ROOT), []
    for line in (lock or LOCK).read_text().replace("\\\n", " ").splitlines():
        text, _, hashes = line.partition(" --hash=")
        if line.startswith("#") or not hashes:
            continue
        requirement = Requirement(text)
        if not building and canonicalize_name(requirement.name) not in needed:
            continue
        if requirement.marker is None or requirement.marker.evaluate(target.markers):
            lines.append(f"{requirement.name}{requirement.specifier} --hash={hashes}\n")
    return lines


def addresses(lock: Path | None = None) -> dict[str, dict[str, str]]:
    """Of each locked package, where its wheels are by file name; the index is asked once for each lock."""
    lock = lock or LOCK
    home = cache_root() / "wheels"
    known = home / f"index-{digest(lock)[:16]}.toml"
    if not known.exists():
        home.mkdir(parents=True, exist_ok=True)
        uv = Path(sys.executable).parent / "uv"
        with tempfile.TemporaryDirectory(prefix=".new-", dir=home) as scratch:
            answer = Path(scratch, "pylock.toml")
            command = [
                str(uv),
                "pip",
                "compile",
                str(lock),
                "--universal",
                "--python-version",
                "3.11",
                "--no-deps",
                "--quiet",
            ]
            command += ["--no-header", "--format", "pylock.toml", "--output-file", str(answer)]
            done = subprocess.run(command, text=True, capture_output=True, check=False)
            if done.returncode != 0:
                words = (done.stderr.strip() or "uv said nothing").splitlines()
                raise WheelError(f"the package index cannot be asked for the locked packages: {words[-1].strip()}")
            os.replace(answer, known)
    packages = tomllib.loads(known.read_text())["packages"]
    return {
        canonicalize_name(package["name"]): {_file(wheel["url"]): wheel["url"] for wheel in package.get("wheels", [])}
        for package in packages
    }


def _file(url: str) -> str:
    return url.partition("#")[0].rpartition("/")[2]


def choose(names: Sequence[str], target: Target) -> str | None:
    """The best of these wheels for a target."""
    order = {tag: place for place, tag in enumerate(target.tags())}
    ranked = [(min(order.get(tag, len(order)) for tag in parse_wheel_filename(name)[3]), name) for name in names]
    fitting = [pair for pair in ranked if pair[0] < len(order)]
    return min(fitting)[1] if fitting else None


def kept(target: Target, *, building: bool = False, store: bool = False) -> list[Path]:
    """The wheels for a target from the cache, or fetched into it; what changed there is fetched again.

    With ``store``, also those for object stores.
    """
    found = _all_kept(target, addresses(), LOCK, requirements(target, building=building))
    if store:
        lines = requirements(target, building=True, lock=STORE)
        found |= _all_kept(target, addresses(STORE), STORE, lines)
    return sorted(found)


def _all_kept(target: Target, offered: dict[str, dict[str, str]], lock: Path, lines: list[str]) -> set[Path]:
    locked = sbom.read_lock(lock.read_text())
    wanted: list[tuple[str, str, tuple[str, ...]]] = []
    for line in lines:
        text = line.partition(" ")[0]
        name = canonicalize_name(text.partition("==")[0])
        file = choose(list(offered.get(name, ())), target)
        if file is None:
            raise WheelError(f"{text} has no wheel for {target.name} with Python {target.python}")
        wanted.append((file, offered[name][file], locked[name].hashes))
    with ThreadPoolExecutor(8) as threads:
        return set(threads.map(lambda each: _keep(*each), wanted))


def _keep(name: str, url: str, hashes: tuple[str, ...]) -> Path:
    path = cache_root() / "wheels" / name
    if path.is_file() and digest(path) in hashes:
        return path
    content = _get(name, url)
    if hashlib.sha256(content).hexdigest() not in hashes:
        raise WheelError(f"{name} is not what locks/run.txt has the digest of; it was changed")
    unfinished = path.with_name(f".new-{os.urandom(6).hex()}")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)
    return path


def _get(name: str, url: str) -> bytes:
    for left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(url, timeout=SILENCE) as answer:  # noqa: S310  an address of the index
                content: bytes = answer.read()
                return content
        except OSError as error:
            if not left:
                raise WheelError(f"{name} cannot be had: {error}") from None
    raise AssertionError(name)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
