#!/usr/bin/env python3
"""Make the container image of winready, without a container engine: an OCI layout for two architectures.

    image.py                      of the work tree, in build/image
    image.py --output DIR         somewhere else; DIR must not exist
    image.py lock                 take the newest Debian packages into locks/image.txt

The base is what Python needs of Debian and nothing else: no shell, no package manager. The packages are those of
``locks/image.txt``, the wheels those of ``locks/run.txt`` and ``locks/store.txt``; each is held to its digest. The same
commit gives the same bytes: nothing of the machine, the user or the time of the build is in them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import debian
import oci
import release
import sbom
import wheels
from oci import Tree

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "locks" / "image.txt"
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
LOADERS = {"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}
PYTHON = "python3.11"
NEWEST_GLIBC, OLDEST_GLIBC = 36, 17
LIBRARIES = (
    "libbz2-1.0",
    "libc6",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libsqlite3-0",
    "libssl3",
    "libuuid1",
    "zlib1g",
)
PACKAGES = (
    *LIBRARIES,
    PYTHON + "-minimal",
    f"lib{PYTHON}-minimal",
    f"lib{PYTHON}-stdlib",
    "ca-certificates",
    "base-files",
)
PLACE = "usr/lib/python3/dist-packages"
USER = 65532
LEFT_OUT = re.compile(
    rf"usr/lib/{PYTHON}/(lib2to3|pydoc_data|distutils|config-.*|curses|idlelib|tkinter|turtledemo|ensurepip|test)/"
    # Extension modules whose libraries are not there.
    r"|.*/lib-dynload/(_curses|_curses_panel|_dbm|_gdbm|readline|nis|_crypt|_tkinter|ossaudiodev|audioop)\."
    r"|.*/(gconv|audit|sasl2|engines-3|ossl-modules)/"
    r"|.*/lib(memusage|pcprofile|thread_db|nss_compat|nss_hesiod|SegFault)[.-].*"
)
SCRIPT = f"""#!/usr/bin/{PYTHON} -IB
import sys

from winready.__main__ import main

sys.exit(main())
"""
COMPILE = """
import pathlib, py_compile, sys
for name in sys.stdin.read().split():
    source = pathlib.Path(sys.argv[1], name)
    py_compile.compile(source, source.with_suffix(".pyc"), dfile="/" + name, doraise=True,
                       invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"""


class ImageError(Exception):
    """There is no image; the message says why."""


def base(packages: list[debian.Package]) -> Tree:
    """What Python needs of Debian, with a note of each package for those who look for known weaknesses."""
    tree = Tree(folders={"tmp": 0o1777, "proc": 0o755, "dev": 0o755, "sys": 0o755, "run": 0o755})
    authorities: dict[str, bytes] = {}
    for package in packages:
        file = debian.fetch(package)
        tree.files[f"var/lib/dpkg/status.d/{package.name}"] = (debian.control(file), 0o644)
        for member, content in debian.contents(file):
            path = _merged(member.name)
            if path.startswith("usr/share/ca-certificates/") and path.endswith(".crt"):
                authorities[path] = content
            elif _wanted(package.name, path):
                if member.issym():
                    tree.links[path] = member.linkname
                elif member.isreg():
                    tree.files[path] = (content, 0o755 if member.mode & 0o111 else 0o644)
    tree.links |= {"lib": "usr/lib", "bin": "usr/bin", "usr/bin/python3": PYTHON}
    if any(path.startswith("usr/lib64/") for path in (*tree.files, *tree.links)):
        tree.links["lib64"] = "usr/lib64"
    bundle = b"".join(content.rstrip(b"\n") + b"\n" for _, content in sorted(authorities.items()))
    texts = {
        "etc/passwd": f"root:x:0:0:root:/root:/none\nwinready:x:{USER}:{USER}:winready:/tmp:/none\n",
        "etc/group": f"root:x:0:\nwinready:x:{USER}:\n",
        "etc/nsswitch.conf": "hosts: files dns\n",
    }
    tree.files |= {path: (text.encode(), 0o644) for path, text in texts.items()}
    tree.files["etc/ssl/certs/ca-certificates.crt"] = (bundle, 0o644)
    return tree


def _merged(name: str) -> str:
    """A path of a package, with /lib and /bin where they are today."""
    path = name.removeprefix("./").rstrip("/")
    top = path.partition("/")[0]
    return f"usr/{path}" if top in ("lib", "lib64", "bin", "sbin") else path


def _wanted(package: str, path: str) -> bool:
    if path == f"usr/share/doc/{package}/copyright":
        return True
    if LEFT_OUT.match(path):
        return False
    if package == "base-files":
        return path in ("usr/lib/os-release", "etc/os-release", "etc/debian_version")
    if package in LIBRARIES:
        return bool(re.fullmatch(r"usr/lib(64)?/(.*/)?[^/]+\.so(\.[^/]*)?", path))
    return path.startswith((f"usr/lib/{PYTHON}/", f"usr/bin/{PYTHON}")) or path == f"etc/{PYTHON}/sitecustomize.py"


def interpreter(architecture: str) -> wheels.Target:
    """The image's own Python on an architecture."""
    machine = {value: key for key, value in MACHINES.items()}[architecture]
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)]
    return wheels.Target(f"linux/{architecture}", "linux", "3.11", (*tags, f"manylinux2014_{machine}"))


