"""For every rule a manifest that triggers it and manifests that must not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lint.manifests import HEALTHY, LINUX, merge, pod, workload
from winready.lint.context import Has, StorageClass, Taint, WindowsNode


@dataclass(frozen=True)
class Case:
    """Documents that trigger a rule, alternatives that do not, and the cluster they are for."""

    bad: Any
    good: tuple[Any, ...]
    kubernetes: str = "1.34"
    profile: Mapping[str, Any] = field(default_factory=dict)


def windows(change: Mapping[str, Any], *good: Any, kubernetes: str = "1.34", **metadata: Any) -> Case:
    """A change of the healthy pod triggers; the healthy pod and the same change of a Linux pod do not."""
    others = (pod(), pod(change, LINUX, **metadata), *good)
    return Case(pod(change, **metadata), others, kubernetes)


def container(**change: Any) -> dict[str, Any]:
    """A change of the first container."""
    return {"containers": [change]}


def secure(**change: Any) -> dict[str, Any]:
    """A change of the pod's security context."""
    return {"securityContext": change}


def mount(**change: Any) -> dict[str, Any]:
    """A volume mount of the first container."""
    return container(volumeMounts=[{"name": "data", "mountPath": r"C:\data", **change}])


def volume(**change: Any) -> dict[str, Any]:
    """A volume of the pod."""
    return {"volumes": [{"name": "data", **change}]}


def thing(kind: str, version: str = "v1", name: str = "thing", **rest: Any) -> dict[str, Any]:
    """Any other object."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **rest.pop("metadata", {})}, **rest}


def namespace(name: str = "team", **labels: str) -> dict[str, Any]:
    """A namespace with Pod Security labels."""
    found = {f"pod-security.kubernetes.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    return thing("Namespace", name=name, metadata={"labels": found})


def service(change: Mapping[str, Any], *good: Mapping[str, Any], kubernetes: str = "1.34", **metadata: Any) -> Case:
    """A Service in front of a Windows Deployment; in front of a Linux one it does not matter."""
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    bad = thing("Service", spec=merge(spec, dict(change)), metadata=metadata)
    plain = [[workload("Deployment"), thing("Service", spec=merge(spec, dict(one)))] for one in (*good, {"ports": []})]
    return Case([bad, workload("Deployment")], ([bad, workload("Deployment", base=LINUX)], *plain), kubernetes)


def policy(change: Mapping[str, Any], *good: Mapping[str, Any], **profile: Any) -> Case:
    """A NetworkPolicy that selects a Windows Deployment; one that selects others does not matter."""
    spec = {"podSelector": {"matchLabels": {"app": "web"}}}
    kind, version = "NetworkPolicy", "networking.k8s.io/v1"
    bad = thing(kind, version, spec=merge(spec, dict(change)))
    elsewhere = thing(
        kind, version, spec=merge(merge(spec, dict(change)), {"podSelector": {"matchLabels": {"app": "db"}}})
    )
    plain = [[workload("Deployment"), thing(kind, version, spec=merge(spec, dict(one)))] for one in good]
    return Case([workload("Deployment"), bad], ([workload("Deployment"), elsewhere], *plain), profile=profile)


def ingress(**port: Any) -> dict[str, Any]:
    """One port of an ingress rule."""
    return {"ingress": [{"ports": [port]}]}


def host_process(change: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """A correct HostProcess pod with a change."""
    options = {"hostProcess": True, "runAsUserName": r"NT AUTHORITY\SYSTEM"}
    base = merge(dict(HEALTHY), {"hostNetwork": True, "securityContext": {"windowsOptions": options}})
    return pod(change, base, **metadata)


def runtime_class(name: str, handler: str, selector: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A RuntimeClass."""
    found = thing("RuntimeClass", "node.k8s.io/v1", name, handler=handler)
    return {**found, "scheduling": {"nodeSelector": dict(selector)}} if selector else found


def cluster(*nodes: WindowsNode, **more: Any) -> dict[str, Any]:
    """The profile of a cluster that was asked, with these Windows nodes."""
    return {"has": Has(nodes=nodes, **more)}


def node(name: str = "w1", *taints: str, **labels: str) -> WindowsNode:
    """A Windows node of four cores."""
    found = {"kubernetes.io/os": "windows", **labels}
    return WindowsNode(name, found, tuple(map(Taint.parse, taints)), {"cpu": "4", "memory": "16Gi"})


