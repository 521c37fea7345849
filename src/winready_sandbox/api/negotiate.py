"""What a client wants to read and what it sent: media types, query booleans, bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from winready_sandbox.api import protobuf
from winready_sandbox.api.errors import ApiError, bad_request, unsupported_media_type
from winready_sandbox.api.objects import Object

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
PATCHES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch+json": "apply",
}


@dataclass(frozen=True)
class Wanted:
    """The representation that answers an Accept header."""

    form: str = "object"
    """``object``, ``table`` or ``metadata``."""
    version: str = "v1"
    yaml: bool = False


def parse_accept(header: str) -> list[tuple[str, dict[str, str]]]:
    """The media types of an Accept header with their parameters, in the order given."""
    found = []
    for item in header.split(","):
        media, *parameters = (part.strip() for part in item.split(";"))
        found.append((media.lower(), dict(p.partition("=")[::2] for p in parameters)))
    return found


def wanted(header: str) -> Wanted:
    """The first representation of an Accept header that is served here; 406 if none is."""
    for media, parameters in parse_accept(header or "*/*"):
        if media not in (JSON, YAML, "application/*", "*/*"):
            continue
        form, version = parameters.get("as", ""), parameters.get("v", "v1")
        if form and (parameters.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1")):
            continue
        if form == "Table":
            return Wanted("table", version)
        if form in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return Wanted("metadata", version, yaml=media == YAML)
        if not form:
            return Wanted(yaml=media == YAML)
    media_types = ", ".join((JSON, YAML))
    raise ApiError(406, "NotAcceptable", f"only the following media types are accepted: {media_types}")


def is_true(text: str | None) -> bool:
    """A boolean of a query, which clients write as true, True or 1."""
    return (text or "").lower() in ("true", "1", "t")


def number(query: Any, name: str) -> int:
    """A whole number of a query, 0 when absent."""
    text = query.get(name, "")
    try:
        return int(text or 0)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": '
                          "invalid syntax") from None  # fmt: skip


def read_body(body: bytes, content_type: str) -> Object:
    """The object in a request body."""
    media = content_type.partition(";")[0].strip().lower()
    if media == PROTOBUF:
        return protobuf.decode(body)
    value = read_data(body, media)
    if not isinstance(value, dict):
        raise bad_request("the body of the request must be a JSON or YAML object")
    return value


def read_data(body: bytes, media: str) -> Any:
    """JSON or YAML data, whatever its shape."""
    try:
        if "yaml" in media:
            return yaml.load(body, Loader=yaml.CSafeLoader)
        if media in ("", JSON, "text/plain", "application/octet-stream", "*/*") or media.endswith("+json"):
            return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    except yaml.YAMLError as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {JSON}, {YAML}, {PROTOBUF}"
    )


def patch_kind(content_type: str) -> str:
    """Which kind of patch a content type is; 415 for others."""
    media = content_type.partition(";")[0].strip().lower()
    if media not in PATCHES:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    return PATCHES[media]