def installed(files: list[Path]) -> Tree:
    """The content of wheels where Debian's Python looks for packages."""
    tree = Tree()
    for wheel in files:
        with zipfile.ZipFile(wheel) as archive:
            for info in archive.infolist():
                path = PurePosixPath(info.filename)
                if info.is_dir() or path.is_absolute() or ".." in path.parts:
                    continue
                if path.parts[0].endswith(".data"):
                    if path.parts[1] not in ("purelib", "platlib"):
                        continue
                    path = PurePosixPath(*path.parts[2:])
                if path.name in ("RECORD", "INSTALLER", "direct_url.json") or path.suffix in (".pyx", ".pxd", ".c"):
                    continue
                tree.files[f"{PLACE}/{path}"] = (archive.read(info), 0o755 if path.suffix == ".so" else 0o644)
    return tree


class Compiler:
    """Adds bytecode to modules, made by the image's own interpreter: a read-only root could not keep any."""

    def __init__(self, interpreter: Path, architecture: str) -> None:
        libraries = interpreter / "usr" / "lib" / TRIPLETS[architecture]
        self._command = [str(libraries / LOADERS[architecture]), "--library-path", str(libraries)]
        # Not isolated: it would not look for its library where this one is.
        self._command += [str(interpreter / "usr" / "bin" / PYTHON), "-SBs", "-c", COMPILE]
        self._environment = {"PYTHONHOME": str(interpreter / "usr"), "PYTHONHASHSEED": "0"}
        self._made: dict[tuple[str, bytes], bytes] = {}

    def add(self, *trees: Tree) -> None:
        """Compile every module of these; bytecode is the same for all architectures, so each is compiled once."""
        sources = {path: tree for tree in trees for path in tree.files if path.endswith(".py")}
        self._compile({path: tree.files[path][0] for path, tree in sources.items()})
        for path, tree in sources.items():
            module = PurePosixPath(path)
            cached = module.parent / "__pycache__" / f"{module.stem}.cpython-311.pyc"
            tree.files[str(cached)] = (self._made[path, tree.files[path][0]], 0o644)

    def _compile(self, texts: dict[str, bytes]) -> None:
        fresh = {path: text for path, text in texts.items() if (path, text) not in self._made}
        with tempfile.TemporaryDirectory(prefix="winready-bytecode-") as folder:
            for path, text in fresh.items():
                place = Path(folder, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text)
            names, command = "\n".join(sorted(fresh)), [*self._command, folder]
            done = subprocess.run(
                command, input=names, env=self._environment, text=True, capture_output=True, check=False
            )
            if done.returncode != 0:
                words = (done.stderr.strip() or "it said nothing").splitlines()[-1]
                raise ImageError(f"the image's Python could not compile its modules: {words}")
            for path, text in fresh.items():
                self._made[path, text] = Path(folder, path).with_suffix(".pyc").read_bytes()


