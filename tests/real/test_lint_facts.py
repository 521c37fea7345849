"""What lint calls refused or accepted, asked of the real API server by dry runs.

For every rule the manifest that triggers it is sent to a kube-apiserver: objects that the data says are refused must be
refused, the others accepted. Pods and templates without ``spec.os`` are asked as well, where the outcome can differ.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from lint.cases import CASES
from lint.manifests import lint, merge
from real_programs import ensure

KUBERNETES = "1.36.3"
MINOR = 36
PATHS = {
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "Namespace": "/api/v1/namespaces",
    "ResourceQuota": "/api/v1/namespaces/{namespace}/resourcequotas",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "DaemonSet": "/apis/apps/v1/namespaces/{namespace}/daemonsets",
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
}
# What the API server refuses for reasons that have nothing to do with Windows, or judges in its own way.
ELSEWHERE = {
    "gmsa-field-limits": "its kind is a custom resource",
    "gmsa-spec-unknown": "a webhook refuses the pod, which the server has not",
    "res-overhead": "admission wants a RuntimeClass with the same overhead",
    "psa-restricted-pinned-old": "the namespace itself is fine; its pods are asked by psa-run-as-non-root",
    "svc-dual-stack": "the server has one address family",
    "svc-ipv6-only": "the server has one address family",
}


class ApiServer:
    """A kube-apiserver on loopback that answers dry runs."""

    def __init__(self, port: int) -> None:
        self.base = f"https://127.0.0.1:{port}"
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE  # it made its certificate itself a second ago

    def call(self, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": "Bearer test", "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, data, headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def dry_run(self, document: dict[str, Any]) -> tuple[int, str]:
        namespace = document["metadata"].get("namespace", "default")
        path = PATHS[document["kind"]].format(namespace=namespace)
        status, answer = self.call(f"{path}?dryRun=All&fieldValidation=Ignore", document)
        return status, str(answer.get("message", ""))


@pytest.fixture(scope="module")
def apiserver(tmp_path_factory: pytest.TempPathFactory, unused_ports: list[int]) -> Iterator[ApiServer]:
    programs = ensure(KUBERNETES, ["etcd", "kube-apiserver"])
    folder = tmp_path_factory.mktemp("control-plane")
    etcd_port, peer_port, port = unused_ports
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "sa.key").write_bytes(private)
    (folder / "tokens").write_text('test,admin,1,"system:masters"\n')
    etcd = f"http://127.0.0.1:{etcd_port}"
    commands = [
        [programs / "etcd", "--data-dir", folder / "etcd", "--listen-client-urls", etcd,
         "--advertise-client-urls", etcd, "--listen-peer-urls", f"http://127.0.0.1:{peer_port}", "--unsafe-no-fsync"],
        [programs / "kube-apiserver", f"--etcd-servers={etcd}", f"--secure-port={port}", "--bind-address=127.0.0.1",
         f"--cert-dir={folder}/pki", "--service-account-issuer=https://kubernetes.default.svc",
         "--allow-privileged=true",
         f"--service-account-key-file={folder}/sa.key", f"--service-account-signing-key-file={folder}/sa.key",
         "--service-cluster-ip-range=10.96.0.0/16", f"--token-auth-file={folder}/tokens", "--authorization-mode=RBAC",
         "--disable-admission-plugins=ServiceAccount"],
    ]  # fmt: skip
    with (folder / "log").open("w") as log:
        running = [subprocess.Popen([str(word) for word in command], stdout=log, stderr=log) for command in commands]
        try:
            server = ApiServer(port)
            _wait(server, folder / "log")
            yield server
        finally:
            for process in reversed(running):
                process.terminate()
            for process in running:
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _wait(server: ApiServer, log: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            if server.call("/api/v1/namespaces/default")[0] == 200 and server.call("/apis/node.k8s.io/v1")[0] == 200:
                return
        except (OSError, ValueError):
            pass
        time.sleep(0.05)
    raise AssertionError(f"the API server did not start:\n{log.read_text()[-3000:]}")


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """A manifest with what the API server wants of any object of its kind, beside what the rule is about."""
    kind, name = document["kind"], document["metadata"]["name"]
    spec = document.get("spec", {})
    template = spec.get("template")
    if template is not None and kind not in ("Job", "CronJob"):
        document = merge(document, {"spec": {"selector": {"matchLabels": {"app": "web"}}, "serviceName": None}})
    pod = template["spec"] if template is not None else spec if kind == "Pod" else None
    if pod is not None:
        _complete_pod(pod)
    if kind == "Service":
        document["spec"].setdefault("ports", [])
        document["spec"]["ports"] = [{"port": 80, **port} for port in document["spec"]["ports"]] or [{"port": 80}]
        if document["spec"].get("externalTrafficPolicy") or document["spec"].get("loadBalancerSourceRanges"):
            document["spec"]["type"] = "LoadBalancer"
        if "sessionAffinityConfig" in document["spec"]:
            document["spec"]["sessionAffinity"] = "ClientIP"
    for claim in document.get("spec", {}).get("volumeClaimTemplates", ()):
        claim["spec"] |= {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if kind in ("PersistentVolumeClaim", "PersistentVolume"):
        storage: dict[str, Any] = {"accessModes": ["ReadWriteOnce"]}
        storage |= (
            {"resources": {"requests": {"storage": "1Gi"}}}
            if kind.endswith("Claim")
            else {"capacity": {"storage": "1Gi"}}
        )
        document = merge(document, {"spec": storage})
    if kind == "PersistentVolume" and "local" in spec:
        term = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
        document = merge(document, {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}})
    result: dict[str, Any] = merge(document, {"metadata": {"name": name.lower()}})
    return result


def _complete_pod(pod: dict[str, Any]) -> None:
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    for container in (*pod["containers"], *pod.pop("ephemeralContainers", [])):
        for mount in (*container.get("volumeMounts", ()), *container.get("volumeDevices", ())):
            volumes.setdefault(mount["name"], {"name": mount["name"], "emptyDir": {}})
            if mount.get("recursiveReadOnly"):
                mount["readOnly"] = True
    for volume in volumes.values():
        if "hostPath" in volume:
            volume["hostPath"].setdefault("path", "C:/data")
        if volume.get("iscsi"):
            volume["iscsi"] = {"iqn": "iqn.2001-04.com.example:a", "lun": 0, "targetPortal": "10.0.0.1:3260"}
        if volume.get("azureDisk"):
            volume["azureDisk"].setdefault("diskURI", "https://example.blob.core.windows.net/a.vhd")
    for claim in pod.get("resourceClaims", ()):
        claim["resourceClaimName"] = "a"
    if volumes:
        pod["volumes"] = list(volumes.values())


def _documents(rule: str) -> list[dict[str, Any]]:
    bad = CASES[rule].bad
    listed = bad if isinstance(bad, list) else [bad]
    return [completed(json.loads(json.dumps(one))) for one in listed if isinstance(one, dict) and one["kind"] in PATHS]


@pytest.mark.parametrize("rule", [rule for rule in CASES if rule not in ELSEWHERE])
def test_refused_or_accepted_as_the_data_says(rule: str, apiserver: ApiServer, tmp_path: Path) -> None:
    documents = _documents(rule)
    for document in documents:
        if document["kind"] in ("Namespace", "RuntimeClass"):
            status, _ = apiserver.call(PATHS[document["kind"]], document)
            assert status in (201, 409)
    try:
        for document in documents:
            pod_like = document["kind"] in ("Pod", "Deployment", "StatefulSet", "DaemonSet", "Job")
            for variant in _variants(document) if pod_like else [document]:
                _ask(rule, variant, documents, apiserver, tmp_path)
    finally:
        for document in documents:
            if document["kind"] in ("Namespace", "RuntimeClass"):
                _remove(apiserver, PATHS[document["kind"]], document["metadata"]["name"])


def _variants(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield document
    spec = document["spec"].get("template", document)["spec"]
    if spec.get("os", {}).get("name") == "windows":
        undeclared = json.loads(json.dumps(document))
        del undeclared["spec"].get("template", undeclared)["spec"]["os"]
        yield undeclared


def _ask(rule: str, document: dict[str, Any], others: list[dict[str, Any]], apiserver: ApiServer, folder: Path) -> None:
    if document["kind"] in ("Namespace", "RuntimeClass"):
        return  # made for real above
    context = [one for one in others if one["kind"] in ("Namespace", "RuntimeClass")]
    judged = lint(folder, [document, *context], f"1.{MINOR}", CASES[rule].profile)
    found = [one for one in judged if one.name == document["metadata"]["name"]]
    refused = any(one.effect == "rejected" and "and refuses its pods" not in one.message for one in found)
    status, message = apiserver.dry_run(document)
    assert status in (201, 403, 422, 400), message
    said = {one.rule: one.effect for one in found}
    assert (status != 201) is refused, f"{rule}: {status} {message}\nlint says {said}\n{json.dumps(document, indent=1)}"


def _remove(apiserver: ApiServer, path: str, name: str) -> None:
    request = urllib.request.Request(  # noqa: S310
        f"{apiserver.base}{path}/{name}", method="DELETE", headers={"Authorization": "Bearer test"}
    )
    with urllib.request.urlopen(request, context=apiserver.context, timeout=30):  # noqa: S310
        pass
    if path.endswith("namespaces"):
        finalize = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
        body = json.dumps(finalize).encode()
        headers = {"Authorization": "Bearer test", "Content-Type": "application/json"}
        request = urllib.request.Request(  # noqa: S310
            f"{apiserver.base}{path}/{name}/finalize", body, headers, method="PUT"
        )
        with urllib.request.urlopen(request, context=apiserver.context, timeout=30):  # noqa: S310
            pass


@pytest.fixture(scope="module")
def unused_ports() -> list[int]:
    import socket

    sockets = [socket.socket() for _ in range(3)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
