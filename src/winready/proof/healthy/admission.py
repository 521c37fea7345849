"""Sound clusters whose admission completes, changes, delays or refuses what a run creates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from winready.proof.expected.names import WINDOWS_CORE
from winready.proof.healthy.model import Act, Scene, Variant
from winready.proof.healthy.scenery import WEBHOOK, in_every_namespace, webhook

if TYPE_CHECKING:
    from winready_sandbox.api.registry import Admission

Object = dict[str, Any]
DENY = {"metadata": {"name": "default-deny"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}}
DEFAULTS = {"cpu": "500m", "memory": "256Mi"}
ASKED = {"cpu": "100m", "memory": "128Mi"}
LATE_ACCOUNT = 20.0
"""Cluster seconds before a new namespace has its service account."""


def limit_range(**item: Object) -> Object:
    """A LimitRange for containers."""
    return {"metadata": {"name": "bounds"}, "spec": {"limits": [{"type": "Container", **item}]}}


def quota(**hard: str) -> Object:
    """A ResourceQuota; dots in names are written as underscores."""
    return {"metadata": {"name": "team"}, "spec": {"hard": {name.replace("_", "."): hard[name] for name in hard}}}


def written(delay: float = 1.0, **objects: Object) -> Act:
    """Somebody writes these objects into every new namespace."""

    async def act(scene: Scene) -> None:
        await in_every_namespace(scene, objects, delay)

    return act


async def changes_pods(scene: Scene) -> None:
    """A webhook that labels, annotates, tolerates and pulls as its owners like it."""

    def change(admission: Admission) -> str:
        metadata, spec = admission.obj["metadata"], admission.obj["spec"]
        metadata["labels"] = {**(metadata.get("labels") or {}), "cost-center": "4711"}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), "reviewed-by": "運用チーム"}
        spec["tolerations"] = [*(spec.get("tolerations") or []), {"key": "spot", "operator": "Exists"}]
        for container in spec["containers"]:
            container["imagePullPolicy"] = "Always"
        return ""

    webhook(scene, "mutating", change)


async def late_accounts(scene: Scene) -> None:
    """Controllers are busy: the service account of a namespace comes late, and pods before it are refused."""
    from winready_sandbox.api.errors import forbidden

    clock, born = scene.sandbox.clock, dict[str, float]()

    def refuse(admission: Admission) -> None:
        if admission.resource.storage != ("", "pods") or not admission.namespace.startswith("winready-"):
            return
        if clock.now() < born.setdefault(admission.namespace, clock.now()) + LATE_ACCOUNT:
            where = f"{admission.namespace}/default"
            words = f'error looking up service account {where}: serviceaccount "default" not found'
            raise forbidden("pods", "", admission.name, words)

    scene.sandbox.embedded.registry.validating.append(refuse)


async def busy_quota(scene: Scene) -> None:
    """Several writers at one quota: some of their creates end in a conflict."""
    from winready_sandbox.api.errors import conflict

    calls = 0

    def refuse(admission: Admission) -> None:
        nonlocal calls
        counted = admission.resource.storage in (("", "pods"), ("", "services"), ("", "configmaps"))
        if counted and admission.operation == "CREATE" and admission.namespace.startswith("winready-"):
            calls += 1
            if calls % 3 == 0:
                raise conflict("resourcequotas", "", "team")

    scene.sandbox.embedded.registry.validating.append(refuse)


async def denies_pods(scene: Scene) -> None:
    """A webhook that wants an owner on every pod."""
    webhook(scene, "validating", lambda admission: "every pod needs the label owner")


async def denies_pods_of_controllers(scene: Scene) -> None:
    """A webhook that refuses what a ReplicaSet or StatefulSet creates."""

    def review(admission: Admission) -> str:
        return "this team may not run workloads" if admission.obj["metadata"].get("ownerReferences") else ""

    webhook(scene, "validating", review)


async def denies_policies(scene: Scene) -> None:
    """A webhook that leaves network policies to the network team."""

    def review(admission: Admission) -> str:
        return "network policies belong to the network team" if admission.name != "default-deny" else ""

    webhook(scene, "validating", review, ["networkpolicies"])


async def webhook_away(scene: Scene) -> None:
    """The program behind a webhook is gone, its configuration is not."""
    webhook(scene, "validating", None)


async def policy_denies(scene: Scene) -> None:
    """A policy in CEL that allows no pod."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "images come from registry.example.com only"}],
    }
    scene.api.create("validatingadmissionpolicies", {"metadata": {"name": "trusted-images"}, "spec": spec})
    binding = {"policyName": "trusted-images", "validationActions": ["Deny"]}
    body = {"metadata": {"name": "everywhere"}, "spec": binding}
    scene.api.create("validatingadmissionpolicybindings", body)


