"""What lies in the folder: everything that is promised, each file with its checksum."""

from __future__ import annotations

import json
import subprocess
import tarfile
import zipfile
from pathlib import Path


def test_everything_is_there_and_has_its_checksum(dist: Path, version: str) -> None:
    names = {path.name for path in dist.iterdir()}
    machines = ("linux-x86_64", "linux-aarch64", "macos-arm64", "windows-amd64")
    assert {
        f"winready-{version}.tar.gz",
        f"winready-{version}-py3-none-any.whl",
        *(f"winready-{version}-{machine}.pyz" for machine in machines),
        *(f"kubectl-winready-{version}-{one}.tar.gz" for one in ("linux-amd64", "linux-arm64", "darwin-arm64")),
        "winready.yaml",
        f"winready-{version}-man.tar.gz",
        f"winready-{version}.cdx.json",
        "SHA256SUMS",
    } <= names
    listed = {line.split()[1] for line in (dist / "SHA256SUMS").read_text().splitlines()}
    assert listed == names - {"SHA256SUMS"}
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=dist, check=True)


def test_every_wheel_in_a_one_file_program_is_in_the_bill_of_materials(dist: Path, version: str) -> None:
    bill = json.loads((dist / f"winready-{version}.cdx.json").read_text())
    known = {each["content"] for component in bill["components"] for each in component["hashes"]}
    known |= {each["content"] for each in bill["metadata"]["component"]["hashes"]}
    import hashlib

    for program in dist.glob("*.pyz"):
        with zipfile.ZipFile(program) as archive:
            inside = [name for name in archive.namelist() if name.endswith(".whl")]
            assert len(inside) > 40
            for name in inside:
                assert hashlib.sha256(archive.read(name)).hexdigest() in known, name


def test_the_manual_pages_are_those_of_the_wheel(dist: Path, version: str, wheel: Path) -> None:
    with tarfile.open(dist / f"winready-{version}-man.tar.gz") as archive, zipfile.ZipFile(wheel) as packed:
        names = archive.getnames()
        assert {"man1/winready.1", "man1/winready-run.1", "man1/winready-node-addons-diff.1"} <= set(names)
        for name in names:
            member = archive.extractfile(name)
            assert member is not None
            assert member.read() == packed.read(f"winready-{version}.data/data/share/man/{name}")
