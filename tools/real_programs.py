#!/usr/bin/env python3
"""Build the real Kubernetes programs from their Go modules and cache them by version.

Release archives cannot be had everywhere; Go modules can. For each Kubernetes version a
scratch module outside the work tree requires ``k8s.io/kubernetes`` and pins its staging
modules, exactly as the upstream ``go.mod`` does. Finished programs are moved into the cache
in one step, so an interrupted build leaves nothing half-made. Names that end in ``.exe`` are
programs for Windows. Stand-ins are programs of our own that are built against the same modules
and cached by the digest of their sources.

    real_programs.py --kubernetes 1.36.3 kubectl etcd     prints the folder that holds them
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

KUBERNETES_PACKAGES = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "e2e.test": "k8s.io/kubernetes/test/e2e",
    "agnhost": "k8s.io/kubernetes/test/images/agnhost",
}
# These have a scratch module of their own: one that is ready would need another tidy for each further import.
WORKER_PACKAGES = {
    "kubeadm": "k8s.io/kubernetes/cmd/kubeadm",
    "kubeadm.exe": "k8s.io/kubernetes/cmd/kubeadm",
    "agnhost.exe": "k8s.io/kubernetes/test/images/agnhost",
    "kubelet.exe": "k8s.io/kubernetes/cmd/kubelet",
    "kube-proxy.exe": "k8s.io/kubernetes/cmd/kube-proxy",
    "kube-log-runner.exe": "k8s.io/component-base/logs/kube-log-runner",
}
STAND_IN_PACKAGES = (  # what stand-ins import and no program above does
    "github.com/Microsoft/go-winio",
    "google.golang.org/grpc",
    "k8s.io/cri-api/pkg/apis/runtime/v1",
)


class Module(NamedTuple):
    """A program that has versions of its own."""

    name: str
    version: str
    package: str = ""  # below the module; empty if its root is the program
    variable: str = ""  # carries the version
    beside: str = ""  # a module that must have the same version


OTHER_MODULES = {
    "etcd": Module("go.etcd.io/etcd/server/v3", "v3.6.8"),
    "sonobuoy": Module(
        "github.com/vmware-tanzu/sonobuoy",
        "v0.57.5",
        variable="github.com/vmware-tanzu/sonobuoy/pkg/buildinfo.Version",
    ),
    "helm": Module("helm.sh/helm/v3", "v3.22.0", "/cmd/helm", variable="helm.sh/helm/v3/internal/version.version"),
    "kustomize": Module("sigs.k8s.io/kustomize/kustomize/v5", "v5.8.1"),
    "krew": Module("sigs.k8s.io/krew", "v0.5.0", "/cmd/krew"),
    "validate-krew-manifest": Module("sigs.k8s.io/krew", "v0.5.0", "/cmd/validate-krew-manifest"),
    "versitygw": Module("github.com/versity/versitygw", "v1.8.0", "/cmd/versitygw"),
    "host-local.exe": Module("github.com/containernetworking/plugins", "v1.8.0", "/plugins/ipam/host-local"),
}
CLUSTER_API = ("sigs.k8s.io/cluster-api", "v1.13.4")
OTHER_MODULES |= {
    "capi-core": Module(*CLUSTER_API),
    "capi-bootstrap": Module(*CLUSTER_API, "/bootstrap/kubeadm"),
    "capi-control-plane": Module(*CLUSTER_API, "/controlplane/kubeadm"),
    # Of what stands in for machines only the part that keeps them in memory is used.
    "capi-in-memory": Module(f"{CLUSTER_API[0]}/test", CLUSTER_API[1], "/infrastructure/docker", beside=CLUSTER_API[0]),
}
MODULE_FOLDERS = {  # folder: version, and for each folder in it the module and the path in the module
    "capi-config": (
        CLUSTER_API[1],
        {
            "capi-core": (CLUSTER_API[0], "config"),
            "capi-bootstrap": (CLUSTER_API[0], "bootstrap/kubeadm/config"),
            "capi-control-plane": (CLUSTER_API[0], "controlplane/kubeadm/config"),
            "capi-in-memory": (f"{CLUSTER_API[0]}/test", "infrastructure/docker/config"),
            "templates": (f"{CLUSTER_API[0]}/test", "infrastructure/docker/templates"),
        },
    ),
}
MODULE_FILES = {  # file: module, pinned version, path in the module
    "gmsa-crd.yaml": ("github.com/kubernetes-sigs/windows-gmsa", "v0.13.0", "charts/gmsa/crds/crds.yaml"),
}
GIVEN = {  # program: why it is not built here
    "gmsa-webhook": "the module of the gMSA admission webhook has no released version, and the module proxy refused "
    "its commits; v0.13.0 is the one that the tests know",
}
PROGRAMS = [*KUBERNETES_PACKAGES, *WORKER_PACKAGES, *OTHER_MODULES, *MODULE_FILES, *MODULE_FOLDERS, *GIVEN]


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


def target_system(program: str) -> dict[str, str]:
    """The environment in which Go builds for the system that the program's name tells."""
    windows = {"GOOS": "windows", "GOARCH": "amd64"} if program.endswith(".exe") else {}
    return {"CGO_ENABLED": "0", **windows}