def unpack(tree: Tree, folder: Path) -> None:
    """Lay a tree out on disk."""
    for path in tree.all_folders():
        (folder / path).mkdir(parents=True, exist_ok=True)
    for path, target in tree.links.items():
        (folder / path).symlink_to(target)
    for path, (content, mode) in tree.files.items():
        (folder / path).write_bytes(content)
        (folder / path).chmod(mode)


def bill(packages: list[debian.Package], digests: dict[str, str]) -> list[dict[str, Any]]:
    """What the image adds to a release's bill of materials: itself, and what it has of Debian."""
    listed: dict[str, dict[str, Any]] = {}
    for package in packages:
        listed[package.purl] = {
            "type": "library",
            "bom-ref": package.purl,
            "name": package.name,
            "version": package.version,
            "purl": package.purl,
            "hashes": [{"alg": "SHA-256", "content": package.sha256}],
        }
    images = [
        {
            "type": "container",
            "bom-ref": f"pkg:oci/winready@{digest}",
            "name": name,
            "version": digest,
            "purl": f"pkg:oci/winready@{digest}",
        }
        for name, digest in digests.items()
    ]
    own = sbom.read_lock(wheels.LOCK.read_text())
    stores = [package for name, package in sbom.read_lock(wheels.STORE.read_text()).items() if name not in own]
    return [*images, *(listed[purl] for purl in sorted(listed)), *(sbom.component(package) for package in stores)]


def build(wheel: Path, version: str, epoch: int, target: Path) -> str:
    """The layout of an image of a wheel; returns its digest."""
    here = MACHINES.get(platform.machine(), "")
    packages = debian.read_lock(LOCK.read_text())
    if here not in TRIPLETS or sys.platform != "linux":
        raise ImageError("the image is made on Linux on amd64 or arm64: its own Python compiles what is in it")
    created = datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "winready",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.description": "Tells with proof whether a cluster is ready for Windows workloads",
    }
    config = {
        "User": f"{USER}:{USER}",
        "Env": [
            "PATH=/usr/bin",
            "HOME=/tmp",
            "LANG=C.UTF-8",
            "PYTHONDONTWRITEBYTECODE=1",
            "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
        ],
        "Entrypoint": ["/usr/bin/winready"],
        "WorkingDir": "/tmp",  # noqa: S108  of the image
        "Labels": labels,
    }
    own = installed([wheel])
    own.files["usr/bin/winready"] = (SCRIPT.encode(), 0o755)
    own.links["usr/bin/kubectl-winready"] = "winready"
    layout, images = oci.Layout(target), []
    with tempfile.TemporaryDirectory(prefix="winready-image-") as folder:
        scratch = Path(folder)
        bases = {name: base([each for each in packages if each.architecture == name]) for name in TRIPLETS}
        unpack(bases[here], scratch / "python")
        compiler = Compiler(scratch / "python", here)
        for architecture, system in bases.items():
            needed = installed(wheels.kept(interpreter(architecture), store=True))
            compiler.add(system, needed, own)
            layers = [oci.layer(tree, epoch) for tree in (system, needed, own)]
            images.append(layout.image(layers, architecture, config, created))
    return layout.finish(images, f"winready:{version}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("command", nargs="?", choices=["build", "lock"], default="build")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "image", metavar="DIR")
    arguments = parser.parse_args()
    try:
        if arguments.command == "lock":
            LOCK.write_text(debian.lock(PACKAGES, list(TRIPLETS)))
            return 0
        target: Path = arguments.output
        if target == ROOT / "build" / "image":
            shutil.rmtree(target, ignore_errors=True)
        elif target.exists():
            raise ImageError(f"{target} is there already; remove it, or name another folder")
        version = release.version_of(ROOT)
        epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or release.epoch_of(ROOT))
        with tempfile.TemporaryDirectory(prefix="winready-wheel-") as folder:
            (wheel,) = release.hatch(ROOT, Path(folder), epoch, "wheel")
            digest = build(wheel, version, epoch, target)
    except (ImageError, debian.DebianError, wheels.WheelError, release.Refused, sbom.SbomError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: the image cannot be written: {error.strerror}: {error.filename}", file=sys.stderr)
        return 1
    print(json.dumps({"image": f"winready:{version}", "digest": digest, "layout": str(target)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
