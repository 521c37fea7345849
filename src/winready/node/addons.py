"""kube-proxy and Flannel for Windows nodes, as objects: HostProcess pods that run the programs of the bundle.

The programs lie on the node, where ``node.ps1`` has verified them; the image is the empty base image for HostProcess
containers. Scripts go in as ConfigMaps. Nodes of one cluster may have different versions of Kubernetes: what depends on
them is decided by the scripts, which ask the program.
"""

from __future__ import annotations

import hashlib
import json
import re
from importlib import resources

from winready.cluster.applying import manifest
from winready.cluster.client import Object
from winready.node.parameters import Parameters
from winready.node.policy import policy_objects
from winready.node.sources import FLANNEL
from winready.spec.versions import Version

NAMESPACE = "winready-node"
LABELS = {"app.kubernetes.io/managed-by": "winready", "app.kubernetes.io/part-of": "winready-node"}
RBAC = "rbac.authorization.k8s.io"
FOLDER = "/etc/winready-node"
"""Where containers find their ConfigMap, below their mount point."""
MOUNTED = "%CONTAINER_SANDBOX_MOUNT_POINT%"
POWERSHELL = ["powershell.exe", "-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"]
CNI_VERSION = "0.3.1"
PROXY_HEALTH, FLANNEL_HEALTH = 10256, 8081
POLICIES_SINCE = Version(1, 30)


def objects(parameters: Parameters, *, enforce: bool = False) -> list[Object]:
    """Everything that the cluster gets, in the order in which it can be created; ``enforce``: the policy refuses."""
    found = [_namespace(), *_kube_proxy(parameters)]
    if parameters.network.cni == "flannel":
        found += _flannel(parameters)
    if has_policies(parameters):
        found += policy_objects(LABELS, enforce=enforce)
    return found


def render(parameters: Parameters) -> dict[str, str]:
    """The manifests of a bundle, by file name; empty where only the operator knows the network's name."""
    if not has_network(parameters):
        return {}
    files: dict[str, list[Object]] = {}
    for obj in objects(parameters):
        files.setdefault(_file(obj), []).append(obj)
    return {name: manifest(found) for name, found in files.items()}


def has_network(parameters: Parameters) -> bool:
    """Whether the HNS network that kube-proxy serves is known: with another pod network its name must be given."""
    network = parameters.network
    return network.cni == "flannel" or network.name not in ("cbr0", f"flannel.{network.vni}")


def _file(obj: Object) -> str:
    name = obj["metadata"]["labels"].get("app.kubernetes.io/name")
    if name:
        return f"{'20' if name == 'kube-proxy' else '30'}-{name}.yaml"
    return "10-namespace.yaml" if obj["kind"] == "Namespace" else "40-policy.yaml"


def has_policies(parameters: Parameters) -> bool:
    """Whether the API server knows policies of its own."""
    return Version.parse(parameters.server) >= POLICIES_SINCE


def _namespace() -> Object:
    levels = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": LABELS | levels}}


def kube_proxy_arguments(parameters: Parameters) -> list[str]:
    """What kube-proxy is told on every node, in every version; the script adds what only the node knows."""
    return [
        "--proxy-mode=kernelspace",
        f"--cluster-cidr={','.join(parameters.network.pod_cidrs)}",
        "--enable-dsr=true",
    ]


def _kube_proxy(parameters: Parameters) -> list[Object]:
    name = "kube-proxy"
    data = {
        "kube-proxy.ps1": _script("kube-proxy.ps1"),
        "kube-proxy.args": "\n".join(kube_proxy_arguments(parameters)) + "\n",
    }
    container: Object = {
        "name": name,
        "image": parameters.images.host_process,
        "imagePullPolicy": "IfNotPresent",
        "command": [*POWERSHELL, f"{MOUNTED}{FOLDER}/kube-proxy.ps1"],
        "env": [
            *_api_server(parameters),
            _variable("PROGRAM", rf"{parameters.paths.binaries}\kube-proxy.exe"),
            _variable("KUBE_NETWORK", parameters.network.name),
            _variable("SOURCE_VIP", "subnet" if parameters.network.cni == "flannel" else "endpoint"),
        ],
        "resources": _resources("50m", "100Mi", "500Mi"),
        "readinessProbe": _probe("/healthz", PROXY_HEALTH, 10),
        # Until the network is there nothing listens, for minutes on a slow machine.
        "livenessProbe": {
            "tcpSocket": {"port": PROXY_HEALTH},
            "periodSeconds": 30,
            "timeoutSeconds": 5,
            "failureThreshold": 12,
        },
        "volumeMounts": [{"name": "configuration", "mountPath": FOLDER, "readOnly": True}],
    }
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "system:node-proxier"}
    return [
        _account(name),
        _binding(name, role),
        _config_map(name, data),
        _daemon_set(name, [container], data, _program(parameters, "kube-proxy", parameters.kubernetes)),
    ]


