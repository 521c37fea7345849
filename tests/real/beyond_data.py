"""Requests about Windows workloads that no lint rule is the source of: Pod Security by version, restarts, failures."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from real.api import Call
from real.from_data import LEVELS, OPERATING_SYSTEMS, WORKLOADS, create, pod, windows_pod, wrapped

_UNPRIVILEGED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_RESTRICTED = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"

SPECS: dict[str, dict[str, Any]] = {
    "as restricted wants it": {"securityContext": _RESTRICTED, "containers": [{"securityContext": _UNPRIVILEGED}]},
    "restricted for Windows": {"securityContext": {"runAsNonRoot": True}},
    "only part of the containers": {
        "initContainers": [{"name": "i", "image": "i", "securityContext": {**_UNPRIVILEGED, **_RESTRICTED}}],
    },
    "says no": {
        "securityContext": {"runAsNonRoot": False},
        "containers": [{"securityContext": {"runAsNonRoot": True}}],
    },
    "a container says no": {
        "securityContext": {"runAsNonRoot": True},
        "containers": [{"securityContext": {"runAsNonRoot": False}}],
    },
    "root": {"securityContext": {"runAsUser": 0}, "containers": [{"securityContext": {"runAsUser": 0}}]},
    "the host's namespaces": {"hostNetwork": True, "hostPID": True, "hostIPC": True},
    "HostProcess": {
        "hostNetwork": True,
        "securityContext": {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}},
    },
    "a HostProcess container": {
        "hostNetwork": True,
        "containers": [{"securityContext": {"windowsOptions": {"hostProcess": True}}}],
    },
    "privileged": {"containers": [{"securityContext": {"privileged": True}}]},
    "capabilities": {"containers": [{"securityContext": {"capabilities": {"add": ["CHOWN", "SYS_TIME"]}}}]},
    "sysctls of 1.29": {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_fin_timeout", "value": "1"}]}},
    "sysctls of 1.32": {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "1"}]}},
    "a type of SELinux of 1.31": {"securityContext": {"seLinuxOptions": {"type": "container_engine_t"}}},
    "a user and a role of SELinux": {
        "containers": [{"securityContext": {"seLinuxOptions": {"user": "u", "role": "r"}}}]
    },
    "unmasked": {"hostUsers": False, "containers": [{"securityContext": {"procMount": "Unmasked"}}]},
    "users of its own": {"hostUsers": False, "securityContext": {"runAsUser": 0}},
    "volumes": {
        "volumes": [
            {"name": "a", "hostPath": {"path": "/a"}},
            {"name": "b", "nfs": {"server": "s", "path": "/"}},
            {"name": "c", "emptyDir": {}},
        ]
    },
    "ports of the host": {
        "containers": [{"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 9, "hostPort": 8080}]}]
    },
    "a probe elsewhere": {"containers": [{"livenessProbe": {"httpGet": {"port": 80, "host": "example.org"}}}]},
    "a hook elsewhere": {"containers": [{"lifecycle": {"preStop": {"tcpSocket": {"port": 80, "host": "b.example"}}}}]},
    "duplicate ports and variables": {
        "containers": [
            {
                "ports": [{"containerPort": 80}, {"containerPort": 80, "hostPort": 80}, {"containerPort": 80}],
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "x$(A)"}],
            }
        ],
        "hostAliases": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}],
        "imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}],
    },
    "fractions of bytes": {"containers": [{"resources": {"limits": {"memory": "100m"}}}]},
    "a class that is not there": {"runtimeClassName": "nowhere"},
    "spread without selector": {
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]
    },
    "restarts of containers": {"containers": [{"restartPolicy": "Never"}]},
    "rules of restarts": {
        "containers": [
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
            }
        ]
    },
    "a sidecar": {"initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always"}]},
    "an init container that restarts": {"initContainers": [{"name": "s", "image": "i", "restartPolicy": "OnFailure"}]},
    "resources of the pod and its containers": {
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        "containers": [{"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}}],
    },
    "never restarted, restarted to be resized": {
        "restartPolicy": "Never",
        "containers": [{"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}],
    },
    "mounted for all": {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [
            {
                "securityContext": {"privileged": True},
                "volumeMounts": [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}],
            }
        ],
    },
    "read-only all the way": {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [
            {
                "volumeMounts": [
                    {"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Enabled"},
                    {"name": "v", "mountPath": "/w", "readOnly": True, "recursiveReadOnly": "IfPossible",
                     "mountPropagation": "HostToContainer"},
                ]
            }
        ],
    },
    "overridden name with the host's network": {"hostNetwork": True, "hostnameOverride": "a"},
    "overridden name as a domain": {"setHostnameAsFQDN": True, "hostnameOverride": "a.example.org"},
    "an ephemeral claim": {
        "volumes": [
            {
                "name": "e",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                    }
                },
            }
        ]
    },
    "two sources": {"volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]},
}  # fmt: skip
ANNOTATIONS: list[dict[str, str]] = [
    {APPARMOR + "c": "runtime/default"},
    {APPARMOR + "c": "unconfined"},
    {APPARMOR + "c": "localhost/a"},
    {APPARMOR + "c": "localhost/"},
    {APPARMOR + "other": "runtime/default"},
    {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"},
    {"container.seccomp.security.alpha.kubernetes.io/c": "nonsense"},
    {"controller.kubernetes.io/pod-deletion-cost": "x"},
    {"scheduler.alpha.kubernetes.io/critical-pod": ""},
]
FAILURES: list[dict[str, Any]] = [
    {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}},
    {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0, 2, 1, 1]}}]}},
    {"podFailurePolicy": {"rules": [{"action": "X", "onExitCodes": {"operator": "X", "containerName": "x"}}]}},
    {"podFailurePolicy": {"rules": [{"action": "FailIndex", "onPodConditions": [{"type": "DisruptionTarget"}]}]}},
    {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "A B", "status": "X"}]}]}},
    {"podFailurePolicy": {"rules": [{}]}},
    {"podFailurePolicy": {"rules": []}, "podReplacementPolicy": "TerminatingOrFailed"},
    {"podReplacementPolicy": "X"},
    {"completionMode": "Indexed"},
    {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1, "maxFailedIndexes": 5},
    {"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": [{"succeededCount": 4}]}},
    {"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": [{"succeededIndexes": "0-1"}]}},
    {"successPolicy": {"rules": [{"succeededCount": 1}]}},
    {"maxFailedIndexes": 1},
    {"managedBy": "example.org/x"},
    {"managedBy": "x"},
    {"backoffLimit": -1},
]
LABELS: list[dict[str, str]] = [
    {"enforce": "restricted", "enforce-version": "latest"},
    {"enforce": "Restricted"},
    {"enforce": "baseline", "enforce-version": "1.25"},
    {"enforce-version": "v1.99"},
    {"warn": "x", "audit": "y", "warn-version": "z", "audit-version": ""},
]


def spec(change: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """A pod with a change; containers that are changed keep their name and image."""
    one = windows_pod(base)
    given = copy.deepcopy(change)
    for container, more in zip(one["spec"]["containers"], given.pop("containers", []), strict=False):
        container.update(more)
    one["spec"].update(given)
    return one


def calls() -> Iterator[Call]:
    """All of them."""
    for change in SPECS.values():
        for base in OPERATING_SYSTEMS.values():
            one = spec(change, base)
            yield from (create(one, level) for level in LEVELS)
            yield from (create(wrapped(kind, one)) for kind in WORKLOADS)
            yield create(wrapped("Deployment", one), "-warned")
    for given in ANNOTATIONS:
        for base in OPERATING_SYSTEMS.values():
            one = pod(windows_pod(base)["spec"], {"annotations": given})
            profiled = copy.deepcopy(one)
            profiled["spec"]["securityContext"] = {"appArmorProfile": {"type": "Unconfined"}}
            for each in (one, profiled):
                yield from (create(each, level) for level in LEVELS)
                yield from (create(wrapped(kind, each)) for kind in ("Deployment", "StatefulSet", "Job"))
    for policy in ("Always", "OnFailure", "Never", "Sometimes"):
        one = spec({"restartPolicy": policy}, OPERATING_SYSTEMS["declared"])
        yield create(one)
        yield from (create(wrapped(kind, one)) for kind in WORKLOADS)
        for failures in FAILURES:
            job = wrapped("Job", one)
            job["spec"].update(failures)
            yield create(job)
            cron = wrapped("CronJob", one)
            cron["spec"]["jobTemplate"]["spec"].update(failures)
            yield create(cron)
    for labels in LABELS:
        named = {f"pod-security.kubernetes.io/{key}": value for key, value in labels.items()}
        metadata = {"name": "labelled", "labels": named}
        yield Call("POST", "/api/v1/namespaces?dryRun=All", {"metadata": metadata})
