"""How stored objects become answers: whole, as tables or as metadata only, in JSON or YAML.

Plain JSON is put together from the encodings that the store keeps; everything else is made on the spot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import yaml
from aiohttp import web

from winready_sandbox.api.conversion import converts, to_served
from winready_sandbox.api.negotiate import JSON, YAML, Wanted
from winready_sandbox.api.objects import Object
from winready_sandbox.api.paging import Listing
from winready_sandbox.api.resources import Resource
from winready_sandbox.api.store import Entry
from winready_sandbox.api.tables import table

encode = msgspec.json.Encoder().encode


class Representation:
    """The form in which one request wants its objects."""

    def __init__(self, resource: Resource, wanted: Wanted, include: str = "Metadata") -> None:
        self._resource = resource
        self._wanted = wanted
        self._include = include
        self._header_sent = False

    @property
    def content_type(self) -> str:
        """The media type of the answer."""
        return YAML if self._wanted.yaml else JSON

    def one(self, entry: Entry) -> bytes:
        """One object."""
        if self._wanted.form == "object" and not self._wanted.yaml and not converts(self._resource):
            return entry.json
        return self._written(self._shaped(entry.obj))

    def many(self, listing: Listing) -> bytes:
        """A list."""
        metadata: Object = {"resourceVersion": str(listing.version)}
        if listing.continue_:
            metadata["continue"] = listing.continue_
            if listing.remaining is not None:
                metadata["remainingItemCount"] = listing.remaining
        if self._wanted.form == "table":
            shown = [to_served(self._resource, entry.obj) for entry in listing.entries]
            return self._written(table(self._resource, shown, self._wanted.version, self._include, metadata))
        if self._wanted.form == "metadata":
            items = [_metadata_only(entry.obj, self._wanted.version) for entry in listing.entries]
            kind = {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{self._wanted.version}"}
            return self._written({**kind, "metadata": metadata, "items": items})
        head: Object = {
            "kind": f"{self._resource.kind}List",
            "apiVersion": self._resource.api_version,
            "metadata": metadata,
        }
        if self._wanted.yaml or converts(self._resource):
            items = [to_served(self._resource, entry.obj) for entry in listing.entries]
            return self._written({**head, "items": items})
        whole = self._resource.custom
        items_json = b",".join([entry.json if whole else entry.item_json for entry in listing.entries])
        return encode(head)[:-1] + b',"items":[' + items_json + b"]}"

    def event(self, kind: str, entry: Entry) -> bytes:
        """One line of a watch."""
        if self._wanted.form == "object" and not converts(self._resource):
            body = entry.json
        elif self._wanted.form == "table":
            metadata = {"resourceVersion": str(entry.version)}
            shown = [to_served(self._resource, entry.obj)]
            answer = table(self._resource, shown, self._wanted.version, self._include, metadata)
            if self._header_sent:
                answer["columnDefinitions"] = None
            self._header_sent = True
            body = encode(answer)
        else:
            body = encode(self._shaped(entry.obj))
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)

    def bookmark(self, version: int, initial_end: bool = False) -> bytes:
        """A line that only says how far a watch has come."""
        metadata: Object = {"resourceVersion": str(version), "creationTimestamp": None}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj: Object = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        if self._wanted.form == "metadata":
            obj = _metadata_only(obj, self._wanted.version)
        elif self._wanted.form == "table":
            answer = table(self._resource, [], self._wanted.version, self._include, {"resourceVersion": str(version)})
            partial = _metadata_only(obj, self._wanted.version)
            obj = {**answer, "columnDefinitions": None, "rows": [{"cells": [], "object": partial}]}
        return b'{"type":"BOOKMARK","object":%b}\n' % encode(obj)

    def _shaped(self, obj: Object) -> Object:
        served = to_served(self._resource, obj)
        if self._wanted.form == "table":
            metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return table(self._resource, [served], self._wanted.version, self._include, metadata)
        return _metadata_only(served, self._wanted.version) if self._wanted.form == "metadata" else served

    def _written(self, answer: Object) -> bytes:
        return written(answer, self._wanted.yaml)


def _metadata_only(obj: Object, version: str) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}


def written(answer: Any, as_yaml: bool = False) -> bytes:
    """Data as JSON or YAML."""
    if as_yaml:
        return yaml.dump(answer, Dumper=yaml.CSafeDumper, sort_keys=False).encode()
    return encode(answer)


def answer(body: bytes, status: int = 200, content_type: str = JSON) -> web.Response:
    """A finished response."""
    return web.Response(body=body, status=status, headers={"Content-Type": content_type})


def warn(response: web.Response, warnings: Iterable[str]) -> None:
    """Send what the reader should be told, once each, in the header that is for it and that has no place for lines."""
    for warning in dict.fromkeys(warnings):
        if not warning.isprintable():
            continue
        quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')
