"""Who may use a credential spec: asked of the API server, and granted to the service account of a run's own pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from winready.cluster.client import Client, Object
from winready.cluster.directory import ActiveDirectory
from winready.cluster.errors import ApiError, Forbidden, Refused
from winready.cluster.failures import CheckBlocked
from winready.cluster.inventory import CREDENTIAL_SPECS
from winready.cluster.namespaces import Namespace
from winready.cluster.obstacles import refusal_of
from winready.cluster.pods import idle_container, pod_object, pod_spec
from winready.cluster.resources import LOCAL_ACCESS_REVIEWS, PODS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from winready.checks.world import World

ACCOUNT, ROLE = "gmsa", "gmsa-use"
UNBOUND = "default"
"""The service account that nobody gave anything."""
NOT_AUTHORISED = "is not authorized to `use`"
"""The webhook's words."""
WEBHOOK_STEP = (
    "install the admission webhook of github.com/kubernetes-sigs/windows-gmsa, or see whether it leaves namespaces of "
    "runs out ('kubectl get mutatingwebhookconfigurations' shows it)"
)
GRANT_STEP = (
    "let winready grant it: 'winready rbac --active-directory FILE' prints the rights; or bind a role that allows it "
    "to the group system:serviceaccounts"
)
REVIEW_STEP = "let winready ask: 'winready rbac --active-directory FILE' prints the rights"


@dataclass(frozen=True)
class Use:
    """Who may use the credential spec."""

    account: str
    """The service account of pods that use it."""
    unbound: str
    """What became of a pod of another one: ``refused``, ``allowed`` since everybody may, ``let in`` or ``unknown``."""
    member: str
    """The account in the domain, as the credential spec says; empty where it may not be read."""


async def grant_use(world: World, namespace: Namespace, given: ActiveDirectory) -> Use:
    """See who may use the credential spec, and let a service account of ours; raises `CheckBlocked`."""
    member = await _find_specs(world.client, given)
    unbound = await _without_grant(world, namespace, given)
    account, why_not = await bind(namespace, given)
    for name in given.credential_specs:
        await _require_use(world, namespace, name, account, why_not)
    return Use(account, unbound, member)


def named_spec(name: str) -> Object:
    """The security context of a pod with a credential spec."""
    return {"windowsOptions": {"gmsaCredentialSpecName": name}}


async def _find_specs(client: Client, given: ActiveDirectory) -> str:
    """The account of the first; one that is not there, or of another domain, is a mistake in the file."""
    members = []
    for name in given.credential_specs:
        try:
            found = await client.find(CREDENTIAL_SPECS, name)
        except Forbidden:
            # Who may not look learns it from the webhook.
            members.append("")
            continue
        if found is None:
            there = ", ".join(item["metadata"]["name"] for item in await client.list(CREDENTIAL_SPECS))
            raise CheckBlocked(
                f"GMSACredentialSpec {name} does not exist; the cluster has {there or 'none'}",
                next_step="name one of them in the file that was given with --active-directory, or create it",
            )
        join: Any = (found.get("credspec") or {}).get("DomainJoinConfig") or {}
        domain = str(join.get("DnsName") or "")
        if domain and domain.lower() != given.domain.lower():
            raise CheckBlocked(
                f"GMSACredentialSpec {name} is of domain {domain}, and not of {given.domain}",
                next_step="correct the file that was given with --active-directory, or name another credential spec",
            )
        members.append(str(join.get("MachineAccountName") or ""))
    return members[0]


def _pod(world: World, name: str, account: str) -> Object:
    spec = pod_spec(
        "windows",
        [idle_container(world.settings)],
        world.settings,
        world.windows_nodes,
        serviceAccountName=account,
        securityContext=named_spec(name),
    )
    return pod_object(f"asks-{account}", spec, world.settings)


def _contents(pod: Object) -> str:
    options = (pod["spec"].get("securityContext") or {}).get("windowsOptions") or {}
    return str(options.get("gmsaCredentialSpec") or "")


async def _without_grant(world: World, namespace: Namespace, given: ActiveDirectory) -> str:
    pod = _pod(world, given.credential_spec, UNBOUND)
    try:
        await namespace.admitted(PODS, pod)
    except Refused as error:
        if NOT_AUTHORISED in error.message:
            return "refused"
        raise await refusal_of(world.client, namespace.name, "Pod asks-default", error.refusal) from None
    attributes = {
        "namespace": namespace.name,
        "verb": "use",
        "group": CREDENTIAL_SPECS.group,
        "resource": CREDENTIAL_SPECS.plural,
        "name": given.credential_spec,
    }
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace.name}"]
    user = f"system:serviceaccount:{namespace.name}:{UNBOUND}"
    review = {
        "metadata": {"namespace": namespace.name},
        "spec": {"user": user, "groups": groups, "resourceAttributes": attributes},
    }
    try:
        answer = await world.client.create(LOCAL_ACCESS_REVIEWS, review, namespace.name)
    except Forbidden:
        return "unknown"
    return "allowed" if (answer.get("status") or {}).get("allowed") else "let in"


async def bind(namespace: Namespace, given: ActiveDirectory) -> tuple[str, str]:
    """A service account that may use it, and why it could not be given that."""
    try:
        await namespace.create(SERVICE_ACCOUNTS, {"metadata": {"name": ACCOUNT}})
    except Forbidden as error:
        return UNBOUND, error.message
    rule = {
        "apiGroups": [CREDENTIAL_SPECS.group],
        "resources": [CREDENTIAL_SPECS.plural],
        "verbs": ["use"],
        "resourceNames": given.credential_specs,
    }
    kind, name = ("ClusterRole", given.cluster_role) if given.cluster_role else ("Role", ROLE)
    binding = {
        "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": ROLES.group, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace.name}],
    }
    try:
        if not given.cluster_role:
            await namespace.create(ROLES, {"metadata": {"name": ROLE}, "rules": [rule]})
        await namespace.create(ROLE_BINDINGS, binding)
    except ApiError as error:
        return ACCOUNT, error.message
    return ACCOUNT, ""


async def _require_use(world: World, namespace: Namespace, name: str, account: str, why_not: str) -> None:
    timing = world.settings.timing
    words = ""
    async for _ in timing.attempts(timing.table.identity):
        try:
            pod = await namespace.admitted(PODS, _pod(world, name, account))
        except Refused as error:
            if NOT_AUTHORISED not in error.message:
                raise await refusal_of(world.client, namespace.name, f"Pod asks-{account}", error.refusal) from None
            words = error.refusal.words
            if why_not:
                break
            continue
        if not _contents(pod):
            raise CheckBlocked(
                f"nobody fills in credential spec {name}: a pod that names it comes back without its contents",
                next_step=WEBHOOK_STEP,
            )
        return
    cause = f"; winready could not let it: {why_not}" if why_not else ""
    raise CheckBlocked(
        f"service account {namespace.name}/{account} may not use credential spec {name}: {words}{cause}",
        next_step=GRANT_STEP,
    )
