"""Programs that are missing, strange or do not fit together are named before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from winready_sandbox.control_plane.real.programs import NAMES, find
from winready_sandbox.state import StateError


def put(folder: Path, name: str, says: str) -> None:
    """A program that answers to anything with one line."""
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A complete set of programs."""
    for name in NAMES:
        put(tmp_path, name, "etcd Version: 3.6.8" if name == "etcd" else "Kubernetes v1.36.3")
    return tmp_path


async def test_complete_set_has_a_version(folder: Path) -> None:
    programs = await find(folder)
    assert (programs.version, programs.minor, programs["etcd"]) == ("v1.36.3", 36, folder / "etcd")


async def test_missing_ones_are_named(folder: Path) -> None:
    (folder / "kube-scheduler").unlink()
    (folder / "kube-controller-manager").unlink()
    with pytest.raises(StateError, match=r"lacks kube-controller-manager, kube-scheduler; .*KUBEBUILDER_ASSETS"):
        await find(folder)


async def test_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="nowhere is not a folder"):
        await find(tmp_path / "nowhere")


async def test_other_program_under_that_name(folder: Path) -> None:
    put(folder, "kube-apiserver", "ls (GNU coreutils) 9.1")
    with pytest.raises(StateError, match=r"kube-apiserver is not kube-apiserver: .*'ls \(GNU coreutils\) 9.1'"):
        await find(folder)


async def test_versions_that_do_not_fit(folder: Path) -> None:
    put(folder, "kube-scheduler", "Kubernetes v1.32.2")
    with pytest.raises(StateError, match=r"different versions .*kube-scheduler 1\.32\.2"):
        await find(folder)


async def test_etcd_that_is_too_old(folder: Path) -> None:
    put(folder, "etcd", "etcd Version: 3.4.30")
    with pytest.raises(StateError, match=r"is etcd 3\.4\.30; take 3\.5 or later"):
        await find(folder)


async def test_what_cannot_be_run(folder: Path) -> None:
    (folder / "etcd").chmod(0o644)
    with pytest.raises(StateError, match="is not executable; make it so with 'chmod"):
        await find(folder)
    (folder / "etcd").write_bytes(b"\x7fELF of some other machine")
    (folder / "etcd").chmod(0o755)
    with pytest.raises(StateError, match="cannot be run here"):
        await find(folder)
