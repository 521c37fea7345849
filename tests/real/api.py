"""An API server asked with nothing but HTTP, and answers made comparable between two of them."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import tempfile
import threading
from base64 import b64decode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

AGENT = "differential"
_GENERATED = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "selfLink", "generateName")


@dataclass(frozen=True)
class Call:
    """One request; ``NAMESPACE`` in its path stands for the namespace of the scenario."""

    method: str
    path: str
    body: Any = None
    type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    anonymous: bool = False


class Api:
    """One API server, asked as its administrator."""

    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.host = cluster["server"].removeprefix("https://")
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        self._nobody = ssl.create_default_context(cadata=authority)
        self._admin = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(b64decode(user["client-key-data"]) + b64decode(user["client-certificate-data"]))
            pair.flush()
            self._admin.load_cert_chain(pair.name)
        self._connections = threading.local()

    def ask(self, call: Call, namespace: str = "") -> tuple[int, Any]:
        """The status and the decoded answer."""
        status, answer, _ = self.exchange(call, namespace)
        return status, answer

    def exchange(self, call: Call, namespace: str = "") -> tuple[int, Any, list[str]]:
        """The status, the decoded answer and the warnings; every thread has connections of its own."""
        kept = vars(self._connections)
        if call.anonymous not in kept.setdefault("by_caller", {}):
            context = self._nobody if call.anonymous else self._admin
            kept["by_caller"][call.anonymous] = http.client.HTTPSConnection(self.host, timeout=60, context=context)
        connection: http.client.HTTPSConnection = kept["by_caller"][call.anonymous]
        text = call.body if isinstance(call.body, str) else json.dumps(call.body)
        body = None if call.body is None else text.replace("NAMESPACE", namespace).encode()
        headers = {"User-Agent": AGENT, "Accept": "application/json", **call.headers}
        if body is not None:
            headers["Content-Type"] = call.type
        path = call.path.replace("NAMESPACE", namespace)
        try:
            connection.request(call.method, path, body, headers)
            answer = connection.getresponse()
        except http.client.RemoteDisconnected:  # it was not used for long
            connection.close()
            connection.request(call.method, path, body, headers)
            answer = connection.getresponse()
        raw, warnings = answer.read(), answer.headers.get_all("Warning") or []
        try:
            return answer.status, json.loads(raw), warnings
        except ValueError:
            return answer.status, raw.decode(errors="replace"), warnings


def comparable(answer: Any, namespace: str = "") -> Any:
    """An answer without what differs by nature: identities, times, allocated addresses, the state of controllers."""
    if not isinstance(answer, dict):
        return answer
    text = re.sub(r"kube-api-access-\w+", "kube-api-access", json.dumps(answer))
    result = json.loads(text.replace(namespace, "NAMESPACE") if namespace else text)
    if result.get("kind") == "Status":
        return _status(result)
    if result.get("kind") == "APIGroupList":
        return {**result, "groups": {group["name"]: group for group in result["groups"]}}
    if isinstance(result.get("items"), list):
        metadata = result.get("metadata", {})
        result["metadata"] = {"continue": bool(metadata.get("continue")), "rest": metadata.get("remainingItemCount")}
        items = [comparable(item) for item in result["items"] if _name(item) != "kube-root-ca.crt"]
        result["items"] = sorted(items, key=_name)
        return result
    if isinstance(result.get("metadata"), dict):
        result["metadata"] = _metadata(result["metadata"])
    if result.get("kind") not in ("Scale", "SubjectAccessReview", "SelfSubjectAccessReview", "TokenReview"):
        result.pop("status", None)
    if result.get("kind") == "TokenRequest":
        result["status"] = sorted(answer["status"])
    _allocated(result.get("spec"))
    return result


def _name(item: Any) -> str:
    return str(item.get("metadata", {}).get("name", "")) if isinstance(item, dict) else ""


def _status(status: dict[str, Any]) -> dict[str, Any]:
    """Code, reason, what it is about and which fields; the words are held to the real ones by tests of their own."""
    details = status.get("details") or {}
    causes = {(cause.get("field", ""), cause.get("reason", "")) for cause in details.get("causes") or []}
    return {
        "kind": "Status",
        "code": status.get("code"),
        "reason": status.get("reason"),
        "about": {key: details[key] for key in ("name", "group", "kind") if key in details},
        "causes": sorted(causes),
    }


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in metadata.items() if key not in _GENERATED}
    if "generateName" in metadata:
        kept["name"] = "GENERATED"
    for words in (kept.get("labels") or {}, kept.get("annotations") or {}):
        for key in [key for key in words if key.endswith(("controller-uid", "deployment.kubernetes.io/revision"))]:
            del words[key]
    kept = {key: value for key, value in kept.items() if value}
    kept["managedFields"] = sorted(
        (
            {key: value for key, value in entry.items() if key != "time"}
            for entry in metadata.get("managedFields") or []
            if entry["manager"] in (AGENT, "one", "two")
        ),
        key=lambda entry: json.dumps(entry, sort_keys=True),
    )
    return kept


def _allocated(spec: Any) -> None:
    if not isinstance(spec, dict):
        return
    for key in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
        if spec.get(key) and "None" not in str(spec[key]):
            spec[key] = "ALLOCATED"
    for port in spec.get("ports") or []:
        if isinstance(port, dict) and "nodePort" in port:
            port["nodePort"] = "ALLOCATED"
    labels = (spec.get("selector") or {}).get("matchLabels") if isinstance(spec.get("selector"), dict) else None
    for where in (labels or {}, ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}):
        for key in [key for key in where if key.endswith("controller-uid")]:
            where[key] = "UID"
