"""Steering by a webhook, for API servers without MutatingAdmissionPolicy: what is asked, and what is answered.

It does to pods exactly what the policy of `steering` does. The API server asks only about the chosen namespaces, waits
for a second and goes on without an answer: while the server is gone, pods are created as if there were no steering.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from winready.cluster.client import Client, Object
from winready.cluster.errors import Forbidden
from winready.cluster.resources import Resource
from winready.cluster.settings import RUN_LABEL
from winready.cluster.steering import GROUP, selector

CONFIGURATIONS = Resource(
    f"{GROUP}/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
WEBHOOK = "steer.winready.io"
PATH = "/steer"
SECONDS = 2
"""How long every pod of the chosen namespaces may have to wait for us."""
STEER_LABEL = "winready.io/steers"
PLACES = ("kubernetes.io/os", "kubernetes.io/hostname")


class BadReview(ValueError):
    """What was sent is no question of an API server; the message says why."""


@dataclass(frozen=True)
class Address:
    """Where the API server finds the webhook: at a URL, or behind a service of the cluster."""

    url: str = ""
    namespace: str = ""
    service: str = ""
    port: int = 443

    @classmethod
    def parse(cls, text: str) -> Address:
        """``https://HOST:PORT`` or ``NAMESPACE/SERVICE[:PORT]``; raises ``ValueError``."""
        if "://" in text:
            parts = urlsplit(text)
            if parts.scheme != "https" or not parts.hostname or parts.path.strip("/") or parts.username:
                raise ValueError(f"{text!r} is not https://HOST:PORT, which is all that an API server calls")
            return cls(url=f"https://{parts.netloc}", port=parts.port or 443)
        place, _, port = text.partition(":")
        namespace, _, service = place.partition("/")
        if not namespace or not service or "/" in service or (port and not port.isdigit()):
            raise ValueError(f"{text!r} is neither https://HOST:PORT nor NAMESPACE/SERVICE[:PORT]")
        return cls(namespace=namespace, service=service, port=int(port) if port else 443)

    @property
    def host(self) -> str:
        """The name that the serving certificate must carry."""
        return urlsplit(self.url).hostname or "" if self.url else f"{self.service}.{self.namespace}.svc"

    def client_config(self) -> Object:
        """The same in the words of a webhook configuration."""
        if self.url:
            return {"url": self.url + PATH}
        return {"service": {"namespace": self.namespace, "name": self.service, "path": PATH, "port": self.port}}

    def __str__(self) -> str:
        return self.url or f"{self.namespace}/{self.service}:{self.port}"


def configuration(name: str, address: Address, ca: bytes, namespaces: list[str]) -> Object:
    """What has an API server ask the webhook."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"}
    webhook = {
        "name": WEBHOOK,
        "clientConfig": {**address.client_config(), "caBundle": base64.b64encode(ca).decode()},
        "rules": [rule],
        "namespaceSelector": selector(namespaces),
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "reinvocationPolicy": "Never",
        "sideEffects": "None",
        "timeoutSeconds": SECONDS,
        "admissionReviewVersions": ["v1"],
    }
    labels = {RUN_LABEL: name, STEER_LABEL: "pods"}
    return {
        "apiVersion": CONFIGURATIONS.api_version,
        "kind": CONFIGURATIONS.kind,
        "metadata": {"name": name, "labels": labels},
        "webhooks": [webhook],
    }


async def apply_webhook(client: Client, wanted: Object) -> None:
    """Put the webhook into force, or change the one that is there."""
    await client.patch(CONFIGURATIONS, wanted["metadata"]["name"], wanted, kind="apply", force=True)


async def delete_webhook(client: Client, name: str) -> bool:
    """Take the webhook out of force; False when it was not."""
    return await client.delete(CONFIGURATIONS, name)


async def in_force(client: Client) -> list[str]:
    """The names of configurations that steer the pods of e2e.test's namespaces, as far as we may see them."""
    try:
        found = await client.list(CONFIGURATIONS, labels=f"{STEER_LABEL}=pods")
    except Forbidden:
        return []
    wanted = selector([])
    return [
        item["metadata"]["name"]
        for item in found
        if any((hook.get("namespaceSelector") or {}) == wanted for hook in item.get("webhooks") or ())
    ]


async def leftovers(client: Client, *, remove: bool) -> list[str]:
    """Webhooks that steer, gone if ``remove``; whoever may not see them has made none."""
    try:
        found = [item["metadata"]["name"] for item in await client.list(CONFIGURATIONS, labels=f"{STEER_LABEL}=pods")]
    except Forbidden:
        return []
    for name in found if remove else ():
        await delete_webhook(client, name)
    return [f"{CONFIGURATIONS.kind} {name}" for name in found]


def answer(body: bytes) -> Object:
    """The answer to an AdmissionReview; raises `BadReview`."""
    try:
        review = json.loads(body)
    except (ValueError, RecursionError):
        raise BadReview("the body is not JSON") from None
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        raise BadReview("the body is no AdmissionReview")
    if review.get("apiVersion") != "admission.k8s.io/v1":
        raise BadReview("only admission.k8s.io/v1 is understood")
    request = review.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str) or not request["uid"]:
        raise BadReview("the review has no request with a uid")
    response: Object = {"uid": request["uid"], "allowed": True}
    if operations := steered(request):
        patch = base64.b64encode(json.dumps(operations).encode()).decode()
        response |= {"patchType": "JSONPatch", "patch": patch}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def steered(request: Object) -> list[Object]:
    """What a new pod lacks to be sent to Windows; nothing for whatever chose its place itself, or is no pod."""
    kind, pod = request.get("kind"), request.get("object")
    is_pod = isinstance(kind, dict) and kind.get("kind") == "Pod" and not kind.get("group")
    if not is_pod or request.get("operation") != "CREATE" or request.get("subResource") or not isinstance(pod, dict):
        return []
    spec: Any = pod.get("spec")
    if not isinstance(spec, dict):
        return []
    chosen = spec.get("nodeSelector")
    chosen = chosen if isinstance(chosen, dict) else {}
    placed = any(spec.get(name) is not None for name in ("os", "nodeName", "affinity"))
    if placed or spec.get("hostNetwork") or any(name in chosen for name in PLACES):
        return []
    if chosen:
        return [{"op": "add", "path": "/spec/nodeSelector/kubernetes.io~1os", "value": "windows"}]
    return [{"op": "add", "path": "/spec/nodeSelector", "value": {"kubernetes.io/os": "windows"}}]