ADMISSION = (
    Variant(
        "admission.default-deny",
        "A policy engine writes a default-deny policy into every new namespace.",
        "issue lfn-cnti/testsuite#1271: a default-deny NetworkPolicy by Kyverno for each new namespace",
        during=written(networkpolicies=DENY),
        unjudged="K1 K2",
        long="C1",
    ),
    Variant(
        "admission.limit-defaults",
        "A LimitRange gives every container requests and limits that states none.",
        "kubernetes.io: Limit Ranges, defaults",
        during=written(limitranges=limit_range(default=DEFAULTS, defaultRequest=ASKED)),
    ),
    Variant(
        "admission.quota-and-defaults",
        "A quota counts limits, and a LimitRange gives them to containers that state none.",
        "kubernetes.io: Resource Quotas, with a LimitRange for defaults",
        during=written(
            limitranges=limit_range(default=DEFAULTS, defaultRequest=ASKED),
            resourcequotas=quota(limits_cpu="200k", limits_memory="1000Ti", pods="200"),
        ),
    ),
    Variant(
        "admission.large-quota",
        "Every namespace has a quota that is large enough.",
        "kubernetes.io: Resource Quotas; issue spinnaker/spinnaker#5259: gke-resource-quotas in every namespace",
        during=written(resourcequotas=quota(pods="15k", services="5k", configmaps="100")),
        long="C1",
    ),
    Variant(
        "admission.busy-quota",
        "Every third create in a namespace with a quota ends in a conflict.",
        "issue kubernetes/kubernetes#67761: conflict on resourcequotas when pods are created",
        prepare=busy_quota,
    ),
    Variant(
        "admission.late-service-accounts",
        "The service account of a new namespace comes 20 s after it.",
        "issues kubernetes/kubernetes#66689, #25204: service account default not found in a new namespace",
        prepare=late_accounts,
    ),
    Variant(
        "admission.pod-security-baseline",
        "Namespaces that state no level of Pod Security are baseline.",
        "kubernetes.io: Enforce Pod Security Standards by Configuring the Built-in Admission Controller",
        {"pod_security": "baseline"},
    ),
    Variant(
        "admission.pod-security-restricted",
        "Namespaces that state no level of Pod Security are restricted.",
        "kubernetes.io: Enforce Pod Security Standards by Configuring the Built-in Admission Controller",
        {"pod_security": "restricted"},
    ),
    Variant(
        "admission.pods-changed",
        "A webhook adds labels, annotations and tolerations to pods and has images pulled always.",
        "kubernetes.io: Admission Controllers, AlwaysPullImages and mutating webhooks",
        prepare=changes_pods,
    ),
)
REFUSING = (
    Variant(
        "refusing.isolated-namespaces",
        "A policy engine isolates every new namespace, and nobody else may write policies.",
        "issue lfn-cnti/testsuite#1271: a default-deny NetworkPolicy by Kyverno for each new namespace",
        prepare=denies_policies,
        during=written(networkpolicies=DENY),
        blocked=WINDOWS_CORE,
        says="NetworkPolicy default-deny",
    ),
    Variant(
        "refusing.small-quota",
        "Every namespace may have one pod.",
        "kubernetes.io: Resource Quotas",
        during=written(delay=0.0, resourcequotas=quota(pods="1")),
        blocked=WINDOWS_CORE,
        says="ResourceQuota team",
    ),
    Variant(
        "refusing.quota-of-limits",
        "Every namespace has a quota of limits, and nothing gives containers limits.",
        "kubernetes.io: Resource Quotas, must specify",
        during=written(delay=0.0, resourcequotas=quota(limits_cpu="200", limits_memory="1Ti")),
        blocked=WINDOWS_CORE,
        says="ResourceQuota team",
    ),
    Variant(
        "refusing.limit-range",
        "Containers may have 32 MiB at most.",
        "kubernetes.io: Limit Ranges",
        during=written(delay=0.0, limitranges=limit_range(max={"memory": "32Mi"})),
        blocked=WINDOWS_CORE,
        says="LimitRange bounds",
    ),
    Variant(
        "refusing.webhook",
        "A webhook refuses pods without an owner.",
        "issue kyverno/policies#90: words of a webhook that refuses a pod",
        prepare=denies_pods,
        blocked=WINDOWS_CORE,
        says=WEBHOOK,
    ),
    Variant(
        "refusing.webhook-for-controllers",
        "A webhook refuses pods that controllers create.",
        "kubernetes.io: Dynamic Admission Control",
        prepare=denies_pods_of_controllers,
        blocked="N8 N9 S6 C1 C2 C3",
        says=WEBHOOK,
        long="S6 C1",
    ),
    Variant(
        "refusing.webhook-away",
        "A webhook for pods does not answer.",
        "kubernetes.io: Dynamic Admission Control, failure policy",
        prepare=webhook_away,
        blocked=WINDOWS_CORE,
        says=WEBHOOK,
    ),
    Variant(
        "refusing.policy",
        "A ValidatingAdmissionPolicy refuses pods.",
        "kubernetes.io: Validating Admission Policy",
        prepare=policy_denies,
        blocked=WINDOWS_CORE,
        says="ValidatingAdmissionPolicy trusted-images",
    ),
    Variant(
        "refusing.very-slow-pulls",
        "A Windows image takes half an hour to arrive.",
        "issue containerd/cri#1355: 18 minutes and more for an image on Windows",
        {"pull_seconds": 1800.0},
        long="C1",
        blocked=WINDOWS_CORE,
        says="is still pulling image registry.k8s.io/",
    ),
)
