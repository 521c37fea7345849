"""Everyday kubectl, the real program in two versions, against the embedded and real control planes."""

from __future__ import annotations

import json
import re
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from real.conftest import Cluster, Kubectl

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue, size: large}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      containers:
      - {name: web, image: registry.k8s.io/e2e-test-images/agnhost:2.53, args: [netexec]}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.53"


def on(system: str) -> str:
    """What ``kubectl run`` needs to put a pod on an operating system."""
    return json.dumps({"spec": {"nodeSelector": {"kubernetes.io/os": system}}}, separators=(",", ":"))


@dataclass(frozen=True)
class Step:
    """One call of kubectl and what it must print (a regular expression over output and errors)."""

    command: str
    prints: str = ""
    stdin: str = ""
    code: int = 0


@pytest.fixture
def namespace(kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, with its service account in place."""
    test = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    name = f"t-{test[:40].strip('-')}-{zlib.crc32(test.encode()):x}"
    kubectl.ok("create", "namespace", name)
    kubectl.ok("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=20s")
    yield name
    kubectl.ok("delete", "namespace", name, "--wait=false")


CASES: dict[str, list[Step]] = {
    "version": [Step("version", r"Server Version: THE-VERSION")],
    "api-resources": [
        Step("api-resources", r"deployments +deploy +apps/v1 +true +Deployment"),
        Step("api-resources --api-group=rbac.authorization.k8s.io -o name", r"rolebindings\.rbac"),
        Step("api-versions", r"(?s)apps/v1.*discovery\.k8s\.io/v1"),
    ],
    "get-nodes": [
        Step("get nodes -o wide", r"(?s)NAME +STATUS +ROLES.*windows-1 +Ready.*Windows Server 2022"),
        Step("get nodes -l kubernetes.io/os=windows -o name", r"\Anode/windows-1\nnode/windows-2\n\Z"),
        Step("get node linux-1 -o jsonpath={.status.nodeInfo.operatingSystem}", r"\Alinux\Z"),
        Step("get node linux-1 -o yaml", r"(?m)^kind: Node$"),
        Step("get nodes --sort-by=.metadata.name -o custom-columns=N:.metadata.name --no-headers", r"\Alinux-1\n"),
        Step("get node nope", r'nodes "nope" not found', code=1),
        Step("get --raw /healthz", r"\Aok"),
    ],
    "create": [
        Step("create -f -", r"configmap/settings created", CONFIG_MAP),
        Step("create -f -", r'configmaps "settings" already exists', CONFIG_MAP, code=1),
        Step("get cm settings -o jsonpath={.data.colour}", r"\Ablue\Z"),
        Step("create configmap more --from-literal=a=b", r"configmap/more created"),
        Step("create -f - --dry-run=server -o name", r"deployment.apps/web", DEPLOYMENT),
        Step("get deploy", r"No resources found"),
    ],
    "apply": [
        Step("apply -f -", r"configmap/settings created", CONFIG_MAP),
        Step("apply -f -", r"configmap/settings unchanged", CONFIG_MAP),
        Step("apply -f -", r"configmap/settings configured", CONFIG_MAP.replace("large", "small")),
        Step("get cm settings -o jsonpath={.data.size}", r"\Asmall\Z"),
        Step("apply -f -", r"is invalid: .*spec\.replicas", DEPLOYMENT.replace("replicas: 2", "replicas: -1"), code=1),
    ],
    "apply-server-side": [
        Step("apply --server-side --field-manager=one -f -", r"configmap/settings serverside-applied", CONFIG_MAP),
        Step(
            "apply --server-side --field-manager=two -f -",
            r'conflict with "one": \.data\.size',
            CONFIG_MAP.replace("large", "small"),
            code=1,
        ),
        Step(
            "apply --server-side --field-manager=two --force-conflicts -f -",
            r"serverside-applied",
            CONFIG_MAP.replace("large", "small"),
        ),
        Step("get cm settings -o yaml --show-managed-fields", r"(?s)manager: one.*manager: two"),
    ],
    "patch": [
        Step("apply -f -", "created", DEPLOYMENT),
        Step('patch deploy web --type=merge -p {"metadata":{"labels":{"tier":"a"}}}', "patched"),
        Step('patch deploy web --type=json -p [{"op":"replace","path":"/spec/replicas","value":3}]', "patched"),
        Step(
            "patch deploy web -p "
            '{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"b"}]}]}}}}',
            "patched",
        ),
        Step(
            "get deploy web -o jsonpath={.spec.replicas}{.metadata.labels.tier}"
            "{.spec.template.spec.containers[0].env[0].value}{.spec.template.spec.containers[0].args[0]}",
            r"\A3abnetexec\Z",
        ),
        Step(
            'patch deploy web --type=json -p [{"op":"test","path":"/spec/replicas","value":7}]',
            "request is invalid",
            code=1,
        ),
        Step('patch deploy web --subresource=scale --type=merge -p {"spec":{"replicas":1}}', "patched"),
    ],
    "rollout": [
        Step("apply -f -", "created", DEPLOYMENT),
        Step("rollout status deployment/web --timeout=30s", r"successfully rolled out"),
        Step("wait --for=condition=Available deployment/web --timeout=30s", r"condition met"),
        Step("get deploy web", r"web +2/2 +2 +2"),
        Step("get pods -l app=web -o wide", r"(?m)^web-\S+ +1/1 +Running +0 .* linux-"),
        Step("set env deployment/web COLOUR=red", "env updated"),
        Step("rollout status deployment/web --timeout=30s", r"successfully rolled out"),
        Step("rollout history deployment/web", r"(?m)^2 "),
        Step("rollout undo deployment/web", "rolled back"),
        Step("rollout status deployment/web --timeout=30s", r"successfully rolled out"),
        Step("scale deployment/web --replicas=3", "scaled"),
        Step("rollout status deployment/web --timeout=30s", r"successfully rolled out"),
        Step("get rs -l app=web", r" 3 +3 +3 "),
        Step("describe deployment web", r"(?s)ScalingReplicaSet.*Scaled up replica set"),
        Step("delete deployment web --timeout=30s", "deleted"),
        Step("wait --for=delete pod -l app=web --timeout=30s"),
    ],
    "service": [
        Step("apply -f -", "created", DEPLOYMENT),
        Step("apply -f -", "service/web created", SERVICE),
        Step("rollout status deployment/web --timeout=30s", r"successfully"),
        Step("get svc web", r"web +ClusterIP +10\.96\.\d+\.\d+ +<none> +80/TCP"),
        Step("get endpointslices -l kubernetes.io/service-name=web", r"IPv4 +8080 +10\.244\.\S+,10\.244\."),
        Step("describe service web", r"Endpoints: +10\.244\."),
    ],
    "run-and-describe": [
        Step(f"run one --image={AGNHOST} --labels=a=b --restart=Never -- pause", "pod/one created"),
        Step("wait --for=condition=Ready pod/one --timeout=60s", "condition met"),
        Step("describe pod one", r"(?s)Node: +\S+-\d/10\.250\.0.*Events:.*Successfully assigned"),
        Step("get events --field-selector involvedObject.name=one", r"Scheduled"),
        Step("label pod one c=d", "labeled"),
        Step("label pod one c=e", r"already has a value", code=1),
        Step("annotate pod one note=yes", "annotated"),
        Step("get pods -l a=b,c=d -o name", r"\Apod/one\n\Z"),
        Step("get pods -l a!=b -o name", r"\A\Z"),
        Step("delete pod one --timeout=30s", r'pod "one" deleted'),
    ],
    "delete": [
        Step("apply -f -", "created", CONFIG_MAP),
        Step("delete cm settings --wait=false", "deleted"),
        Step("delete cm settings", "not found", code=1),
        Step("delete cm settings --ignore-not-found", r"\A\Z"),
        Step(f"run one --image={AGNHOST} -- pause", "created"),
        Step("delete pod one --now", "deleted"),
        Step("delete pods --all", r"No resources found|deleted"),
    ],
    "cordon": [
        Step("cordon linux-2", "node/linux-2 cordoned"),
        Step("get node linux-2", "Ready,SchedulingDisabled"),
        Step("uncordon linux-2", "node/linux-2 uncordoned"),
        Step("taint node linux-2 dedicated=x:NoSchedule", "tainted"),
        Step("describe node linux-2", r"Taints: +dedicated=x:NoSchedule"),
        Step("taint node linux-2 dedicated-", "untainted"),
        Step(f"run movable --image={AGNHOST} --overrides={on('linux')} -- pause", "created"),
        Step("wait --for=condition=Ready pod/movable --timeout=30s", "condition met"),
        Step(
            "drain -l kubernetes.io/os=linux --pod-selector=run=movable --force --timeout=30s",
            "(?s)evicting pod.*drained",
        ),
        Step("uncordon -l kubernetes.io/os=linux", "uncordoned"),
        Step("get pod movable", "not found", code=1),
    ],
    "auth": [
        Step("auth can-i create deployments", r"\Ayes"),
        Step("auth can-i list pods --as=jane", r"\Ano", code=1),
        Step("auth whoami", r"kubernetes-admin"),
        Step(
            "get pods --as=jane", r'pods is forbidden: User "jane" cannot list resource "pods" in API group ""', code=1
        ),
        Step("create rolebinding jane --clusterrole=view --user=jane", "created"),
        Step("auth can-i list pods --as=jane", r"\Ayes"),
        Step("auth can-i get secrets --as=jane", r"\Ano", code=1),
        Step("get pods --as=jane", "No resources found"),
        Step("auth can-i --list --as=jane", r"(?s)pods/log.*\[get list watch\]"),
        Step("create token default --duration=10m", r"\A[\w-]+\.[\w-]+\.[\w-]+\s*\Z"),
        Step("create token default --duration=1m", r"less than 10 minutes", code=1),
    ],
    "explain-and-top": [
        Step("explain pods", r"KIND: +Pod\nVERSION: +v1"),
        Step("top nodes", r"Metrics API not available", code=1),
    ],
    "logs-exec-cp": [
        Step(f"run shell --image={AGNHOST} --overrides={on('linux')} -- netexec", "created"),
        Step("wait --for=condition=Ready pod/shell --timeout=30s", "condition met"),
        Step("exec shell -- hostname", r"\Ashell\n\Z"),
        Step("exec shell -- cat /nowhere", r"No such file or directory", code=1),
        Step("exec shell -- sh -c 'exit 7'", r"exit code 7", code=7),
        Step("exec -i shell -- cat", r"\Ahello\n\Z", "hello\n"),
        Step("logs shell", r"Started HTTP server on port 8080"),
        Step("logs shell --tail=1 --timestamps", r"\A20\S+Z \S.*\n?\Z"),
        Step("logs shell -c nope", r"container nope is not valid for pod shell", code=1),
        Step("exec nope -- true", r'pods "nope" not found', code=1),
    ],
    "windows": [
        Step(f"run shell --image={AGNHOST} --overrides={on('windows')} -- netexec", "created"),
        Step("wait --for=condition=Ready pod/shell --timeout=60s", "condition met"),
        Step("get pod shell -o wide", r" windows-\d "),
        Step("exec shell -- cmd /c ver", r"Microsoft Windows \[Version 10\.0\.20348\.\d+\]"),
        Step("exec shell -- cmd /c 'exit 3'", "exit code 3", code=3),
        Step("exec shell -- cmd /c 'type C:\\nowhere'", r"cannot find the file", code=1),
        Step("expose pod shell --port=80 --target-port=8080", "exposed"),
        Step("get --raw /api/v1/namespaces/NAMESPACE/pods/shell:8080/proxy/hostname", r"\Ashell\Z"),
        Step("get --raw /api/v1/namespaces/NAMESPACE/services/shell:80/proxy/hostname", r"\Ashell\Z"),
        Step("get --raw /api/v1/nodes/windows-1/proxy/stats/summary", r'"nodeName": ?"windows-1"'),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_everyday_kubectl(sandbox: Cluster, kubectl: Kubectl, namespace: str, name: str) -> None:
    for step in CASES[name]:
        words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", step.command)]
        result = kubectl("-n", namespace, *[word.replace("NAMESPACE", namespace) for word in words], stdin=step.stdin)
        text = result.stdout + result.stderr
        assert result.returncode == step.code, f"kubectl {step.command}\nexit code {result.returncode}\n{text}"
        wanted = step.prints.replace("THE-VERSION", sandbox.version)
        assert re.search(wanted, text), f"kubectl {step.command}\n{text}\nlacks {wanted}"


def test_watch_shows_changes_as_they_happen(kubectl: Kubectl, namespace: str) -> None:
    kubectl.ok("-n", namespace, "create", "-f", "-", stdin=CONFIG_MAP)
    command = kubectl.command("-n", namespace, "get", "cm", "settings", "--watch", "-o", "jsonpath={.data.size}{'\\n'}")
    with subprocess.Popen(command, env=kubectl.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "large\n"
        kubectl.ok("-n", namespace, "patch", "cm", "settings", "-p", json.dumps({"data": {"size": "tiny"}}))
        assert process.stdout.readline() == "tiny\n"
        process.terminate()


def test_watch_table_has_rows(kubectl: Kubectl, namespace: str) -> None:
    command = kubectl.command("-n", namespace, "get", "cm", "--watch")
    with subprocess.Popen(command, env=kubectl.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        kubectl.ok("-n", namespace, "create", "-f", "-", stdin=CONFIG_MAP)
        lines = iter(process.stdout.readline, "")
        assert next(line for line in lines if line.startswith("settings")).split()[:2] == ["settings", "2"]
        process.terminate()


def test_delete_waits_for_finalizers(kubectl: Kubectl, namespace: str) -> None:
    held = CONFIG_MAP.replace("{name: settings}", "{name: settings, finalizers: [example.com/hold]}")
    kubectl.ok("-n", namespace, "create", "-f", "-", stdin=held)
    command = kubectl.command("-n", namespace, "delete", "cm", "settings", "--timeout=30s")
    with subprocess.Popen(command, env=kubectl.environment, stdout=subprocess.PIPE, text=True) as process:
        kubectl.ok(
            "-n", namespace, "wait", "--for=jsonpath={.metadata.deletionTimestamp}", "cm/settings", "--timeout=20s"
        )
        assert process.poll() is None
        kubectl.ok("-n", namespace, "patch", "cm", "settings", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        assert process.wait(timeout=20) == 0


def test_namespace_empties_itself(kubectl: Kubectl) -> None:
    kubectl.ok("create", "namespace", "doomed")
    kubectl.ok("-n", "doomed", "create", "-f", "-", stdin=CONFIG_MAP)
    kubectl.ok("delete", "namespace", "doomed", "--timeout=30s")
    assert "not found" in kubectl("get", "namespace", "doomed").stderr
