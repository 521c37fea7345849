#!/usr/bin/env python3
"""Write down what a Kubernetes version has: the fields of its pods, its feature gates and its specs about Windows.

Fields and gates are asked of the real kube-apiserver of that version, specs of its e2e.test. ``winready matrix audit``
compares with what is written here.

    api_snapshot.py 1.36.3                       writes src/winready/features/audit/data/1.36.txt
    api_snapshot.py 1.32.2 --specs listing.txt   takes the specs from a listing, where e2e.test is not at hand
    api_snapshot.py 1.36.3 --check               says whether the programs still agree with it
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from real_programs import BuildError, cache_root, ensure
from winready.cluster.kubeconfig import find_target
from winready.features.audit.snapshot import Snapshot, parse, render
from winready.features.audit.sources import ask, with_listing
from winready.spec.versions import Version
from winready.upstream.binary import inspect, list_specs
from winready.upstream.listing import Listing, read_listing

FOLDER = Path(__file__).parent.parent / "src/winready/features/audit/data"


@contextmanager
def control_plane(version: str) -> Iterator[str]:
    """The real control plane of a version; gives its kubeconfig."""
    programs = ensure(version, ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"])
    with tempfile.TemporaryDirectory(prefix="wr-") as runtime:
        command = [sys.executable, "-m", "winready", "sandbox"]
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime}
        options = ["--detach", "--linux", "1", "--windows", "0", "--control-plane", str(programs), "-o", "json"]
        started = subprocess.run(
            [*command, "up", *options], env=environment, capture_output=True, text=True, check=False
        )
        if started.returncode != 0:
            raise BuildError(f"the control plane of {version} did not start: {started.stderr.strip()}")
        try:
            yield json.loads(started.stdout)["kubeconfig"]
        finally:
            subprocess.run([*command, "down", "--all"], env=environment, capture_output=True, check=False)


def listing(version: str, specs: Path | None) -> Listing | None:
    """The specs of a version, from a file or from its e2e.test if that is there."""
    if specs is not None:
        return read_listing(specs)
    program = cache_root() / "kubernetes" / f"v{version}" / "bin" / "e2e.test"

    async def listed() -> Listing:
        return await list_specs(await inspect(program))

    return asyncio.run(listed()) if program.exists() else None


def look(version: str, specs: Path | None, present: Snapshot | None) -> Snapshot:
    """What the real programs say."""
    with control_plane(version) as kubeconfig:
        found, notes = asyncio.run(ask(find_target(kubeconfig)))
    if notes:
        raise BuildError("; ".join(notes))
    if (known := listing(version, specs)) is not None:
        return with_listing(found, known)
    if present is None:
        raise BuildError(f"there is no e2e.test of {version}; give a listing of its specs with --specs")
    print(f"no e2e.test of {version} is there; its specs stay as they are", file=sys.stderr)
    return replace(found, specs=present.specs, linux_only=present.linux_only)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("version", help="release such as 1.36.3")
    parser.add_argument("--specs", type=Path, help="listing of the specs of that version's e2e.test")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 when the file is not right")
    given = parser.parse_args()
    target = FOLDER / f"{Version.parse(given.version)}.txt"
    present = parse(target.read_text(), str(target)) if target.exists() else None
    try:
        found = look(given.version, given.specs, present)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    text = "".join(render(found))
    if given.check:
        if not target.exists() or target.read_text() != text:
            print(f"{target.name} is not what Kubernetes {given.version} says; write it anew", file=sys.stderr)
            return 1
        return 0
    target.write_text(text)
    print(f"{target}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
