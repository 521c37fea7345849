"""What specs about Windows are for, and why others leave Windows out."""

from __future__ import annotations

import pytest

from winready.features.audit.snapshot import bundled
from winready.lint import matrix
from winready.spec.loader import load_standard
from winready.upstream.explained import WAYS, fold, folded, group, groups, meaning, windows_specs

FEATURES = {feature.id for feature in matrix.load()}
LINUX_ONLY = bundled()["1.36"].linux_only or {}
FORMER = {"hosts-file", "policies-before-1-25", "node-logs"}
"""Groups of which specs exist only in e2e.test before 1.36."""


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (
            "[sig-windows] [Feature:Windows] Cpu Resources [Serial] Container limits should not be exceeded",
            "[sig-windows] Cpu Resources Container limits should not be exceeded",
        ),
        (
            "[sig-storage] In-tree Volumes [Driver: nfs] [Testpattern: Inline-volume (default fs)] subPath should fail"
            " if subpath file is outside the volume [Slow] [LinuxOnly]",
            "[sig-storage] In-tree Volumes subPath should fail if subpath file is outside the volume",
        ),
        (
            "[sig-storage] CSI Volumes [Driver: csi-hostpath] fsgroupchangepolicy (Always)[LinuxOnly], pod created",
            "[sig-storage] CSI Volumes fsgroupchangepolicy (Always), pod created",
        ),
    ],
)
def test_tags_that_change_between_versions_do_not_count(text: str, short: str) -> None:
    assert fold(text) == short
    assert fold(short) == short


def test_a_spec_that_is_repeated_for_each_driver_is_counted() -> None:
    texts = [f"[sig-storage] In-tree Volumes [Driver: {name}] subPath should x [LinuxOnly]" for name in ("a", "b")]
    found = folded([*texts, "[sig-windows] y", "[sig-node] z"])
    assert found.linux_only == {"[sig-storage] In-tree Volumes subPath should x": 2}
    assert found.windows == ("[sig-windows] y",)


def test_mapped_specs_name_their_requirements_in_any_version() -> None:
    cpu = "[sig-windows] [Feature:Windows] Cpu Resources [Serial] Container limits "
    first = meaning(cpu + "should not be exceeded after waiting 2 minutes")
    assert first is not None
    assert first.requirements == ["core.scheduling.limits-honoured"]
    stats = "[sig-windows] [Feature:Windows] Kubelet-Stats Kubelet stats collection for Windows nodes "
    later = meaning(stats + "when running up to 10 pods should return within 10 seconds [Serial]")
    assert later is not None
    assert later.requirements == ["core.network.distinct-pod-ips"]
    assert meaning("[sig-windows] Clocks should go back") is None


def test_the_data_is_whole() -> None:
    requirements = {one.id for one in load_standard().requirements}
    for text, one in windows_specs().items():
        assert fold(text) == text
        assert bool(one.features) != bool(one.reason), text
        assert set(one.features) <= FEATURES, text
    for one_group in groups():
        assert set(one_group.features) <= FEATURES, one_group.id
        assert set(one_group.requirements) <= requirements, one_group.id
        assert one_group.features, one_group.id
        assert one_group.way in WAYS
        assert one_group.tests.endswith(".")
        assert one_group.windows.endswith(".")
    assert len({one.id for one in groups()}) == len(groups())


def test_every_group_is_used_and_every_spec_has_one() -> None:
    found = {text: group(text) for text in LINUX_ONLY}
    assert [text for text, one in found.items() if one is None] == []
    assert {one.id for one in groups()} - {one.id for one in found.values() if one} == FORMER


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[sig-network] NetworkPolicyLegacy [LinuxOnly] NetworkPolicy between x", "policies-before-1-25"),
        ("[sig-node] KubeletManagedEtcHosts should test kubelet managed /etc/hosts file [LinuxOnly]", "hosts-file"),
        ('[sig-node] kubelet kubectl get --raw "/api/v1/nodes/<name>/proxy/logs [LinuxOnly] x', "node-logs"),
        ("[sig-network] Services should function for pod-Service: sctp [Feature:SCTPConnectivity] [LinuxOnly]", "sctp"),
    ],
)
def test_specs_of_former_versions_are_explained_too(text: str, name: str) -> None:
    found = group(text)
    assert found is not None
    assert found.id == name
