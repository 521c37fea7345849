"""``winready deploy capi``: least rights, no key in any manifest, and mistakes that end it beforehand."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from winready.cli.capi import serve
from winready.cli.main import cli
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NAMESPACES
from winready.cluster.serving import make_identity

IMAGE = ("--image", "registry.example.com/winready:0.1.0")
FLEET = ("--cluster-namespace", "fleet")


def deploy(*words: str) -> Result:
    return CliRunner().invoke(cli, ["deploy", "capi", *words])


def printed(*words: str) -> dict[str, Any]:
    """What is printed, by kind, namespace and name."""
    result = deploy(*words)
    assert result.exit_code == 0, result.output
    found = {}
    for item in yaml.safe_load_all(result.stdout):
        place = item["metadata"].get("namespace", "")
        found[f"{item['kind']} {place}/{item['metadata']['name']}"] = item
    return found


def secrets_readable(found: dict[str, Any]) -> list[tuple[str, list[str], list[str]]]:
    """Where which Secrets may be read, and what else may be done to them."""
    rights = []
    for title, item in found.items():
        for rule in item.get("rules", []):
            assert (rule["apiGroups"], rule["resources"]) == ([""], ["secrets"])
            rights.append((title, rule.get("resourceNames", []), rule["verbs"]))
    return rights


def test_rights_reach_as_far_as_they_must() -> None:
    own = ("Role winready-capi/winready-capi-tls", ["winready-capi-tls"], ["get", "update"])
    assert secrets_readable(printed(*IMAGE, *FLEET)) == [own, ("Role fleet/winready-capi", [], ["get"])]
    named = printed(*IMAGE, "--cluster", "fleet/a", "--cluster", "fleet/b", "--cluster", "other/c")
    assert secrets_readable(named) == [
        own,
        ("Role fleet/winready-capi", ["a-kubeconfig", "b-kubeconfig"], ["get"]),
        ("Role other/winready-capi", ["c-kubeconfig"], ["get"]),
    ]
    fewer = printed(*IMAGE, "--cluster", "fleet/a", "--kubeconfig-secret", "winready")
    assert secrets_readable(fewer)[1] == ("Role fleet/winready-capi", ["a-winready"], ["get"])
    assert (
        "--kubeconfig-secret"
        in fewer["Deployment winready-capi/winready-capi"]["spec"]["template"]["spec"]["containers"][0]["args"]
    )
    everything = printed(*IMAGE, "--all-namespaces")
    assert secrets_readable(everything) == [own, ("ClusterRole /winready-capi", [], ["get"])]
    assert everything["ExtensionConfig /winready-capi"]["spec"]["namespaceSelector"] == {}


def test_controllers_ask_about_these_namespaces_and_trust_what_the_server_made() -> None:
    found = printed(*IMAGE, *FLEET)
    config = found["ExtensionConfig /winready-capi"]
    assert config["apiVersion"] == "runtime.cluster.x-k8s.io/v1beta2"
    wanted = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["fleet"]}
    assert config["spec"]["namespaceSelector"] == {"matchExpressions": [wanted]}
    assert config["spec"]["clientConfig"] == {
        "service": {"namespace": "winready-capi", "name": "winready-capi", "port": 443}
    }
    inject = config["metadata"]["annotations"]["runtime.cluster.x-k8s.io/inject-ca-from-secret"]
    assert inject == "winready-capi/winready-capi-tls"
    assert "data" not in found["Secret winready-capi/winready-capi-tls"]
    policy = found["NetworkPolicy winready-capi/winready-capi"]["spec"]["ingress"][0]
    assert policy["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "capi-system"}}}]


def test_the_server_is_told_what_was_chosen_and_understands_it() -> None:
    words = ("--policy", "require-pass", "--again", "5m", "--runs", "4", "--requirement", "core.network.dns-internal")
    found = printed(*IMAGE, *FLEET, *words, "--allow-small-cluster", "--nodes", "all")
    deployment = found["Deployment winready-capi/winready-capi"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    pod = deployment["template"]["spec"]
    args = pod["containers"][0]["args"]
    assert args[:3] == ["capi", "serve", "winready-capi/winready-capi"]
    given = serve.make_context("serve", list(args[2:])).params
    assert (given["policy"], given["again"], given["parallel_runs"]) == ("require-pass", "5m", 4)
    assert (given["requirements"], given["nodes"]) == (("core.network.dns-internal",), "all")
    assert given["allow_small_cluster"]
    assert given["identity_secret"] == "winready-capi/winready-capi-tls"
    assert given["state"] == "/state"
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["terminationGracePeriodSeconds"] >= 330
    stores = ("--state", "s3://fleet/gate", "--report-dir", "s3://fleet/runs", "--store-secret", "s3")
    stored = printed(*IMAGE, *FLEET, *stores)
    container = stored["Deployment winready-capi/winready-capi"]["spec"]["template"]["spec"]["containers"][0]
    assert container["envFrom"] == [{"secretRef": {"name": "s3"}}]
    given = serve.make_context("serve", list(container["args"][2:])).params
    assert (given["state"], given["report_dir"]) == ("s3://fleet/gate", "s3://fleet/runs")
    assert not [title for title in stored if title.startswith("PersistentVolumeClaim")]


def test_a_server_elsewhere_needs_the_extension_config_alone(tmp_path: Path) -> None:
    identity = make_identity("10.0.0.5")
    (tmp_path / "ca.crt").write_bytes(identity.ca)
    found = printed("--url", "https://10.0.0.5:9443", "--ca", str(tmp_path / "ca.crt"), *FLEET)
    assert list(found) == ["ExtensionConfig /winready-capi"]
    client = found["ExtensionConfig /winready-capi"]["spec"]["clientConfig"]
    assert client["url"] == "https://10.0.0.5:9443"
    assert base64.b64decode(client["caBundle"]) == identity.ca
    elsewhere = ("--url", "https://10.0.0.5:9443", "--ca", str(tmp_path / "ca.crt"), *FLEET)
    assert "settings" not in found["ExtensionConfig /winready-capi"]["spec"]
    strict = printed(*elsewhere, "--policy", "require-pass")["ExtensionConfig /winready-capi"]["spec"]
    assert strict["settings"] == {"policy": "require-pass"}
    mistaken = deploy(*elsewhere, "--again", "5m", "--policy", "off")
    assert (mistaken.exit_code, "by 'winready capi serve': --again" in mistaken.output) == (2, True)
    (tmp_path / "key").write_bytes(identity.ca + identity.key)
    refused = deploy("--url", "https://10.0.0.5:9443", "--ca", str(tmp_path / "key"), *FLEET)
    assert refused.exit_code == 2
    assert "is no certificate" in refused.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (FLEET, "--image is missing"),
        (IMAGE, "say whose clusters"),
        ((*IMAGE, *FLEET, "--all-namespaces"), "say whose clusters"),
        ((*IMAGE, "--cluster", "one"), "names no namespace"),
        ((*IMAGE, "--cluster-namespace", "A_b"), "cannot be the name of a namespace"),
        ((*IMAGE, *FLEET, "--namespace", "kube-system"), "not winready's to make"),
        ((*IMAGE, *FLEET, "--state", "/data"), "a pod has only its volume"),
        ((*IMAGE, *FLEET, "--state", "s3://u:p@x/y"), "has a user or a password"),
        ((*IMAGE, *FLEET, "--store-secret", "s3"), "--store-secret goes with --state or --report-dir"),
        ((*IMAGE, *FLEET, "--url", "https://a:1"), "--url and --ca go together"),
        ((*IMAGE, *FLEET, "--again", "never"), "is not a duration"),
        ((*IMAGE, *FLEET, "--kubeconfig-secret", "A B"), "cannot be the name of a Secret"),
        ((*IMAGE, *FLEET, "--dry-run"), "--dry-run goes with --apply"),
    ],
)
def test_mistakes_end_the_command(words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINREADY_IMAGE", raising=False)
    result = deploy(*words)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert "u:p" not in result.output


def test_a_cluster_without_cluster_api_is_told_before_anything_is_changed(kubeconfig: str) -> None:
    words = ("--namespace", "no-capi", "--cluster-namespace", "default", "--apply", "--kubeconfig", kubeconfig)
    result = deploy(*IMAGE, *words)
    assert result.exit_code == 3, result.output
    assert "this cluster has no kind ExtensionConfig (runtime.cluster.x-k8s.io/v1beta2)" in result.output

    async def made() -> bool:
        async with Client.connect(find_target(kubeconfig)) as client:
            return await client.find(NAMESPACES, "no-capi") is not None

    assert asyncio.run(made()) is False
