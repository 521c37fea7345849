"""What a cluster has whose pods may log on to a domain: credential specs, and the webhook that hands them out.

The objects are named as github.com/kubernetes-sigs/windows-gmsa deploys them. The domain itself is simulated
(`winready_sandbox.machine.domain`); the program behind the webhook is modelled by the embedded control plane alone.
"""

from __future__ import annotations

import asyncio
from typing import Any

from winready_sandbox.apiclient import ApiClient, ApiFailure, Conflict
from winready_sandbox.machine.domain import CredentialSpec, Domain
from winready_sandbox.machine.files import FileSystem

Object = dict[str, Any]
WEBHOOK = "gmsa-webhook"
"""Namespace, service and configurations of the webhook, unless its installer is told otherwise."""
WEBHOOK_NAME = "admission-webhook.windows-gmsa.sigs.k8s.io"
ROLE = "webapp-gmsa-user"
"""The ClusterRole by which administrators let service accounts use the credential spec; bound to nobody."""
FOLDER = "C:\\webapp"
"""Of every Windows node: for members of the account alone."""
_TRIES = 100
_SPECS = "windows.k8s.io/v1"
_DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"


def definition() -> Object:
    """The CustomResourceDefinition of credential specs."""
    schema = {"type": "object", "properties": {"credspec": _credspec_schema()}}
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema},
            **({} if name == "v1" else {"deprecated": True}),
        }
        for name in ("v1", "v1alpha1")
    ]
    approved = "https://github.com/kubernetes/enhancements/tree/master/keps/sig-windows/689-windows-gmsa"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "gmsacredentialspecs.windows.k8s.io",
            "annotations": {"api-approved.kubernetes.io": approved},
        },
        "spec": {
            "group": "windows.k8s.io",
            "scope": "Cluster",
            "names": {"kind": "GMSACredentialSpec", "plural": "gmsacredentialspecs"},
            "versions": versions,
        },
    }


def _credspec_schema() -> Object:
    text = {"type": "string"}
    account = {"type": "object", "properties": {"Name": text, "Scope": text}}
    join = ("DnsName", "DnsTreeName", "Guid", "MachineAccountName", "NetBiosName", "Sid")
    host = ("PluginGUID", "PluginInput", "PortableCcgVersion")
    directory = {
        "GroupManagedServiceAccounts": {"type": "array", "items": account},
        "HostAccountConfig": {"type": "object", "properties": dict.fromkeys(host, text)},
    }
    return {
        "type": "object",
        "properties": {
            "CmsPlugins": {"type": "array", "items": text},
            "ActiveDirectoryConfig": {"type": "object", "properties": directory},
            "DomainJoinConfig": {"type": "object", "properties": dict.fromkeys(join, text)},
        },
    }


def credential_spec(domain: Domain) -> Object:
    """The credential spec of the domain's first account, under the name of that account."""
    account = domain.accounts[0]
    contents = CredentialSpec(domain.name, domain.netbios, account).contents()
    return {
        "apiVersion": _SPECS,
        "kind": "GMSACredentialSpec",
        "metadata": {"name": account},
        "credspec": contents,
    }


def user_role(domain: Domain) -> Object:
    """What lets a service account use it."""
    rule = {
        "apiGroups": ["windows.k8s.io"],
        "resources": ["gmsacredentialspecs"],
        "verbs": ["use"],
        "resourceNames": [domain.accounts[0]],
    }
    return {"metadata": {"name": ROLE}, "rules": [rule]}


def webhook_configuration(path: str) -> Object:
    """What asks the webhook about pods: at ``/mutate`` or at ``/validate``."""
    operations = ["CREATE"] if path == "/mutate" else ["CREATE", "UPDATE"]
    selector = {"matchExpressions": [{"key": WEBHOOK, "operator": "NotIn", "values": ["disabled"]}]}
    hook = {
        "name": WEBHOOK_NAME,
        "clientConfig": {"service": {"name": WEBHOOK, "namespace": WEBHOOK, "path": path}},
        "rules": [{"operations": operations, "apiGroups": [""], "apiVersions": ["*"], "resources": ["pods"]}],
        "failurePolicy": "Fail",
        "admissionReviewVersions": ["v1", "v1beta1"],
        "sideEffects": "None",
        "namespaceSelector": selector,
    }
    return {"metadata": {"name": WEBHOOK}, "webhooks": [hook]}


async def install(client: ApiClient, domain: Domain, *, webhook: bool) -> None:
    """Create all of it; ``webhook``: also what asks the webhook, for a control plane in which somebody answers."""
    await _post(client, f"/apis/{_DEFINITIONS}", definition())
    # A real API server serves a new kind a moment after it was defined.
    for left in reversed(range(_TRIES)):
        try:
            await _post(client, f"/apis/{_SPECS}/gmsacredentialspecs", credential_spec(domain))
            break
        except ApiFailure as error:
            if error.code != 404 or not left:
                raise
            await asyncio.sleep(0.1)
    await _post(client, client.path("clusterroles"), user_role(domain))
    if not webhook:
        return
    await _post(client, client.path("namespaces"), {"metadata": {"name": WEBHOOK, "labels": {WEBHOOK: "disabled"}}})
    service = {"metadata": {"name": WEBHOOK}, "spec": {"ports": [{"port": 443}], "selector": {"app": WEBHOOK}}}
    await _post(client, client.path("services", namespace=WEBHOOK), service)
    for kind, path in (("mutating", "/mutate"), ("validating", "/validate")):
        plural = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
        await _post(client, plural, webhook_configuration(path))


async def _post(client: ApiClient, path: str, obj: Object) -> None:
    try:
        await client.request("POST", path, body=obj)
    except Conflict:
        return


def give_folder(files: FileSystem, domain: Domain) -> None:
    """A folder of a node that members of the account may use, and nobody else but the node itself."""
    files.mkdir(FOLDER, parents=True)
    files.change(FOLDER).acl = {"SYSTEM": "rwd", domain.accounts[0]: "rwd"}
