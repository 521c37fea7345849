"""Images: pulled once per node, refused in containerd's words."""

from __future__ import annotations

from typing import Any

from sandbox.nodes.small_cluster import Cluster, container_state, waiting

PAUSE = "registry.k8s.io/pause:3.10.2"


def image(name: str, policy: str = "IfNotPresent") -> dict[str, Any]:
    return {"image": name, "imagePullPolicy": policy}


async def test_the_first_pull_is_slow_and_the_second_is_none(cluster: Cluster) -> None:
    busybox = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
    await cluster.run("a", container=image(busybox), restartPolicy="Never")
    event = await cluster.event("a", "Pulled", f'Successfully pulled image "{busybox}" in ')
    assert "Image size: " in event["message"]
    await cluster.run("b", container=image(busybox), restartPolicy="Never")
    await cluster.event("b", "Pulled", f'Container image "{busybox}" already present on machine')


async def test_an_unknown_image_is_tried_again_and_again(cluster: Cluster) -> None:
    name = "registry.k8s.io/no-such-image:1"
    await cluster.run("a", container=image(name))
    obj = await cluster.until("a", lambda each: waiting(each) == "ErrImagePull")
    assert "not found" in container_state(obj)["state"]["waiting"]["message"]
    obj = await cluster.until("a", lambda each: waiting(each) == "ImagePullBackOff")
    assert container_state(obj)["state"]["waiting"]["message"].startswith(f'Back-off pulling image "{name}"')
    await cluster.event("a", "BackOff", f'Back-off pulling image "{name}"')
    await cluster.until("a", lambda each: waiting(each) == "ErrImagePull")
    assert obj["status"]["phase"] == "Pending"


async def test_an_image_for_another_build_says_no_match_for_platform(cluster: Cluster) -> None:
    await cluster.run("a", node="win-2", container=image("mcr.microsoft.com/windows/nanoserver:ltsc2022"))
    await cluster.event("a", "Failed", "no match for platform in manifest")


async def test_names_and_policies_that_cannot_work(cluster: Cluster) -> None:
    await cluster.run("bad", container=image("Not A Name"))
    await cluster.until("bad", lambda each: waiting(each) == "InvalidImageName")
    await cluster.run("never", container=image(PAUSE, "Never"))
    await cluster.until("never", lambda each: waiting(each) == "ErrImageNeverPull")


async def test_a_healed_registry_lets_the_pod_start(cluster: Cluster) -> None:
    defects = cluster.node("win-1").defects.runtime
    defects.pulls_fail = True
    await cluster.run("a", node="win-1", container=image("registry.k8s.io/e2e-test-images/agnhost:2.63.0", "Always"))
    await cluster.until("a", lambda each: waiting(each) == "ImagePullBackOff")
    defects.pulls_fail = False
    await cluster.ready("a")
