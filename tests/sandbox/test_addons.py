"""The objects that every sandbox starts with."""

from __future__ import annotations

from winready_sandbox import addons
from winready_sandbox.machine import images


def test_every_image_can_be_pulled_on_the_nodes_that_its_pods_go_to() -> None:
    for obj in addons.objects(version="v1.36.0"):
        if obj["kind"] not in ("Deployment", "DaemonSet"):
            continue
        spec = obj["spec"]["template"]["spec"]
        windows = spec["nodeSelector"]["kubernetes.io/os"] == "windows"
        for container in spec["containers"]:
            image = images.resolve(container["image"], "windows" if windows else "linux", "20348" if windows else "")
            assert image.os == ("windows" if windows else "linux")


def test_settings_reach_the_objects() -> None:
    made = {(obj["kind"], obj["metadata"]["name"]): obj for obj in addons.objects(version="v1.29.0", domain="k.test")}
    assert "kubernetes k.test" in made["ConfigMap", "coredns"]["data"]["Corefile"]
    assert made["Service", "kube-dns"]["spec"]["clusterIP"] == "10.96.0.10"
    proxy = made["DaemonSet", "kube-proxy"]["spec"]["template"]["spec"]["containers"][0]
    assert proxy["image"] == "registry.k8s.io/kube-proxy:v1.29.0"
    assert proxy["command"][1] == "--hostname-override=$(NODE_NAME)"
