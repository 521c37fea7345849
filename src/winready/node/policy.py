"""A policy for every namespace that is not a system one: no HostProcess containers unless somebody said so.

The proposal for Windows workers came with a sample PodSecurityPolicy; those are gone. The levels of Pod Security do the
same per namespace, but a namespace without a label is privileged. This policy closes that gap, and warns by default.
"""

from __future__ import annotations

from winready.cluster.client import Object

NAME = "winready-node-hostprocess"
GROUP = "admissionregistration.k8s.io"
ENFORCE = "pod-security.kubernetes.io/enforce"
SYSTEM = ["kube-system", "kube-public", "kube-node-lease"]
_CONTAINERS = (
    "object.spec.containers",
    "(has(object.spec.initContainers) ? object.spec.initContainers : [])",
)


def _host_process(where: str) -> str:
    options = f"{where}.securityContext.windowsOptions"
    has = f"has({where}.securityContext) && has({options}) && has({options}.hostProcess)"
    return f"({has} && {options}.hostProcess)"


def expression() -> str:
    """What must hold of a pod: neither it nor one of its containers is HostProcess."""
    every = " + ".join(_CONTAINERS)
    return f"!{_host_process('object.spec')} && !({every}).exists(c, {_host_process('c')})"


def policy_objects(labels: dict[str, str], *, enforce: bool) -> list[Object]:
    """The policy and what puts it into force: as a warning, or as a refusal."""
    # No pod becomes HostProcess later; refusing updates would only keep finalizers of old ones from being removed.
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    outside = {
        "matchExpressions": [
            {"key": ENFORCE, "operator": "NotIn", "values": ["privileged"]},
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": SYSTEM},
        ]
    }
    message = (
        "HostProcess containers are administrators of their node; only namespaces with the label "
        f"{ENFORCE}=privileged may have them"
    )
    policy: Object = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME, "labels": labels},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"namespaceSelector": outside, "resourceRules": [rule]},
            "validations": [{"expression": expression(), "message": message, "reason": "Forbidden"}],
        },
    }
    binding: Object = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME, "labels": labels},
        "spec": {"policyName": NAME, "validationActions": ["Deny"] if enforce else ["Warn", "Audit"]},
    }
    return [policy, binding]