def _flannel(parameters: Parameters) -> list[Object]:
    name, network = "flannel", parameters.network
    data = {
        "net-conf.json": _json(_net_conf(parameters)),
        "cni-conf.json": _json(_cni_conf(parameters)),
        "cni.ps1": _script("cni.ps1"),
    }
    mounts = [{"name": "configuration", "mountPath": FOLDER, "readOnly": True}]
    flanneld: Object = {
        "name": "flanneld",
        "image": parameters.images.host_process,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            rf"{parameters.paths.binaries}\flanneld.exe",
            "--kube-subnet-mgr",
            f"--net-config-path={MOUNTED}{FOLDER}/net-conf.json",
            f"--iface={network.interface or '$(HOST_IP)'}",
            f"--healthz-port={FLANNEL_HEALTH}",
        ],
        "env": [*_api_server(parameters), _field("HOST_IP", "status.hostIP")],
        "resources": _resources("50m", "50Mi", "300Mi"),
        "livenessProbe": _probe("/healthz", FLANNEL_HEALTH, 30, failureThreshold=6),
        "volumeMounts": mounts,
    }
    cni: Object = {
        "name": "cni",
        "image": parameters.images.host_process,
        "imagePullPolicy": "IfNotPresent",
        "command": [*POWERSHELL, f"{MOUNTED}{FOLDER}/cni.ps1"],
        "env": [
            _variable("KUBE_NETWORK", network.name),
            _variable("CNI_BINARIES", parameters.paths.cni_binaries),
            _variable("CNI_CONFIGURATION", parameters.paths.cni_configuration),
        ],
        "resources": _resources("10m", "80Mi", "300Mi"),
        "readinessProbe": {
            "exec": {"command": ["cmd.exe", "/c", "type", rf"{MOUNTED}\ready"]},
            "periodSeconds": 10,
            "timeoutSeconds": 5,
        },
        "volumeMounts": mounts,
    }
    role_name = f"{NAMESPACE}:{name}"
    role: Object = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": role_name, "labels": _labels(name)},
        "rules": [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
        ],
    }
    return [
        _account(name),
        role,
        _binding(name, {"apiGroup": RBAC, "kind": "ClusterRole", "name": role_name}),
        _config_map(name, data),
        _daemon_set(name, [flanneld, cni], data, _program(parameters, "flanneld", FLANNEL)),
    ]


def _net_conf(parameters: Parameters) -> Object:
    """What flanneld is told; the Linux side must be told the same."""
    network = parameters.network
    backend: Object = {"Type": "host-gw", "Name": network.name}
    if network.mode == "overlay":
        backend = {"Type": "vxlan", "Name": network.name, "VNI": network.vni, "Port": network.vxlan_port}
    return {"Network": _ipv4(network.pod_cidrs), "Backend": backend}


def _cni_conf(parameters: Parameters) -> Object:
    """What the container runtime is told: the plug-in of Flannel, and what that hands on to the one for Windows."""
    network = parameters.network
    services = _ipv4(network.service_cidrs)
    policies = [
        {"Type": "OutBoundNAT", "Settings": {"Exceptions": [_ipv4(network.pod_cidrs), services]}},
        {"Type": "SDNRoute", "Settings": {"DestinationPrefix": services, "NeedEncap": True}},
    ]
    return {
        "cniVersion": CNI_VERSION,
        "name": network.name,
        "type": "flannel",
        "capabilities": {"portMappings": True, "dns": True},
        "delegate": {
            "type": "win-overlay" if network.mode == "overlay" else "win-bridge",
            "apiVersion": 2,
            "loopbackDSR": True,
            "capabilities": {"portMappings": True, "dns": True},
            "policies": [{"name": "EndpointPolicy", "value": policy} for policy in policies],
        },
    }


def _ipv4(cidrs: list[str]) -> str:
    """Flannel's plug-ins for Windows know one family only."""
    return next((cidr for cidr in cidrs if ":" not in cidr), cidrs[0])


def _program(parameters: Parameters, name: str, release: str) -> str:
    """What a DaemonSet runs: the program of the bundle, or without one the release that the nodes should have."""
    file = next((file for file in parameters.files if file.name == name), None)
    if file is None:
        return f"{name} {release}"
    said = re.search(r"/v(\d[^/]*)/", file.url)
    return f"{name} {said[1] if said else release} sha256:{file.sha256}"


def _daemon_set(name: str, containers: list[Object], data: dict[str, str], program: str) -> Object:
    digest = hashlib.sha256(_json(data).encode()).hexdigest()[:16]
    pod: Object = {
        "priorityClassName": "system-node-critical",
        "serviceAccountName": name,
        "enableServiceLinks": False,
        "hostNetwork": True,
        "os": {"name": "windows"},
        "nodeSelector": {"kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64"},
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {"windowsOptions": {"hostProcess": True, "runAsUserName": r"NT AUTHORITY\SYSTEM"}},
        "containers": containers,
        "volumes": [{"name": "configuration", "configMap": {"name": name}}],
    }
    labels = _labels(name)
    # Pods notice neither that their ConfigMap changed nor that a program of the node did.
    annotations = {"winready.io/configuration": digest, "winready.io/program": program}
    metadata = {"labels": labels, "annotations": annotations}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {"metadata": metadata, "spec": pod},
        },
    }


def _labels(name: str) -> dict[str, str]:
    return {**LABELS, "app.kubernetes.io/name": name}


def _account(name: str) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": _labels(name)}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _binding(name: str, role: dict[str, str]) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{NAMESPACE}:{name}", "labels": _labels(name)},
        "roleRef": role,
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    }


def _config_map(name: str, data: dict[str, str]) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": _labels(name)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _api_server(parameters: Parameters) -> list[Object]:
    """Programs find the API server by these; its service address answers only once kube-proxy works."""
    return [
        _field("NODE_NAME", "spec.nodeName"),
        _variable("KUBERNETES_SERVICE_HOST", parameters.endpoint.host),
        _variable("KUBERNETES_SERVICE_PORT", str(parameters.endpoint.port)),
    ]


def _resources(cpu: str, memory: str, most: str) -> Object:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": "1", "memory": most}}


def _variable(name: str, value: str) -> Object:
    return {"name": name, "value": value}


def _field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _probe(path: str, port: int, period: int, **more: int) -> Object:
    return {"httpGet": {"path": path, "port": port}, "periodSeconds": period, "timeoutSeconds": 5, **more}


def _script(name: str) -> str:
    return (resources.files("winready.node") / "data" / name).read_text(encoding="ascii")


def _json(document: object) -> str:
    return json.dumps(document, indent=2) + "\n"
