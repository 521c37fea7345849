r"""A policy for every namespace that is not a system one: no helpers with the rights of a node unless somebody said so.

The proposal for Windows workers came with a sample PodSecurityPolicy; those are gone. The levels of Pod Security do the
same per namespace, but a namespace without a label is privileged. This policy closes that gap, and warns by default:

- HostProcess containers, of every kind, asked for by the pod or by the container;
- volumes of the node (``hostPath``) in pods that may come to a Windows node. The pipe of the container runtime is such
  a volume, and whoever has it is administrator of the node. Windows spells one path in many ways, so no list of paths
  would hold: all are refused, however they are written, and the pipe only has words of its own.

A pod may come to a Windows node unless it says that it is for Linux, by what a kubelet insists on (``spec.os``, node
selector, required affinity): a pod that says nothing must not be a way around.

Pods are what is refused, whoever makes them. People write workloads, and their controllers are the ones who are warned
or refused; so templates are looked at, too, for a warning and never more than that, as Pod Security does it.
"""

from __future__ import annotations

from winready.cluster.client import Object

NAME = "winready-node"
GROUP = "admissionregistration.k8s.io"
ENFORCE = "pod-security.kubernetes.io/enforce"
SYSTEM = ["kube-system", "kube-public", "kube-node-lease"]
OS = "kubernetes.io/os"
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_ALLOWED = f"only namespaces with the label {ENFORCE}=privileged may have them"
_PIPE = r"p.contains('\\pipe\\') || p.contains('namedpipe') || p.contains('containerd-containerd')"
VALIDATIONS = {
    "!variables.hostProcess": f"HostProcess containers are administrators of their node; {_ALLOWED}",
    f"!variables.mayBeWindows || !variables.hostPaths.exists(p, {_PIPE})": (
        f"the pipes of a node lead to its container runtime, which makes administrators; {_ALLOWED}"
    ),
    "!variables.mayBeWindows || variables.hostPaths.size() == 0": (
        f"volumes of the node (hostPath) reach its programs and secrets on Windows; {_ALLOWED}; a pod for Linux says "
        f"so by spec.os or the node selector {OS}"
    ),
}


def _set(where: str, *fields: str) -> str:
    """Whether a field deep below something is there, each step of the way asked for first."""
    steps = [f"has({'.'.join([where, *fields[: place + 1]])})" for place in range(len(fields))]
    return " && ".join(steps)


def _host_process(where: str) -> str:
    path = ("securityContext", "windowsOptions", "hostProcess")
    return f"({_set(where, *path)} && {'.'.join([where, *path])})"


def _variables(spec: str) -> list[dict[str, str]]:
    pod = "variables.spec"
    asked = [f"({_set(pod, field)} && {pod}.{field}.exists(c, {_host_process('c')}))" for field in _CONTAINERS]
    terms = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    linux_only = f"e.key == '{OS}' && e.operator == 'In' && e.values == ['linux']"
    for_linux = [
        f"({_set(pod, 'os', 'name')} && {pod}.os.name == 'linux')",
        f"({_set(pod, 'nodeSelector')} && '{OS}' in {pod}.nodeSelector && {pod}.nodeSelector['{OS}'] == 'linux')",
        f"({_set(pod, *terms)} && {'.'.join([pod, *terms])}.all(t, has(t.matchExpressions) && "
        f"t.matchExpressions.exists(e, {linux_only})))",
    ]
    plain = r"v.hostPath.path.lowerAscii().replace('/', '\\')"
    paths = f"{_set(pod, 'volumes')} ? {pod}.volumes.filter(v, has(v.hostPath)).map(v, {plain}) : []"
    return [
        {"name": "spec", "expression": spec},
        {"name": "hostProcess", "expression": " || ".join([_host_process(pod), *asked])},
        {"name": "mayBeWindows", "expression": f"!({' || '.join(for_linux)})"},
        {"name": "hostPaths", "expression": paths},
    ]


def _rule(group: str, resources: list[str], *operations: str) -> Object:
    return {"apiGroups": [group], "apiVersions": ["v1"], "operations": list(operations), "resources": resources}


# No pod becomes HostProcess later, except by a container that joins it; refusing other updates would only keep
# finalizers of old pods from being removed.
PODS = [_rule("", ["pods"], "CREATE"), _rule("", ["pods/ephemeralcontainers"], "UPDATE")]
TEMPLATES = [
    _rule("apps", ["deployments", "daemonsets", "statefulsets", "replicasets"], "CREATE", "UPDATE"),
    _rule("batch", ["jobs"], "CREATE", "UPDATE"),
    _rule("", ["replicationcontrollers"], "CREATE", "UPDATE"),
]
CRON_JOBS = [_rule("batch", ["cronjobs"], "CREATE", "UPDATE")]


def policy_objects(labels: dict[str, str], *, enforce: bool) -> list[Object]:
    """The policies and what puts them into force: pods with a warning or a refusal, templates with a warning."""
    warn = ["Warn", "Audit"]
    return [
        *_policy("pods", PODS, "object.spec", labels, ["Deny"] if enforce else warn),
        *_policy("templates", TEMPLATES, "object.spec.template.spec", labels, warn),
        *_policy("cronjobs", CRON_JOBS, "object.spec.jobTemplate.spec.template.spec", labels, warn),
    ]


def _policy(name: str, rules: list[Object], spec: str, labels: dict[str, str], actions: list[str]) -> list[Object]:
    outside = {
        "matchExpressions": [
            {"key": ENFORCE, "operator": "NotIn", "values": ["privileged"]},
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": SYSTEM},
        ]
    }
    metadata = {"name": f"{NAME}-{name}", "labels": labels}
    policy: Object = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"namespaceSelector": outside, "resourceRules": rules},
            "variables": _variables(spec),
            "validations": [
                {"expression": expression, "message": message, "reason": "Forbidden"}
                for expression, message in VALIDATIONS.items()
            ],
        },
    }
    binding: Object = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": metadata["name"], "validationActions": actions},
    }
    return [policy, binding]
