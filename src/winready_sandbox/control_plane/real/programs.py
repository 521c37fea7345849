"""The programs of a real control plane: found in a folder, and asked what they are before anything is started."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path

from winready_sandbox.state import StateError
from winready_sandbox.versions import minor_of_build

ETCD, API_SERVER = "etcd", "kube-apiserver"
CONTROLLER_MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"
NAMES = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
_VERSION = dict.fromkeys(NAMES, r"Kubernetes v(\d+\.\d+\.\d+\S*)") | {ETCD: r"etcd Version: (\d+\.\d+\.\d+\S*)"}
_OLDEST_ETCD = (3, 5)
_ANSWER_TIMEOUT = 20.0
_WHERE = "--control-plane (or KUBEBUILDER_ASSETS); leave it out for the embedded control plane"


@dataclass(frozen=True)
class Programs:
    """A complete set of one Kubernetes version."""

    folder: Path
    version: str
    """Of Kubernetes, such as ``v1.36.3``."""

    def __getitem__(self, name: str) -> Path:
        return self.folder / name

    @property
    def minor(self) -> int:
        """The minor version of Kubernetes."""
        return minor_of_build(self.version)


async def find(folder: Path) -> Programs:
    """The programs in a folder; raises `StateError` unless all are there, run, and are of one version."""
    _check_presence(folder)
    # All of them are heard to the end: a process that nobody waits for would be left behind.
    answers = await asyncio.gather(*(_version(folder / name) for name in NAMES), return_exceptions=True)
    versions: dict[str, str] = {}
    for name, answer in zip(NAMES, answers, strict=True):
        if isinstance(answer, BaseException):
            raise answer
        versions[name] = answer
    etcd = versions.pop(ETCD)
    if tuple(int(part) for part in etcd.split(".")[:2]) < _OLDEST_ETCD:
        raise StateError(f"{folder / ETCD} is etcd {etcd}; take 3.5 or later")
    if len(set(versions.values())) > 1:
        found = ", ".join(f"{name} {version}" for name, version in versions.items())
        raise StateError(f"the programs in {folder} are of different versions ({found}); take them from one release")
    return Programs(folder, "v" + versions[API_SERVER])


def _check_presence(folder: Path) -> None:
    if not folder.is_dir():
        raise StateError(f"{folder} is not a folder; give the one that holds {', '.join(NAMES)} with {_WHERE}")
    missing = [name for name in NAMES if not (folder / name).is_file()]
    if missing:
        raise StateError(
            f"{folder} lacks {', '.join(missing)}; a control plane needs {', '.join(NAMES)} in one folder, "
            f"named with {_WHERE}"
        )


async def _version(program: Path) -> str:
    """What a program says that it is."""
    if not os.access(program, os.X_OK):
        raise StateError(f"{program} is not executable; make it so with 'chmod +x {program}'")
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            program, "--version", stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
    except OSError as error:
        raise StateError(f"{program} cannot be run here ({error.strerror}); is it for this kind of machine?") from None
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _ANSWER_TIMEOUT)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise StateError(f"{program} does not answer to --version; it is not the program it is named after") from None
    text = output.decode(errors="replace")
    match = re.search(_VERSION[program.name], text)
    if match is None:
        said = " ".join(text.split())[:200] or "nothing"
        raise StateError(f"{program} is not {program.name}: asked for its --version it says {said!r}")
    return match[1]
