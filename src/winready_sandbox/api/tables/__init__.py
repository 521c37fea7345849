"""Tables: the columns that the real server prints for each kind, which is all that ``kubectl get`` shows."""

from __future__ import annotations

from winready_sandbox.api.objects import Object
from winready_sandbox.api.resources import Resource
from winready_sandbox.api.tables.cluster import CLUSTER
from winready_sandbox.api.tables.columns import Layout, age, custom, plain
from winready_sandbox.api.tables.core import CORE
from winready_sandbox.api.tables.nodes import NODES
from winready_sandbox.api.tables.pods import PODS
from winready_sandbox.api.tables.workloads import WORKLOADS

_LAYOUTS: dict[tuple[str, str], Layout] = {**PODS, **NODES, **CORE, **WORKLOADS, **CLUSTER}
_BY_NAME = Layout((plain("Name"), plain("Age")), lambda obj: [obj["metadata"].get("name", ""), age(obj)])

__all__ = ["table"]


def table(resource: Resource, objects: list[Object], version: str, include: str, metadata: Object) -> Object:
    """Objects as a ``Table``; each row carries its object as far as the client wants it."""
    layout = custom(resource) if resource.custom else _LAYOUTS.get(resource.storage, _BY_NAME)
    rows = []
    for obj in objects:
        row: Object = {"cells": layout.cells(obj)}
        if include == "Object":
            row["object"] = obj
        elif include == "Metadata":
            head = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}"}
            row["object"] = {**head, "metadata": obj["metadata"]}
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in layout.columns],
        "rows": rows,
    }
