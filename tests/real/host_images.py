"""Root file systems for the host node, put together from what is on this machine: Sonobuoy, and winready as it is here.

Nothing of this is an image for anybody else: `make release` makes that. It is enough to run the very code under test in
a pod, without root rights and on a root file system that is read-only.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, files, requires
from pathlib import Path

import winready

PLACE = "opt/python"
NOT_NEEDED = (
    "test",
    "tests",
    "__pycache__",
    "ensurepip",
    "idlelib",
    "tkinter",
    "site-packages",
    "config-*",
    "turtledemo",
)


def sonobuoy_root(program: Path, folder: Path) -> Path:
    """The image of Sonobuoy: one program."""
    _skeleton(folder)
    shutil.copy2(program, folder / "sonobuoy")
    return folder


def winready_root(folder: Path) -> Path:
    """The image of winready: this Python, what winready imports, and winready."""
    _skeleton(folder)
    python = folder / PLACE
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = python / "lib" / version
    (python / "bin").mkdir(parents=True)
    executable = Path(sys.base_prefix) / "bin" / version
    shutil.copy2(executable, python / "bin" / version)
    shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=shutil.ignore_patterns(*NOT_NEEDED))
    site = library / "site-packages"
    for source in sorted(_dependencies("winready")):
        (site / source.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy2(Path(sysconfig.get_path("purelib")) / source, site / source)
    shutil.copytree(Path(winready.__file__).parent, site / "winready", ignore=shutil.ignore_patterns("__pycache__"))
    for library_file in _linked([python / "bin" / version, *library.rglob("*.so")]):
        target = folder / str(library_file).lstrip("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library_file, target)
    start = folder / "usr" / "local" / "bin" / "winready"
    start.parent.mkdir(parents=True)
    start.write_text(f"#!/{PLACE}/bin/{version} -I\nfrom winready.__main__ import main\n\nmain()\n")
    start.chmod(0o755)
    # As an image does: where nobody may write bytecode, half of every start would be compiling.
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-s", str(folder), library], check=False)
    return folder


def _skeleton(folder: Path) -> None:
    for name in ("etc", "tmp", "var/run", "proc", "dev"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    (folder / "etc" / "passwd").write_text("root:x:0:0::/:/bin/false\nnobody:x:65532:65532::/tmp:/bin/false\n")
    (folder / "etc" / "group").write_text("root:x:0:\nnobody:x:65532:\n")


def _dependencies(name: str, seen: frozenset[str] = frozenset()) -> set[Path]:
    """The files of all that a package needs, below the folder that packages are in."""
    found: set[Path] = set()
    for line in requires(name) or ():
        needed = re.split(r"[ ;<>=!~\[(]", line, maxsplit=1)[0]
        if needed in seen or "extra ==" in line:
            continue
        with contextlib.suppress(PackageNotFoundError):
            own = [Path(file) for file in files(needed) or () if ".." not in file.parts and file.suffix != ".pyc"]
            found |= {*own, *_dependencies(needed, seen | {needed})}
    return found


def _linked(programs: list[Path]) -> set[Path]:
    """The shared libraries that these need, as the loader would find them."""
    said = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    return {Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", said, re.MULTILINE)}