def kubernetes_module(scratch: Path, version: str, packages: Iterable[str]) -> None:
    """Write the scratch module from which programs of one Kubernetes version are built."""
    if (scratch / "ready").exists():
        return
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
    wanted = set(packages)
    if "k8s.io/sample-apiserver" not in staging:
        wanted.discard(KUBERNETES_PACKAGES["e2e.test"])  # it alone imports that module
    imports = "".join(f'import _ "{package}"\n' for package in sorted(wanted))
    (scratch / "tools.go").write_text(f"//go:build tools\n\npackage tools\n\n{imports}")
    shutil.copyfile(upstream / "go.sum", scratch / "go.sum")
    (scratch / "go.sum").chmod(0o644)
    go("mod", "tidy", cwd=scratch)
    (scratch / "ready").touch()


def worker_module(home: Path, version: str) -> Path:
    scratch = home / "src" / "workers"
    kubernetes_module(scratch, version, (*WORKER_PACKAGES.values(), *STAND_IN_PACKAGES))
    return scratch


def kubernetes_ldflags(version: str) -> str:
    """Linker flags that make the programs state their version, which version rules rely on."""
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(["-s -w", *(f"-X {pkg}.{name}={value}" for pkg in packages for name, value in values.items())])


def build_kubernetes(program: str, version: str, home: Path, target: Path) -> None:
    if program in WORKER_PACKAGES:
        scratch, package = worker_module(home, version), WORKER_PACKAGES[program]
    else:
        scratch, package = home / "src" / "kubernetes", KUBERNETES_PACKAGES[program]
        kubernetes_module(scratch, version, KUBERNETES_PACKAGES.values())
    command = ["test", "-c"] if program == "e2e.test" else ["build"]
    flags = ["-o", str(target), "-ldflags", kubernetes_ldflags(version)]
    go(*command, *flags, package, cwd=scratch, env=target_system(program))


def stand_ins(version: str, sources: Path) -> Path:
    """Build each folder below ``sources`` as a program for Windows, and return the folder that holds them."""
    home = cache_root() / "kubernetes" / f"v{version}"
    built = home / "stand-ins" / digest_of(sources)
    if built.exists():
        return built
    need_go("the stand-ins")
    with one_builder(home):
        if not built.exists():
            announce("stand-ins", f"Kubernetes {version}")
            scratch, unfinished = worker_module(home, version), home / "stand-ins.part"
            for leftover in (unfinished, scratch / "stand-ins"):
                shutil.rmtree(leftover, ignore_errors=True)
            shutil.copytree(sources, scratch / "stand-ins")
            for folder in sorted(path for path in sources.iterdir() if path.is_dir()):
                program = f"{folder.name}.exe"
                flags = ["-o", str(unfinished / program), "-ldflags", kubernetes_ldflags(version)]
                go("build", *flags, f"./stand-ins/{folder.name}", cwd=scratch, env=target_system(program))
            built.parent.mkdir(exist_ok=True)
            unfinished.rename(built)
    return built