def affinity(key: str, operator: str, *values: str) -> dict[str, Any]:
    """A required node affinity."""
    expression = {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def claiming(name: str | None, **spec: Any) -> dict[str, Any]:
    """A Windows StatefulSet whose pods claim volumes of a class, or of none."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    claim |= {} if name is None else {"storageClassName": name}
    return workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}])


def injected() -> dict[str, Any]:
    """A namespace whose pods get a sidecar of Istio."""
    return thing("Namespace", name="team", metadata={"labels": {"istio-injection": "enabled"}})


def scaled(most: int, kind: str = "Deployment", name: str = "web") -> dict[str, Any]:
    """An autoscaler of a workload."""
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name}, "maxReplicas": most}
    return thing("HorizontalPodAutoscaler", "autoscaling/v2", name="scaler", spec=spec)


def used_class(**change: Any) -> Case:
    """A StorageClass that a Windows StatefulSet uses; one that nobody uses does not matter."""
    found = {"provisioner": "disk.csi.example.org", **change}
    storage = thing("StorageClass", "storage.k8s.io/v1", "fast", **found)
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}
    return Case([storage, workload("StatefulSet", volumeClaimTemplates=[claim])], ([storage, workload("StatefulSet")],))


FRONT = thing("Service", spec={"selector": {"app": "web"}})
HOST_PROCESS = {"hostNetwork": True, "securityContext": {"windowsOptions": {"hostProcess": True}}}
UNDECLARED = {"os": None}
UNPLACED = {"os": None, "nodeSelector": None}
BARE = {"os": None, "nodeSelector": None, "tolerations": None, "securityContext": None}
IMAGE = "mcr.microsoft.com/windows/nanoserver:ltsc2022"
EXCEPT = {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}]}
NOT_IN = {
    "ingress": [{"from": [{"podSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}}]}]
}
BETA = {"nodeSelector": {"kubernetes.io/os": None, "beta.kubernetes.io/os": "windows"}}
POD_AS_TEXT = "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: a, workingDir: {}}}]}}"
RESTRICTED = namespace(enforce="restricted")

CASES: dict[str, Case] = {
    "os-field-missing": Case(pod(UNDECLARED), (pod(), pod(base=LINUX))),
    "os-field-invalid-value": Case(pod({"os": {"name": "Windows"}}), (pod(), pod({"os": {"name": "linux"}}, LINUX))),
    "os-field-without-node-selector": Case(pod({"nodeSelector": None}), (pod(), pod(UNDECLARED))),
    "os-field-selector-conflict": Case(pod({"nodeSelector": {"kubernetes.io/os": "linux"}}), (pod(), pod(base=LINUX))),
    "os-pod-label-mismatch": Case(
        pod(labels={"kubernetes.io/os": "linux"}),
        (pod(labels={"kubernetes.io/os": "windows"}), pod(labels={"os": "linux"})),
    ),
    "os-linux-with-windows-options": Case(
        pod({"os": {"name": "linux"}, **secure(windowsOptions={"runAsUserName": "a"})}, LINUX), (pod(), pod(base=LINUX))
    ),
    "sched-windows-image-unpinned": Case(
        pod({**BARE, "containers": [{"image": IMAGE}]}), (pod(), pod({**BARE, "containers": [{"image": "nginx"}]}))
    ),
    "sched-linux-workload-unpinned": Case(
        pod({"nodeSelector": None}, LINUX), (pod(base=LINUX), pod()), profile={"windows_nodes": True}
    ),
    "sched-daemonset-unpinned": Case(
        workload("DaemonSet", {"nodeSelector": None}, LINUX),
        (
            workload("DaemonSet"),
            workload("DaemonSet", base=LINUX),
            workload("Deployment", {"nodeSelector": None}, LINUX),
        ),
    ),
    "sched-missing-toleration": Case(
        pod({"tolerations": None}), (pod(), pod(base=LINUX), pod({"tolerations": [{"operator": "Exists"}]}))
    ),
    "sched-no-node": Case(
        pod({"nodeSelector": {"disk": "ssd"}}),
        (
            pod(),
            pod({"nodeSelector": {"disk": "hdd"}}),
            pod({"nodeSelector": {"disk": "ssd"}, "nodeName": "w2"}, LINUX),
            pod(affinity("disk", "Exists")),
            # That every node has a taint is told by sched-missing-toleration.
            pod(container(resources={"limits": {"cpu": "4", "memory": "16Gi"}})),
        ),
        profile=cluster(node(), node("w2", disk="hdd")),
    ),
    "sched-priority-unknown": Case(
        pod({"priorityClassName": "gold"}),
        (
            pod(),
            pod({"priorityClassName": "silver"}),
            pod({"priorityClassName": "system-node-critical"}),
            [
                pod({"priorityClassName": "gold"}),
                thing("PriorityClass", "scheduling.k8s.io/v1", "gold", value=1),
            ],
        ),
        profile=cluster(priority_classes=frozenset({"silver"})),
    ),
    "sched-toleration-only": Case(
        pod({**UNPLACED, "containers": [{"image": "example.org/app:1"}]}), (pod(), pod(UNDECLARED), pod(base=LINUX))
    ),
    "sched-beta-os-label": Case(
        [pod(BETA), runtime_class("w", "runhcs", {"beta.kubernetes.io/os": "windows"})], (pod(), pod(base=LINUX))
    ),
    "sched-windows-build-unpinned": Case(
        pod(),
        (
            pod({"nodeSelector": {"node.kubernetes.io/windows-build": "10.0.20348"}}),
            pod(container(image="example.org/app:1")),
        ),
        profile={"builds": (20348, 26100)},
    ),
    "sched-arch-not-amd64": windows(
        {"nodeSelector": {"kubernetes.io/arch": "arm64"}}, pod({"nodeSelector": {"kubernetes.io/arch": "amd64"}})
    ),
    "rc-os-selector": Case(
        runtime_class("windows-2022", "runhcs-wcow-process"),
        (runtime_class("w", "runhcs-wcow-process", {"kubernetes.io/os": "windows"}), runtime_class("gvisor", "runsc")),
    ),
    "rc-selector-conflict": Case(
        [pod({"runtimeClassName": "w"}), runtime_class("w", "runhcs", {"kubernetes.io/os": "linux"})],
        ([pod({"runtimeClassName": "w"}), runtime_class("w", "runhcs", {"kubernetes.io/os": "windows"})],),
    ),
    "rc-unknown": Case(
        pod({"runtimeClassName": "w"}),
        (pod(), [pod({"runtimeClassName": "w"}), runtime_class("w", "runhcs-wcow-process")]),
        profile=cluster(runtime_classes=True),
    ),
    "rc-hyperv-handler": Case(
        [pod({"runtimeClassName": "w"}), runtime_class("w", "runhcs-wcow-hypervisor", {"kubernetes.io/os": "windows"})],
        ([pod({"runtimeClassName": "w"}), runtime_class("w", "runhcs-wcow-process", {"kubernetes.io/os": "windows"})],),
    ),
    "sc-apparmor": windows(secure(appArmorProfile={"type": "RuntimeDefault"})),
    "annotation-apparmor": windows(
        {}, annotations={"container.apparmor.security.beta.kubernetes.io/iis": "runtime/default"}
    ),
    "sc-selinux-options": windows(container(securityContext={"seLinuxOptions": {"level": "s0"}})),
    "sc-selinux-change-policy": windows(secure(seLinuxChangePolicy="Recursive")),
    "sc-seccomp": windows(secure(seccompProfile={"type": "RuntimeDefault"})),
    "sc-fsgroup": windows(secure(fsGroup=0)),
    "sc-fsgroup-change-policy": windows(secure(fsGroupChangePolicy="Always")),
    "sc-sysctls": windows(secure(sysctls=[{"name": "a", "value": "b"}]), pod(secure(sysctls=[]))),
    "sc-run-as-user": windows(container(securityContext={"runAsUser": 0})),
    "sc-run-as-group": windows(secure(runAsGroup=1)),
    "sc-supplemental-groups": windows(secure(supplementalGroups=[])),
    "sc-supplemental-groups-policy": windows(secure(supplementalGroupsPolicy="Merge")),
    "sc-run-as-non-root": Case(
        pod({"securityContext": {"runAsNonRoot": True, "windowsOptions": None}}),
        (
            pod(secure(runAsNonRoot=True)),
            pod(secure(runAsNonRoot=False, windowsOptions=None)),
            host_process(secure(runAsNonRoot=True)),
        ),
    ),
    "sc-privileged": windows(container(securityContext={"privileged": False})),
    "sc-allow-privilege-escalation": windows(container(securityContext={"allowPrivilegeEscalation": False})),
    "sc-capabilities": windows(container(securityContext={"capabilities": {"drop": ["ALL"]}})),
    "sc-read-only-rootfs": windows(container(securityContext={"readOnlyRootFilesystem": True})),
    "sc-proc-mount": windows(container(securityContext={"procMount": "Default"})),
    "win-run-as-user-name": Case(
        pod(secure(windowsOptions={"runAsUserName": r".\user"})),
        (pod(), pod(secure(windowsOptions={"runAsUserName": r"NT AUTHORITY\NetworkService"}))),
    ),
    "win-run-as-user-name-unknown": Case(
        pod(secure(windowsOptions={"runAsUserName": "webuser"})), (pod(), host_process())
    ),
    "gmsa-name-without-webhook": Case(pod(secure(windowsOptions={"gmsaCredentialSpecName": "web"})), (pod(),)),
    "gmsa-spec-unknown": Case(
        pod(secure(windowsOptions={"gmsaCredentialSpecName": "webapp"})),
        (
            pod(),
            pod(container(securityContext={"windowsOptions": {"gmsaCredentialSpecName": "intranet"}})),
            [
                pod(secure(windowsOptions={"gmsaCredentialSpecName": "webapp"})),
                thing("GMSACredentialSpec", "windows.k8s.io/v1", "webapp"),
            ],
        ),
        profile=cluster(credential_specs=frozenset({"intranet"})),
    ),
    "gmsa-field-limits": Case(
        [
            pod(secure(windowsOptions={"gmsaCredentialSpecName": "gmsa-WebApp1"})),
            thing("GMSACredentialSpec", "windows.k8s.io/v1", "Web"),
        ],
        (
            [
                pod(secure(windowsOptions={"gmsaCredentialSpecName": "gmsa-webapp1"})),
                thing("GMSACredentialSpec", "windows.k8s.io/v1", "web"),
            ],
        ),
    ),
    "pod-host-pid": windows({"hostPID": True}, pod({"hostPID": False})),
    "pod-host-ipc": windows({"hostIPC": True}, pod({"hostIPC": False})),
    "pod-share-process-namespace": windows({"shareProcessNamespace": False}),
    "pod-host-users": windows({"hostUsers": True}),
    "pod-host-network": windows({"hostNetwork": True}, host_process()),
    "pod-dns-cluster-first-with-host-net": windows(
        {"dnsPolicy": "ClusterFirstWithHostNet"}, pod({"dnsPolicy": "ClusterFirst"})
    ),
    "pod-dns-partial-names": windows(
        container(env=[{"name": "API", "value": "http://api.backend:8080/v1"}]),
        pod(container(env=[{"name": "API", "value": "http://api:8080"}, {"name": "F", "value": "web.config"}])),
        pod(container(env=[{"name": "API", "value": "api.backend.svc.cluster.local"}, {"name": "V", "value": "1.2"}])),
    ),
    "pod-dns-config": windows({"dnsConfig": {"searches": ["corp.example.org"]}}, pod({"dnsConfig": {}})),
    "pod-host-aliases": windows({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}]}, pod({"hostAliases": []})),
    "pod-hostname-fields": windows({"hostname": "web"}),
    "pod-hostname-override": windows({"hostnameOverride": "web"}, kubernetes="1.35"),
    "pod-multi-container": windows({"containers": [{}, {"name": "b", "image": IMAGE}]}),
    "ctr-host-port": windows(
        container(ports=[{"containerPort": 80, "hostPort": 80}]), pod(container(ports=[{"containerPort": 80}]))
    ),
    "ctr-port-sctp": windows(
        container(ports=[{"containerPort": 80, "protocol": "SCTP"}]), pod(container(ports=[{"protocol": "TCP"}]))
    ),
    "net-icmp": windows(container(command=["cmd.exe", "/c", "ping 8.8.8.8"]), pod(container(command=["shopping.exe"]))),
    "probe-types": windows(container(livenessProbe={"tcpSocket": {"port": 80}})),
    "lifecycle-hooks": windows(container(lifecycle={"preStop": {"sleep": {"seconds": 5}}})),
    "termination-grace-period": windows({"terminationGracePeriodSeconds": 60}),
    "lifecycle-stop-signal": windows(
        container(lifecycle={"stopSignal": "SIGUSR1"}), pod(container(lifecycle={"stopSignal": "SIGTERM"}))
    ),
    "termination-message-path": windows(container(terminationMessagePath=r"C:\end")),
    "ephemeral-target-container": windows(
        {"ephemeralContainers": [{"name": "d", "image": IMAGE, "targetContainerName": "iis"}]}
    ),
    "res-cpu-limit": Case(pod(), (pod(container(resources={"limits": {"cpu": None}})), pod(base=LINUX))),
    "res-memory-limit": Case(pod(), (pod(container(resources={"limits": {"memory": None}})), pod(base=LINUX))),
    "res-requests": windows(container(resources={"requests": {"cpu": "1"}})),
    "pod-sidecar-injection": Case(
        pod(annotations={"vault.hashicorp.com/agent-inject": "true"}),
        (
            pod(),
            pod(base=LINUX, annotations={"vault.hashicorp.com/agent-inject": "true"}),
            pod(annotations={"vault.hashicorp.com/agent-inject": "false", "linkerd.io/inject": "disabled"}),
            pod(annotations={"vault.hashicorp.com/agent-inject-status": "update"}),
            pod(labels={"sidecar.istio.io/inject": "false"}),
            pod(labels={"linkerd.io/inject": "enabled"}),
            pod(annotations={"istio.io/rev": "stable"}),
            [injected(), pod(namespace="team", labels={"sidecar.istio.io/inject": "false"})],
            [injected(), pod({"hostNetwork": True}, namespace="team")],
            [injected(), pod(namespace="other")],
            [injected(), pod(base=LINUX, namespace="team")],
        ),
    ),
    "res-missing-limits": Case(
        pod(container(resources={"limits": {"cpu": None}})),
        (
            pod(),
            pod(base=LINUX),
            pod({**container(resources={"limits": {"cpu": None}}), "priorityClassName": "system-node-critical"}),
            pod({**container(resources={"limits": {"cpu": None}}), **HOST_PROCESS}),
        ),
    ),
    "res-hugepages": windows(
        container(resources={"limits": {"hugepages-2Mi": "1Gi"}}), pod(volume(emptyDir={"medium": "Memory"}))
    ),
    "res-pod-level": windows({"resources": {"limits": {"cpu": "1"}}}),
    "res-in-place-resize": windows(container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}])),
    "res-dra-claims": windows({"resourceClaims": [{"name": "gpu"}]}, pod({"resourceClaims": []})),
    "res-overhead": windows({"overhead": {"memory": "100Mi"}}),
    "vol-subpath": windows(mount(subPath="a"), pod(mount()), kubernetes="1.36"),
    "vol-mount-path-linux-style": windows(mount(mountPath="/data"), pod(mount()), pod(mount(mountPath="/"))),
    "vol-mount-path-c-root": windows(mount(mountPath="C:"), pod(mount(mountPath="D:")), pod(mount())),
    "vol-mount-propagation": windows(mount(mountPropagation="HostToContainer"), pod(mount(mountPropagation="None"))),
    "vol-recursive-read-only": windows(mount(recursiveReadOnly="Enabled"), pod(mount(recursiveReadOnly="Disabled"))),
    "vol-read-only-mount": windows(mount(readOnly=True), pod(mount(readOnly=False))),
    "vol-devices-block": Case(
        [
            pod(
                {
                    **container(volumeDevices=[{"name": "data", "devicePath": "/d"}]),
                    **volume(persistentVolumeClaim={"claimName": "raw"}),
                }
            ),
            thing("PersistentVolumeClaim", name="raw", spec={"volumeMode": "Block"}),
        ],
        (pod(), thing("PersistentVolumeClaim", name="raw", spec={"volumeMode": "Block"})),
    ),
    "vol-emptydir": windows(volume(emptyDir={})),
    "vol-emptydir-memory": windows(volume(emptyDir={"medium": "Memory"}), pod(volume(emptyDir={"medium": ""}))),
    "vol-configmap-secret": windows(volume(secret={"secretName": "s"})),
    "vol-default-mode": windows(
        volume(secret={"secretName": "s", "defaultMode": 0o400}), pod(volume(secret={"secretName": "s"}))
    ),
    "vol-posix-fields-1-37": windows(volume(emptyDir={"mode": 0o700}), kubernetes="1.37"),
    "vol-projected-ownership": Case(
        pod(volume(projected={"sources": []})),
        (pod(volume(emptyDir={})), pod({**volume(projected={"sources": [{}]}), "securityContext": None})),
    ),
    "vol-hostpath-linux-path": windows(
        volume(hostPath={"path": "/etc/ssl"}),
        pod(volume(hostPath={"path": "/var/log/pods"})),
        pod(volume(hostPath={"path": r"C:\etc"})),
    ),
    "vol-hostpath-type-device": windows(
        volume(hostPath={"path": "C:", "type": "CharDevice"}), pod(volume(hostPath={"type": "Directory"}))
    ),
    "vol-hostpath-type-socket": windows(
        volume(hostPath={"path": "C:", "type": "Socket"}), pod(volume(hostPath={"type": "Directory"}))
    ),
    "vol-hostpath-named-pipe": windows(
        volume(hostPath={"path": r"\\.\pipe\a"}),
        pod(volume(hostPath={"path": r"C:\pipe\a"})),
        host_process(volume(hostPath={"path": r"\\.\pipe\a"})),
    ),
    "vol-nfs": windows(volume(nfs={"server": "s", "path": "/"})),
    "vol-linux-only-types": windows(volume(iscsi={"iqn": "i"})),
    "vol-cloud-in-tree": windows(volume(azureDisk={"diskName": "d"})),
    "vol-flexvolume": windows(volume(flexVolume={"driver": "smb"})),
    "vol-csi-driver": used_class(),
    "vol-csi-linux-only": used_class(provisioner="nfs.csi.k8s.io"),
    "vol-csi-not-on-windows": Case(
        claiming("fast"),
        (
            claiming("slow"),
            claiming(None),
            [claiming("fast"), thing("StorageClass", "storage.k8s.io/v1", "fast", provisioner="slow.example.org")],
            pod(volume(csi={"driver": "slow.example.org"})),
            pod(volume(csi={"driver": "fast.example.org"}), LINUX),
        ),
        profile=cluster(
            storage_classes={
                "fast": StorageClass("fast.example.org"),
                "slow": StorageClass("slow.example.org", default=True),
            },
            drivers_elsewhere=frozenset({"fast.example.org"}),
        ),
    ),
    "vol-class-unknown": Case(
        claiming("gone"),
        (
            claiming("smb"),
            claiming(""),
            claiming("by-hand"),
            claiming("gone", volumeName="disk"),
            [claiming("gone"), thing("StorageClass", "storage.k8s.io/v1", "gone", provisioner="a.example.org")],
            [claiming("gone"), thing("PersistentVolume", name="disk", spec={"storageClassName": "gone"})],
            [
                claiming(None),
                thing(
                    "StorageClass",
                    "storage.k8s.io/v1",
                    "own",
                    provisioner="a.example.org",
                    metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                ),
            ],
        ),
        profile=cluster(storage_classes={"smb": StorageClass("smb.csi.k8s.io")}, volume_classes=frozenset({"by-hand"})),
    ),
    "vol-fstype": used_class(parameters={"fsType": "ext4"}),
    "vol-mount-options": used_class(mountOptions=["dir_mode=0777"]),
    "vol-expansion": used_class(allowVolumeExpansion=True),
    "vol-image": windows(volume(image={"reference": "r"}), kubernetes="1.35"),
    "vol-local-pv": Case(
        [
            pod(volume(persistentVolumeClaim={"claimName": "data"})),
            thing("PersistentVolumeClaim", name="data", spec={"volumeName": "disk"}),
            thing("PersistentVolume", name="disk", spec={"local": {"path": r"D:\disk"}}),
        ],
        (thing("PersistentVolume", name="disk", spec={"local": {"path": "/mnt/disk"}}),),
    ),
    "img-os-build-mismatch": Case(
        pod({"nodeSelector": {"node.kubernetes.io/windows-build": "10.0.26100"}, **container(image="a/b:ltsc2019")}),
        (
            pod({"nodeSelector": {"node.kubernetes.io/windows-build": "10.0.26100"}}),
            pod({"nodeSelector": {"node.kubernetes.io/windows-build": "10.0.20348.2527"}}),
            host_process(
                {"nodeSelector": {"node.kubernetes.io/windows-build": "10.0.26100"}, **container(image="a/b:ltsc2019")}
            ),
        ),
    ),
    "img-unsupported-server-release": Case(
        pod(container(image="a/b:1-ltsc2019")), (pod(), pod(container(image="a/b:1"))), "1.35"
    ),
    "img-latest-tag": windows(container(image="mcr.microsoft.com/windows/servercore"), pod(container(image=IMAGE))),
    "img-linux-only": Case(
        pod(container(image="docker.io/library/nginx:1.27")),
        (
            pod(),
            pod(base=LINUX),
            pod(container(image="registry.example/team/nginx:1.27")),
            pod(container(image="nginx-for-windows:1.27")),
            pod(container(image="nginx:1.27-nanoserver-ltsc2022")),
            pod(container(image="python:3.12")),
            pod(container(image="registry.example/app:alpinelodge")),
            pod(container(image="envoyproxy/envoy-windows:v1.27.0")),
            # It only tolerates the taint: its image says that it is for Linux.
            pod({**container(image="nginx:1.27"), "os": None, "nodeSelector": None}),
        ),
    ),
    "img-hyperv-annotation": windows({}, annotations={"experimental.windows.kubernetes.io/isolation-type": "hyperv"}),
    "img-nanoserver-powershell": Case(
        pod(container(image=IMAGE, command=["cmd", "/c", "powershell -c ls"])),
        (
            pod(container(command=["powershell"])),
            pod(container(image=IMAGE, command=["pwsh"])),
            pod(container(image=IMAGE, args=["powershellish"])),
        ),
    ),
    "cmd-linux-shell": windows(
        container(command=["/bin/sh", "-c", "true"]),
        pod(container(command=["cmd", "/c", "dir"], args=["test"])),
        pod(container(image="registry.k8s.io/e2e-test-images/agnhost:2.53", command=["sh"])),
    ),
    "cmd-powershell-dollar": windows(
        container(command=["powershell", "-c", "echo $(HOST)"]),
        pod(container(command=["powershell", "-c", "echo $host"])),
        pod(container(command=["cmd", "$(HOST)"])),
    ),
    "path-yaml-escape": Case(POD_AS_TEXT.format(r'"C:\temp"'), (POD_AS_TEXT.format(r"'C:\temp'"),)),
    "cmd-argument-quoting": windows(container(args=['say "hello"']), pod(container(args=["say hello"]))),
    "hpc-gate": Case(host_process(), (pod(), pod(secure(windowsOptions={"hostProcess": False})))),
    "hpc-all-containers": Case(
        host_process(container(securityContext={"windowsOptions": {"hostProcess": False}})), (host_process(), pod())
    ),
    "hpc-host-network-required": Case(host_process({"hostNetwork": None}), (host_process(), pod())),
    "hpc-run-as-user-name": Case(host_process(secure(windowsOptions={"runAsUserName": None})), (host_process(), pod())),
    "hpc-run-as-non-root": Case(
        host_process(secure(runAsNonRoot=True)), (host_process(), pod(secure(runAsNonRoot=True)))
    ),
    "hpc-named-pipe-mount": Case(
        host_process(volume(hostPath={"path": r"\\.\pipe\docker_engine"})),
        (host_process(), pod(volume(hostPath={"path": r"\\.\pipe\a"}))),
    ),
    "hpc-volume-paths": Case(host_process(mount()), (host_process(), pod(mount()))),
    "hpc-hyperv": Case(
        [
            host_process({"runtimeClassName": "w"}),
            runtime_class("w", "runhcs-wcow-hypervisor", {"kubernetes.io/os": "windows"}),
        ],
        (
            [
                host_process({"runtimeClassName": "w"}),
                runtime_class("w", "runhcs-wcow-process", {"kubernetes.io/os": "windows"}),
            ],
            pod(),
        ),
    ),
    "psa-restricted-needs-os": Case(
        [pod(UNDECLARED, namespace="team"), RESTRICTED],
        ([pod(namespace="team"), RESTRICTED], [pod(UNDECLARED, namespace="other"), RESTRICTED]),
    ),
    "psa-restricted-pinned-old": Case(
        [pod(namespace="team"), namespace(enforce="restricted", enforce_version="v1.24")],
        (
            [pod(namespace="team"), namespace(enforce="restricted", enforce_version="v1.25")],
            [pod(base=LINUX, namespace="team"), namespace(enforce="restricted", enforce_version="v1.24")],
            [pod(namespace="team"), namespace(enforce="baseline", enforce_version="v1.24")],
        ),
    ),
    "psa-run-as-non-root": Case(
        [pod(namespace="team"), RESTRICTED],
        (
            [pod(secure(runAsNonRoot=True), namespace="team"), RESTRICTED],
            [pod(namespace="team"), namespace(enforce="baseline")],
        ),
    ),
    "psa-host-process": Case(
        [host_process(namespace="team"), namespace(enforce="baseline")],
        (
            [host_process(namespace="team"), namespace(enforce="privileged")],
            [pod(namespace="team"), namespace(enforce="baseline")],
        ),
    ),
    "svc-types": Case(
        [thing("Service", spec={"selector": {"app": "web"}}), workload("Deployment")],
        (
            [thing("Service", spec={"selector": {"app": "db"}}), workload("Deployment")],
            thing("Service", "serving.knative.dev/v1", spec={}),
        ),
    ),
    "svc-session-affinity": service({"sessionAffinity": "ClientIP"}, {"sessionAffinity": "None"}),
    "svc-session-affinity-timeout": service({"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}}),
    "svc-external-traffic-policy-local": service(
        {"externalTrafficPolicy": "Local"}, {"externalTrafficPolicy": "Cluster"}
    ),
    "svc-internal-traffic-policy-local": service(
        {"internalTrafficPolicy": "Local"}, {"internalTrafficPolicy": "Cluster"}
    ),
    "svc-dual-stack": service({"ipFamilyPolicy": "RequireDualStack"}, {"ipFamilyPolicy": "SingleStack"}),
    "svc-ipv6-only": service({"ipFamilies": ["IPv6"]}, {"ipFamilies": ["IPv4", "IPv6"]}),
    "svc-load-balancer-source-ranges": service(
        {"loadBalancerSourceRanges": ["10.0.0.0/8"]}, {"loadBalancerSourceRanges": []}
    ),
    "svc-sctp": service({"ports": [{"protocol": "SCTP"}]}, {"ports": [{"protocol": "UDP"}]}),
    "svc-too-many-backends": Case(
        [FRONT, workload("Deployment", replicas=3), scaled(65)],
        (
            [FRONT, workload("Deployment", replicas=64)],
            [FRONT, workload("Deployment", replicas=3), scaled(64)],
            [FRONT, workload("Deployment"), scaled(65, name="other")],
            [FRONT, workload("Deployment"), scaled(65, kind="StatefulSet")],
        ),
    ),
    "svc-mixed-target-ports": Case(
        [
            thing("Service", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}),
            workload("Deployment", container(ports=[{"name": "http", "containerPort": 80}])),
            workload("StatefulSet", container(ports=[{"name": "http", "containerPort": 8080}])),
        ],
        (
            [
                thing("Service", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}),
                workload("Deployment", container(ports=[{"name": "http", "containerPort": 80}])),
            ],
            # Each port of a Service has a load balancer, and with it a back-end port, of its own.
            [
                merge(FRONT, {"spec": {"ports": [{"targetPort": "http"}, {"targetPort": "https"}]}}),
                workload(
                    "Deployment",
                    container(
                        ports=[{"name": "http", "containerPort": 8080}, {"name": "https", "containerPort": 8443}]
                    ),
                ),
            ],
        ),
    ),
    "svc-traffic-distribution": service({"trafficDistribution": "PreferClose"}),
    "svc-dsr-annotations": service({}, annotations={"preserve-destination": "true"}),
    "np-needs-plugin": policy({}),
    "np-named-port": policy(ingress(port="http"), ingress(port=80)),
    "np-ip-block-except": policy(EXCEPT, {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}),
    "np-negative-selectors": policy(NOT_IN, {"ingress": [{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]}]}),
    "np-protocol-sctp": policy(ingress(protocol="SCTP"), ingress(protocol="TCP")),
    "np-protocol-udp": policy(ingress(protocol="UDP"), ingress(protocol="TCP")),
    "np-end-port": policy(ingress(port=80, endPort=90), ingress(port=80)),
    "np-ipv6": policy(
        {"egress": [{"to": [{"ipBlock": {"cidr": "fd00::/8"}}]}]},
        {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
    ),
    "np-host-process": Case(
        [host_process(labels={"app": "a"}), thing("NetworkPolicy", "networking.k8s.io/v1", spec={"podSelector": {}})],
        ([pod(labels={"app": "a"}), thing("NetworkPolicy", "networking.k8s.io/v1", spec={"podSelector": {}})],),
    ),
    "kinds-workload-controllers": Case(workload("Deployment"), (pod(), workload("Deployment", base=LINUX))),
    "kinds-scaling-quota": Case(
        [thing("ResourceQuota", spec={"hard": {}}), pod()],
        ([thing("ResourceQuota", spec={"hard": {}}), pod(base=LINUX)],),
    ),
    "file-duplicate-key": Case("a: 1\na: 2", ("a: 1\nb: {a: 2}",)),
    "suppression-incomplete": Case(
        "# winready:ignore sc-privileged\nkind: a",
        ("# winready:ignore sc-privileged because it is removed by the chart\nkind: a", "# winready is great\nkind: a"),
    ),
}
# Read as a file of its own: only the very first character of a file makes kubectl take it for JSON.
FILE_CASES: dict[str, tuple[str, str]] = {
    "file-flow-yaml": ("{apiVersion: v1, kind: Pod}\n", '{"apiVersion": "v1", "kind": "Pod"}\n'),
}
