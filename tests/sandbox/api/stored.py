"""A few objects in memory, for tests of what only reads them."""

from __future__ import annotations

import uuid
from typing import Any

from winready_sandbox.api.errors import not_found


class Stored:
    """The reading half of the in-process client over a plain dict."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}

    def create(self, resource: str, obj: dict[str, Any], namespace: str = "") -> dict[str, Any]:
        namespace = namespace or obj["metadata"].get("namespace", "")
        metadata = {"uid": str(uuid.uuid4()), **obj["metadata"], **({"namespace": namespace} if namespace else {})}
        stored = {**obj, "metadata": metadata}
        self._objects.setdefault((resource, namespace), {})[metadata["name"]] = stored
        return stored

    def delete(self, resource: str, name: str, namespace: str = "") -> None:
        del self._objects[resource, namespace][name]

    def get(self, resource: str, name: str, namespace: str = "") -> dict[str, Any]:
        found = self._objects.get((resource, namespace), {}).get(name)
        if found is None:
            raise not_found(resource, "", name)
        return found

    def list(self, resource: str, namespace: str = "") -> tuple[list[dict[str, Any]], str]:
        return list(self._objects.get((resource, namespace), {}).values()), "1"
