#!/usr/bin/env python3
"""Build the real Kubernetes programs from their Go modules and cache them by version.

Release archives cannot be had everywhere; Go modules can. For each Kubernetes version a
scratch module outside the work tree requires ``k8s.io/kubernetes`` and pins its staging
modules, exactly as the upstream ``go.mod`` does. Finished programs are moved into the cache
in one step, so an interrupted build leaves nothing half-made.

    real_programs.py --kubernetes 1.36.3 kubectl etcd     prints the folder that holds them
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

KUBERNETES_PACKAGES = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "e2e.test": "k8s.io/kubernetes/test/e2e",
    "agnhost": "k8s.io/kubernetes/test/images/agnhost",
}
OTHER_MODULES = {  # program: module, pinned version, variable that carries the version
    "etcd": ("go.etcd.io/etcd/server/v3", "v3.6.8", None),
    "sonobuoy": (
        "github.com/vmware-tanzu/sonobuoy",
        "v0.57.3",
        "github.com/vmware-tanzu/sonobuoy/pkg/buildinfo.Version",
    ),
}
PROGRAMS = [*KUBERNETES_PACKAGES, *OTHER_MODULES]


class BuildError(Exception):
    """A program could not be built; the message says which and what to do."""


def cache_root() -> Path:
    """The folder of all cached programs, outside any work tree."""
    if root := os.environ.get("WINREADY_CACHE"):
        return Path(root)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "winready"


def go(*args: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Run the Go tool and return its output."""
    full_env = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod -buildvcs=false", **(env or {})}
    result = subprocess.run(["go", *args], cwd=cwd, env=full_env, text=True, capture_output=True, check=False)
    if result.returncode != 0:
        tail = "\n".join((result.stderr or result.stdout).strip().splitlines()[-15:])
        raise BuildError(f"go {' '.join(args[:3])} failed in {cwd}:\n{tail}")
    return result.stdout


def staging_modules(go_mod: str, version: str, scratch: Path) -> list[str]:
    """The modules that Kubernetes keeps in its own tree; ``sample-*`` are not published for every release."""
    names = re.findall(r"^\s*(k8s\.io/\S+) => \./staging/src/", go_mod, re.MULTILINE)
    return [name for name in names if "/sample-" not in name or published(name, version, scratch)]


def published(module: str, version: str, scratch: Path) -> bool:
    try:
        go("mod", "download", f"{module}@{version}", cwd=scratch)
    except BuildError:
        return False
    return True


def kubernetes_module(scratch: Path, version: str) -> None:
    """Write the scratch module from which the programs of one Kubernetes version are built."""
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / "go.mod").write_text("module winready.invalid/real\n")
    found = json.loads(go("mod", "download", "-json", f"k8s.io/kubernetes@v{version}", cwd=scratch))
    upstream = Path(found["Dir"])
    upstream_mod = (upstream / "go.mod").read_text()
    header = re.findall(r"^(?:go|godebug) [^(\n]+$|^godebug \([^)]*\)", upstream_mod, re.MULTILINE)
    staging_version = "v0." + version.split(".", 1)[1]
    staging = staging_modules(upstream_mod, staging_version, scratch)
    replaces = [f"replace {name} => {name} {staging_version}" for name in staging]
    require = f"require k8s.io/kubernetes v{version}"
    (scratch / "go.mod").write_text("\n".join(["module winready.invalid/real", *header, require, *replaces, ""]))
    packages = dict(KUBERNETES_PACKAGES)
    if "k8s.io/sample-apiserver" not in staging:
        del packages["e2e.test"]  # it alone imports that module
    imports = "".join(f'import _ "{package}"\n' for package in packages.values())
    (scratch / "tools.go").write_text(f"//go:build tools\n\npackage tools\n\n{imports}")
    shutil.copyfile(upstream / "go.sum", scratch / "go.sum")
    (scratch / "go.sum").chmod(0o644)
    go("mod", "tidy", cwd=scratch)


def kubernetes_ldflags(version: str) -> str:
    """Linker flags that make the programs state their version, which version rules rely on."""
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(["-s -w", *(f"-X {pkg}.{name}={value}" for pkg in packages for name, value in values.items())])


def build_kubernetes(program: str, version: str, scratch: Path, target: Path) -> None:
    if not (scratch / "ready").exists():
        kubernetes_module(scratch, version)
        (scratch / "ready").touch()
    package = KUBERNETES_PACKAGES[program]
    command = ["test", "-c"] if program == "e2e.test" else ["build"]
    flags = ["-o", str(target), "-ldflags", kubernetes_ldflags(version)]
    go(*command, *flags, package, cwd=scratch, env={"CGO_ENABLED": "0"})


def other(program: str, target: Path) -> None:
    """Give a Kubernetes version a program that has versions of its own; it is built once for all of them."""
    module, version, variable = OTHER_MODULES[program]
    home = cache_root() / program / version
    with one_builder(home):
        built = home / program
        if not built.exists():
            announce(program, version)
            unfinished = home / f"{program}.part"
            build_other(module, version, variable, home / "src", unfinished)
            unfinished.rename(built)
    os.link(built, target)


def build_other(module: str, version: str, variable: str | None, scratch: Path, target: Path) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / "go.mod").write_text(f"module winready.invalid/real\n\nrequire {module} {version}\n")
    (scratch / "tools.go").write_text(f'//go:build tools\n\npackage tools\n\nimport _ "{module}"\n')
    go("mod", "tidy", cwd=scratch)
    ldflags = f"-s -w -X {variable}={version}" if variable else "-s -w"
    go("build", "-o", str(target), "-ldflags", ldflags, module, cwd=scratch, env={"CGO_ENABLED": "0"})


def announce(program: str, version: str) -> None:
    """Say why it takes a while."""
    print(f"building {program} ({version}); the next time it is cached", file=sys.stderr, flush=True)


@contextlib.contextmanager
def one_builder(folder: Path) -> Iterator[None]:
    """Keep two builds of the same version from working in one scratch module."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure(version: str, programs: list[str]) -> Path:
    """Build whatever of ``programs`` is not cached yet, and return the folder that holds them all."""
    home = cache_root() / "kubernetes" / f"v{version}"
    missing = [program for program in programs if not (home / "bin" / program).exists()]
    if not missing:
        return home / "bin"
    if shutil.which("go") is None:
        raise BuildError("the Go toolchain is not on PATH; it is needed to build " + ", ".join(missing))
    with one_builder(home):
        (home / "bin").mkdir(exist_ok=True)
        for program in missing:
            target = home / "bin" / program
            if target.exists():
                continue
            unfinished = home / f"{program}.part"
            unfinished.unlink(missing_ok=True)
            if program in OTHER_MODULES:
                other(program, unfinished)
            else:
                announce(program, f"Kubernetes {version}")
                build_kubernetes(program, version, home / "src" / "kubernetes", unfinished)
            unfinished.rename(target)
    return home / "bin"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kubernetes", default="1.36.3", metavar="V", help="Kubernetes version, such as 1.36.3")
    parser.add_argument("programs", nargs="+", choices=PROGRAMS, metavar="PROGRAM", help=", ".join(PROGRAMS))
    args = parser.parse_args()
    if not re.fullmatch(r"1\.\d+\.\d+", args.kubernetes):
        parser.error(f"{args.kubernetes!r} is not a Kubernetes version; write it like 1.36.3")
    try:
        print(ensure(args.kubernetes, args.programs))
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
