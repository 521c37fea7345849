#!/usr/bin/env python3
"""Make winready one file for each platform: it needs a Python, and brings everything else.

    onefile.py WHEEL DIR          a file for every platform, in DIR
    onefile.py --platform linux-x86_64 WHEEL DIR

A file holds the wheel and the locked wheels of others, as they are at the package index, for every Python that is
supported; nothing is packed anew, so that everybody can compare. It begins with a shell script that looks for such a
Python, goes on with an archive that Python runs, and unpacks itself once (``onefile_start.py``).
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sbom
import wheels
from wheels import Target

HERE = Path(__file__).resolve().parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True)
class Platform:
    """A kind of machine. ``suffix`` is how the file names of extension modules end there."""

    name: str
    system: str
    wheels: tuple[str, ...]
    machines: tuple[str, ...]
    suffix: str

    def target(self, python: str) -> Target:
        return Target(self.name, self.system, python, self.wheels)


def _glibc(machine: str) -> tuple[str, ...]:
    """Wheels for every Linux since 2018."""
    return (*(f"manylinux_2_{minor}_{machine}" for minor in range(28, 16, -1)), f"manylinux2014_{machine}")


# An Intel Mac has no wheel of cryptography any more.
PLATFORMS = (
    Platform("linux-x86_64", "linux", _glibc("x86_64"), ("x86_64",), ".cpython-{}-x86_64-linux-gnu.so"),
    Platform("linux-aarch64", "linux", _glibc("aarch64"), ("aarch64",), ".cpython-{}-aarch64-linux-gnu.so"),
    Platform(
        "macos-arm64", "darwin", ("macosx_11_0_arm64", "macosx_11_0_universal2"), ("arm64",), ".cpython-{}-darwin.so"
    ),
    Platform("windows-amd64", "win32", ("win_amd64",), ("amd64",), ".cp{}-win_amd64.pyd"),
)

# Python finds the archive from its end, and the shell reads no further than exit. What was cut off has another size.
SHELL = """#!/bin/sh
# winready {version} for {platform}: a shell script, and behind it what Python runs.
# WINREADY_PYTHON names the Python to take.
if size=$(wc -c < "$0" 2>/dev/null) && test $((size)) -ne {size}
then
  echo "error: $0 is not whole; get it again and compare it with SHA256SUMS" >&2
  exit 2
fi
for python in ${{WINREADY_PYTHON:-python3 {names} python}}
do
  if "$python" -ISc 'import sys; sys.exit(sys.version_info[:2] not in {versions})' </dev/null >/dev/null 2>&1
  then exec "$python" -I "$0" "$@"
  fi
done
echo "error: winready needs Python {told}, and none of these is one: ${{WINREADY_PYTHON:-python3 {names} python}}" >&2
echo "       install one, or name it: WINREADY_PYTHON=/path/to/python $0" >&2
exit 2
"""
# The launcher of Windows reads it.
SHEBANG = "#!/usr/bin/env python3\n"
SIZE = "@" * 12

# Every Python reads this, back to 2.7. Up to the isolation nothing may be imported that is not there from the start.
START = """import os
import sys

if sys.version_info[:2] not in {versions}:
    sys.stderr.write("error: winready needs Python {told}, and this is %d.%d: %s\\n" % (
        sys.version_info[0], sys.version_info[1], sys.executable))
    sys.exit(2)
archive = os.path.abspath(sys.argv[0])
if not sys.flags.isolated and os.name != "nt":
    os.execv(sys.executable, [sys.executable, "-I", archive] + sys.argv[1:])
from winready_start import main

main(archive)
"""


def told(versions: Sequence[str]) -> str:
    return f"{', '.join(versions[:-1])} or {versions[-1]}"


def make(wheel: Path, version: str, platform: Platform, epoch: int, target: Path) -> Path:
    """The file for a platform; the same wheel and lock give the same bytes."""
    held: dict[str, Path] = {wheel.name: wheel}
    lists: dict[str, list[tuple[str, str]]] = {}
    for python in PYTHONS:
        files = [wheel, *wheels.kept(platform.target(python))]
        held |= {file.name: file for file in files}
        lists[platform.target(python).abi] = [(file.name, wheels.digest(file)) for file in files]
    versions = str([tuple(map(int, python.split("."))) for python in PYTHONS])
    contents = {
        "VERSION": version,
        "PLATFORM": platform.name,
        "MACHINES": platform.machines,
        "SUFFIXES": {abi: platform.suffix.format(abi.removeprefix("cp")) for abi in lists},
        "WHEELS": lists,
    }
    members = {
        "__main__.py": START.format(versions=versions, told=told(PYTHONS)).encode(),
        "winready_contents.py": "".join(f"{name} = {value!r}\n" for name, value in contents.items()).encode(),
        "winready_start.py": (HERE / "onefile_start.py").read_bytes(),
        **{f"wheels/{name}": path.read_bytes() for name, path in sorted(held.items())},
    }
    names = " ".join(f"python{python}" for python in reversed(PYTHONS))
    head = SHEBANG
    if platform.system != "win32":
        head = SHELL.format(
            version=version, platform=platform.name, size=SIZE, names=names, versions=versions, told=told(PYTHONS)
        )
    raw = io.BytesIO(head.encode())
    raw.seek(0, io.SEEK_END)
    when = time.gmtime(max(epoch, 315532800))[:6]
    # Stored, not compressed: wheels are, and zlib could be a file of the folder that the user stands in.
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, when)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            archive.writestr(info, content)
    size = str(len(raw.getbuffer())).ljust(len(SIZE)).encode()
    target.write_bytes(raw.getvalue().replace(SIZE.encode(), size, 1))
    target.chmod(0o755)
    return target


def name_of(version: str, platform: Platform) -> str:
    return f"winready-{version}-{platform.name}.pyz"


def make_all(wheel: Path, version: str, epoch: int, folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """The files for all platforms, or for some."""
    chosen = [platform for platform in PLATFORMS if not only or platform.name in only]
    return [make(wheel, version, each, epoch, folder / name_of(version, each)) for each in chosen]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("wheel", type=Path, metavar="WHEEL")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--platform", action="append", choices=[platform.name for platform in PLATFORMS])
    parser.add_argument("--epoch", type=int, default=315532800, help="seconds since 1970 that its parts are dated with")
    given = parser.parse_args()
    found = re.fullmatch(r"winready-([^-]+)-py3-none-any\.whl", given.wheel.name)
    if not found or not given.wheel.is_file():
        parser.error(f"{given.wheel} is not a wheel of winready")
    try:
        given.folder.mkdir(parents=True, exist_ok=True)
        for path in make_all(given.wheel, found[1], given.epoch, given.folder, given.platform or ()):
            print(path)
    except (wheels.WheelError, sbom.SbomError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: the file cannot be written: {error.strerror}: {error.filename}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