def digest_of(sources: Path) -> str:
    """What the cache recognises a folder of sources by."""
    digest = hashlib.sha256()
    for path in sorted(sources.rglob("*.go")):
        digest.update(f"{path.relative_to(sources)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def other(program: str, target: Path) -> None:
    """Give a Kubernetes version a program that has versions of its own; it is built once for all of them."""
    module = OTHER_MODULES[program]
    home = cache_root() / program / module.version
    with one_builder(home):
        built = home / program
        if not built.exists():
            announce(program, module.version)
            unfinished = home / f"{program}.part"
            build_other(program, module, home / "src", unfinished)
            unfinished.rename(built)
    os.link(built, target)


def build_other(program: str, module: Module, scratch: Path, target: Path) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    package = module.name + module.package
    # From Go 1.17 on only what is really needed of others' requirements is looked for.
    head = "module winready.invalid/real\n\ngo 1.21\n"
    needed = [name for name in (module.name, module.beside) if name]
    requires = "".join(f"require {name} {module.version}\n" for name in needed)
    (scratch / "go.mod").write_text(f"{head}\n{requires}")
    (scratch / "tools.go").write_text(f'//go:build tools\n\npackage tools\n\nimport _ "{package}"\n')
    go("mod", "tidy", cwd=scratch)
    ldflags = f"-s -w -X {module.variable}={module.version}" if module.variable else "-s -w"
    go("build", "-o", str(target), "-ldflags", ldflags, package, cwd=scratch, env=target_system(program))


def module_file(name: str, target: Path) -> None:
    """Copy a file out of a module, which Go has held against its checksum database."""
    module, version, path = MODULE_FILES[name]
    home = cache_root() / name / version
    with one_builder(home):
        (home / "go.mod").write_text("module winready.invalid/real\n")
        found = json.loads(go("mod", "download", "-json", f"{module}@{version}", cwd=home))
    shutil.copyfile(Path(found["Dir"]) / path, target)


def module_folder(name: str, target: Path) -> None:
    """Copy folders out of modules, as files that belong to whoever asks."""
    version, parts = MODULE_FOLDERS[name]
    home = cache_root() / name / version
    shutil.rmtree(target, ignore_errors=True)
    with one_builder(home):
        (home / "go.mod").write_text("module winready.invalid/real\n")
        for part, (module, path) in parts.items():
            found = json.loads(go("mod", "download", "-json", f"{module}@{version}", cwd=home))
            for file in sorted((Path(found["Dir"]) / path).rglob("*.yaml")):
                copy = target / part / file.relative_to(Path(found["Dir"]) / path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(file.read_bytes())


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


def need_go(purpose: str) -> None:
    if shutil.which("go") is None:
        raise BuildError("the Go toolchain is not on PATH; it is needed to build " + purpose)


def ensure(version: str, programs: list[str]) -> Path:
    """Build whatever of ``programs`` is not cached yet, and return the folder that holds them all."""
    home = cache_root() / "kubernetes" / f"v{version}"
    missing = [program for program in programs if not (home / "bin" / program).exists()]
    if not missing:
        return home / "bin"
    for program in missing:
        if program in GIVEN:
            where = home / "bin" / program
            raise BuildError(f"{program} is not there and cannot be built: {GIVEN[program]}; put it at {where}")
    need_go(", ".join(missing))
    with one_builder(home):
        (home / "bin").mkdir(exist_ok=True)
        for program in missing:
            target = home / "bin" / program
            if target.exists():
                continue
            unfinished = home / f"{program}.part"
            if not unfinished.is_dir():
                unfinished.unlink(missing_ok=True)
            if program in OTHER_MODULES:
                other(program, unfinished)
            elif program in MODULE_FILES:
                module_file(program, unfinished)
            elif program in MODULE_FOLDERS:
                module_folder(program, unfinished)
            else:
                announce(program, f"Kubernetes {version}")
                build_kubernetes(program, version, home, unfinished)
            unfinished.rename(target)
    return home / "bin"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kubernetes", default="1.36.3", metavar="V", help="Kubernetes version, such as 1.36.3")
    parser.add_argument("--stand-ins", type=Path, metavar="DIR", help="also build the stand-ins in this folder")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    args = parser.parse_args()
    if not re.fullmatch(r"1\.\d+\.\d+", args.kubernetes):
        parser.error(f"{args.kubernetes!r} is not a Kubernetes version; write it like 1.36.3")
    if not (args.programs or args.stand_ins):
        parser.error("say what to build: " + ", ".join(PROGRAMS))
    if unknown := [name for name in args.programs if name not in PROGRAMS]:
        parser.error(f"no such program: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    try:
        if args.programs:
            print(ensure(args.kubernetes, args.programs))
        if args.stand_ins:
            print(stand_ins(args.kubernetes, args.stand_ins))
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
