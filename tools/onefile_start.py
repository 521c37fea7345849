"""What a winready that is one file does first: unpack itself once into a folder of the user, and go on from there.

It travels inside that file and needs nothing but Python. The folder is an environment of its own (`pyvenv.cfg`), so
that processes which winready starts find it, too, without a variable that strangers' programs would inherit.
Nothing is run from a folder that others can write to.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import io
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NoReturn

from winready_contents import MACHINES, PLATFORM, SUFFIXES, VERSION, WHEELS

ABI = f"cp{sys.version_info[0]}{sys.version_info[1]}"
WINDOWS = os.name == "nt"
SCRIPT = "import sys\n\nfrom winready.__main__ import main\n\nsys.exit(main())\n"
UNFINISHED = ".new-"
ELSEWHERE = "set XDG_CACHE_HOME to a folder of yours, or remove it"


class Refused(Exception):
    """It does not start here; the message says why, the remedy what to do."""

    def __init__(self, message: str, remedy: str = "", code: int = 2) -> None:
        super().__init__(message)
        self.remedy, self.code = remedy, code


def check_machine() -> None:
    """The extension modules inside are for one kind of machine and of Python."""
    machine = os.environ.get("PROCESSOR_ARCHITECTURE", "") if WINDOWS else os.uname().machine
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0] if importlib.machinery.EXTENSION_SUFFIXES else ""
    if suffix != SUFFIXES[ABI] or machine.lower() not in MACHINES:
        raise Refused(
            f"this file is winready for {PLATFORM}, and {sys.executable} is a Python for another machine "
            f"({machine or 'unknown'}, {suffix or 'no extension modules'})",
            "take the file for this machine, or install winready with pipx",
        )


def home() -> Path:
    """Where files unpack themselves, made with rights for the user alone; refused where others can write."""
    if WINDOWS:
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
        place = Path(base, "winready", "one-file")
        place.mkdir(parents=True, exist_ok=True)
        return place
    base = os.environ.get("XDG_CACHE_HOME") or ""
    resolved = Path(os.path.realpath(base if os.path.isabs(base) else os.path.expanduser("~/.cache")))
    ours = (resolved / "winready", resolved / "winready" / "one-file")
    resolved.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (*reversed(resolved.parents), resolved):
        check_way(folder)
    for folder in ours:
        folder.mkdir(mode=0o700, exist_ok=True)
        check_own(folder)
    return ours[-1]


def check_way(folder: Path) -> None:
    """Whoever can write to a folder on the way can put another one in our place."""
    found = folder.stat()
    if found.st_uid not in (0, os.geteuid()):
        raise Refused(f"{folder} belongs to another user (uid {found.st_uid}): nothing is run from there", ELSEWHERE)
    # A group of the user's own has the user's number.
    others = stat.S_IWOTH | (0 if found.st_gid in (0, found.st_uid) else stat.S_IWGRP)
    if found.st_mode & others and not found.st_mode & stat.S_ISVTX:
        raise Refused(
            f"others can write to {folder}: nothing is run from there", f"chmod go-w {folder}, or {ELSEWHERE}"
        )


def check_own(folder: Path) -> None:
    """A folder of ours is a folder, the user's, and nobody else writes to it."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise Refused(f"{folder} is not a folder: nothing is run from there", ELSEWHERE)
    check_way(folder)
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
        raise Refused(f"others can write to {folder}: nothing is run from there", f"remove it: rm -r {folder}")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process unpacks at a time; what is unfinished then was left by one that was killed."""
    if WINDOWS:
        yield
        return
    import fcntl

    with open(os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(UNFINISHED + "*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def unpack(archive: str, python: str, folder: Path) -> None:
    """Lay the environment out in an empty folder."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    programs, packages = folder / "bin", folder / "lib" / f"python{version}" / "site-packages"
    if WINDOWS:
        import venv

        venv.EnvBuilder(symlinks=False, with_pip=False).create(folder)
        programs, packages = folder / "Scripts", folder / "Lib" / "site-packages"
    else:
        for place in (programs, packages):
            place.mkdir(parents=True)
        (programs / "python").symlink_to(python)
        lines = (f"home = {os.path.dirname(python)}", "include-system-site-packages = false", f"version = {version}")
        (folder / "pyvenv.cfg").write_text("".join(f"{line}\n" for line in lines))
    (programs / "winready").write_text(SCRIPT)
    with zipfile.ZipFile(archive) as outer:
        for name, digest in WHEELS[ABI]:
            content = outer.read(f"wheels/{name}")
            if hashlib.sha256(content).hexdigest() != digest:
                raise Refused(f"{archive} is damaged: {name} in it is not what it was", "get the file again")
            with zipfile.ZipFile(io.BytesIO(content)) as wheel:
                unpack_wheel(wheel, packages)


def unpack_wheel(wheel: zipfile.ZipFile, packages: Path) -> None:
    for info in wheel.infolist():
        path = PurePosixPath(info.filename)
        if path.parts[0].endswith(".data"):
            if path.parts[1] not in ("purelib", "platlib"):
                continue
            path = PurePosixPath(*path.parts[2:])
        if info.is_dir() or path.is_absolute() or ".." in path.parts:
            continue
        target = packages / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(wheel.read(info))


def installed(archive: str) -> Path:
    """The environment of this file for this Python, made if it is not there yet."""
    python = os.path.abspath(getattr(sys, "_base_executable", "") or sys.executable)
    known = hashlib.sha256(repr((VERSION, python, sys.version, sorted(WHEELS[ABI]))).encode()).hexdigest()[:16]
    root = home()
    place = root / f"{VERSION}-{ABI}-{known}"
    if not os.path.lexists(place):
        with alone(root):
            if not os.path.lexists(place):
                make(archive, python, root, place)
    if not WINDOWS:
        check_own(place)
    return place


def make(archive: str, python: str, root: Path, place: Path) -> None:
    """Unpack beside the place and move there in one step: an environment is whole or not there."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"winready {VERSION} unpacks itself once, to {place}", file=sys.stderr, flush=True)
    mask = os.umask(0o077)
    scratch = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=root))
    try:
        unpack(archive, python, scratch)
        os.rename(scratch, place)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        if not (WINDOWS and place.is_dir()):  # somebody else was faster
            raise
    finally:
        os.umask(mask)


def go_on(command: list[str]) -> NoReturn:
    """Become another program; Windows cannot, and waits for it."""
    if not WINDOWS:
        os.execv(command[0], command)  # noqa: S606  winready itself
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(subprocess.call(command))


def main(archive: str) -> NoReturn:
    """Start winready with the arguments of this process."""
    try:
        check_machine()
        place = installed(archive)
    except Refused as error:
        end(str(error), error.remedy, error.code)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        end(f"winready cannot unpack itself: {error.strerror or error}{where}", ELSEWHERE.partition(",")[0], 3)
    except zipfile.BadZipFile:
        end(f"{archive} is damaged", "get the file again")
    programs = place / ("Scripts" if WINDOWS else "bin")
    python = programs / ("python.exe" if WINDOWS else "python")
    go_on([str(python), "-I", str(programs / "winready"), *sys.argv[1:]])


def end(message: str, remedy: str, code: int = 2) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    if remedy:
        print(f"       {remedy}", file=sys.stderr)
    sys.exit(code)
