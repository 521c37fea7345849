"""An e2e.test on this machine: what version it is, what specs it has, and whether it fits a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from winready.spec.versions import Version, said_version
from winready.upstream.listing import Listing, ListingError, parse_listing

ASK_SECONDS = 120.0
LISTS_ITSELF = Version(1, 29)
GINKGO_2 = Version(1, 25)


class BinaryError(Exception):
    """An e2e.test that cannot be used; ``remedy`` says what to do about it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message, self.remedy = message, remedy


@dataclass(frozen=True)
class Binary:
    """An e2e.test that answered."""

    path: Path
    full_version: str

    @property
    def version(self) -> Version:
        """Its Kubernetes minor version."""
        return Version.parse(self.full_version)


async def inspect(path: Path) -> Binary:
    """Ask a program for its version."""
    path = _program(path)
    code, output = await _ask(path, ["--version"])
    version = said_version(output)
    if code != 0 or version is None:
        said = output.strip().splitlines()[-1][:200] if output.strip() else "nothing"
        raise BinaryError(f"{path} is not an e2e.test: asked for its version, it said {said!r}")
    return Binary(path, version)


def _program(path: Path) -> Path:
    if not path.is_file():
        raise BinaryError(f"there is no file {path}", "'winready upstream fetch' gets e2e.test")
    if not os.access(path, os.X_OK):
        raise BinaryError(f"{path} cannot be executed", f"chmod +x {path}")
    # It is going to run in folders of its own.
    return path.absolute()


async def list_specs(binary: Binary) -> Listing:
    """Every spec of an e2e.test; no cluster is needed or asked."""
    if binary.version >= LISTS_ITSELF:
        code, output = await _ask(binary.path, ["--list-tests"])
        data = output.encode()
    else:
        with tempfile.TemporaryDirectory(prefix="winready-") as folder:
            dump = Path(folder) / "specs.json"
            words = ("dry-run", "no-color") if binary.version >= GINKGO_2 else ("dryRun", "noColor")
            options = [*(f"--ginkgo.{word}" for word in words), "--ginkgo.focus=.", f"--spec-dump={dump}"]
            code, output = await _ask(binary.path, options)
            data = dump.read_bytes() if dump.exists() else b""
    if code != 0:
        raise BinaryError(f"{binary.path} could not list its specs: {output.strip()[-500:]}")
    try:
        return parse_listing(data, str(binary.path))
    except ListingError as error:
        raise BinaryError(str(error)) from None


def misfit(binary: Binary, cluster: Version) -> str:
    """Why an e2e.test must not judge a cluster; empty when it may: the same minor, or one older."""
    mine = binary.version
    if mine.major == cluster.major and cluster.minor - 1 <= mine.minor <= cluster.minor:
        return ""
    age = "newer" if mine > cluster else "more than one minor older"
    return (
        f"e2e.test {binary.full_version} is {age} than the cluster ({cluster}); its tests may ask for what is not there"
    )


async def _ask(path: Path, arguments: list[str]) -> tuple[int, str]:
    # KUBECONFIG is the default of a flag; without it nothing can be contacted by accident.
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
        )
    except OSError as error:
        raise BinaryError(f"{path} does not start: {error.strerror}", "it must be a program for this machine") from None
    try:
        async with asyncio.timeout(ASK_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        raise BinaryError(f"{path} {' '.join(arguments)} did not end within {ASK_SECONDS:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode or 0, output.decode("utf-8", errors="replace")
