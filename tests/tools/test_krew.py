"""What krew is given: archives that depend on their content alone, and a manifest that names them."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest
import yaml

import krew
import onefile


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for platform in onefile.PLATFORMS:
        (tmp_path / onefile.name_of("1.2.3", platform)).write_text(platform.name)
    return tmp_path


def test_archives_hold_the_program_of_their_platform_under_the_name_that_kubectl_looks_for(programs: Path) -> None:
    made = krew.archives("1.2.3", programs, 1_700_000_000)
    before = [path.read_bytes() for path in made]
    assert before == [path.read_bytes() for path in krew.archives("1.2.3", programs, 1_700_000_000)]
    with tarfile.open(programs / "kubectl-winready-1.2.3-linux-arm64.tar.gz") as archive:
        assert [(each.name, each.mode, each.uid, each.mtime) for each in archive] == [
            ("kubectl-winready", 0o755, 0, 1_700_000_000),
            ("LICENSE", 0o644, 0, 1_700_000_000),
        ]
        member = archive.extractfile("kubectl-winready")
        assert member is not None
        assert member.read() == b"linux-aarch64"


@pytest.mark.parametrize(
    ("address", "uri"),
    [("", "kubectl-winready-1.2.3-linux-amd64.tar.gz"),
     ("https://example.invalid/v1/", "https://example.invalid/v1/kubectl-winready-1.2.3-linux-amd64.tar.gz")],
    ids=["from files", "from an address"],
)  # fmt: skip
def test_the_manifest_names_each_archive_with_its_digest(programs: Path, address: str, uri: str) -> None:
    krew.archives("1.2.3", programs, 0)
    manifest = yaml.safe_load(krew.manifest("1.2.3", programs, address))
    assert manifest["spec"]["version"] == "v1.2.3"
    platforms = manifest["spec"]["platforms"]
    assert platforms[0]["uri"] == uri
    assert [each["selector"]["matchLabels"] for each in platforms] == [
        {"os": system, "arch": machine} for system, machine in krew.PLUGINS.values()
    ]
    for each in platforms:
        archive = programs / each["uri"].rpartition("/")[2]
        assert each["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(krew.KrewError, match=r"winready-1\.2\.3-linux-x86_64\.pyz is not there; tools/onefile\.py"):
        krew.archives("1.2.3", tmp_path, 0)
