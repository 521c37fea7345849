"""Images: which exist, for which builds, and what containerd says otherwise."""

from __future__ import annotations

import pytest

from sandbox.helpers.containers import IMAGES
from winready_sandbox.machine import images
from winready_sandbox.machine.executables import program_of
from winready_sandbox.machine.image_trees import BUILDERS, BUSYBOX_APPLETS_LINUX, BUSYBOX_APPLETS_WINDOWS, tree
from winready_sandbox.machine.tree import Directory, File
from winready_sandbox.programs.busybox.main import APPLETS
from winready_sandbox.programs.catalogue import PROGRAMS

AGNHOST = IMAGES["agnhost"]


def test_one_tag_serves_both_systems_with_one_digest() -> None:
    linux, windows = images.resolve(AGNHOST, "linux"), images.resolve(AGNHOST, "windows", "20348")
    assert linux.digest == windows.digest
    assert linux.config_digest != windows.config_digest
    assert (windows.user, windows.entrypoint, windows.cmd) == ("ContainerAdministrator", ("/agnhost",), ("pause",))
    assert windows.repo_digest == f"registry.k8s.io/e2e-test-images/agnhost@{windows.digest}"


@pytest.mark.parametrize(
    ("reference", "host", "build"),
    [
        ("registry.k8s.io/e2e-test-images/agnhost:2.63.0", "17763", "17763"),
        ("registry.k8s.io/e2e-test-images/agnhost:2.63.0", "26100", "26100"),
        ("registry.k8s.io/e2e-test-images/nonroot:1.5", "26100", "20348"),
        ("registry.k8s.io/pause:3.10.2", "25398", "20348"),
    ],
)
def test_a_host_takes_the_entry_of_its_build_or_of_one_release_back(reference: str, host: str, build: str) -> None:
    assert images.resolve(reference, "windows", host).build == build


def test_an_image_without_the_hosts_build_does_not_match() -> None:
    with pytest.raises(images.NoMatchingPlatform) as failed:
        images.resolve("registry.k8s.io/pause:3.5", "windows", "20348")
    assert "no match for platform in manifest sha256:" in failed.value.text
    with pytest.raises(images.NoMatchingPlatform):
        images.resolve("docker.io/library/nginx:1.27", "windows", "20348")


def test_unknown_images_fail_as_in_containerd() -> None:
    with pytest.raises(images.ImageNotFound) as tag:
        images.resolve("registry.k8s.io/e2e-test-images/agnhost:9.9", "linux")
    assert tag.value.rpc.startswith("rpc error: code = NotFound desc = failed to pull and unpack image")
    assert tag.value.text.endswith("agnhost:9.9: not found")
    with pytest.raises(images.RegistryUnreachable, match="no such host"):
        images.resolve("invalid.registry.k8s.io/invalid/alpine:3.1", "linux")
    with pytest.raises(images.PullError, match="pull access denied"):
        images.resolve("nosuch/thing", "linux")
    with pytest.raises(images.InvalidReference):
        images.resolve("Bad Name", "linux")


def test_a_mirror_serves_by_name_and_tag_and_a_digest_pins() -> None:
    mirrored = images.resolve("registry.internal:5000/mirror/agnhost:2.63.0", "linux")
    assert mirrored.digest == images.resolve(AGNHOST, "linux").digest
    assert images.resolve(f"registry.internal:5000/x/agnhost@{mirrored.digest}", "linux").tag == "2.63.0"


def _programs(directory: Directory) -> set[str]:
    nodes = [node for _, node in directory.items()]
    below = [_programs(node) for node in nodes if isinstance(node, Directory)]
    files = [node.data for node in nodes if isinstance(node, File)]
    own = {program_of("windows", data) or program_of("linux", data) or "" for data in files} - {""}
    return own.union(*below)


def test_every_program_file_of_every_image_has_a_program_behind_it() -> None:
    wanted = set().union(*(_programs(tree(name)) for name in BUILDERS))
    assert wanted - set(PROGRAMS) == set()


def test_every_busybox_link_of_an_image_is_an_applet() -> None:
    known = {*APPLETS, *PROGRAMS, "sh", "bash"}
    assert {*BUSYBOX_APPLETS_LINUX, *BUSYBOX_APPLETS_WINDOWS} - known == set()
