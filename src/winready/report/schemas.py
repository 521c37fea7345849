"""The published JSON Schemas, made from the very types that write the files."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from winready.cluster import directory
from winready.engine import events, preflight
from winready.report import record
from winready.report.fleet import answers
from winready.spec.loader import json_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def specification() -> dict[str, Any]:
    """Of specification files."""
    return json_schema()


def run() -> dict[str, Any]:
    """Of ``run.json``."""
    return _published(record.Record, "winready run.json", "Record", record.SCHEMA)


def journal() -> dict[str, Any]:
    """Of each line of ``journal.jsonl``."""
    return _published(events.AnyEvent, "a line of winready's journal.jsonl", "RunStarted", events.SCHEMA)


def active_directory() -> dict[str, Any]:
    """Of the files that ``--active-directory`` takes."""
    schema = msgspec.json.schema(directory.ActiveDirectory)
    title = "a domain that winready may use"
    return {"$schema": DIALECT, "$id": f"urn:{directory.SCHEMA.replace('/', ':')}", "title": title, **schema}


def doctor() -> dict[str, Any]:
    """Of what ``winready doctor -o json`` prints."""
    return _published(preflight.Examined, "winready doctor -o json", "Examined", preflight.SCHEMA)


def api() -> dict[str, Any]:
    """Of every answer of the dashboard's API."""
    schema = msgspec.json.schema(answers.Answer)
    for kind in get_args(answers.Answer):
        head = schema["$defs"][kind.__name__]
        head["properties"]["schema"] = {"const": answers.SCHEMA}
        head["required"] = [*head.get("required", []), "schema"]
    title = "an answer of the API of winready dashboard"
    return {"$schema": DIALECT, "$id": f"urn:{answers.SCHEMA.replace('/', ':')}", "title": title, **schema}


SCHEMAS = {
    "spec": specification,
    "run": run,
    "journal": journal,
    "doctor": doctor,
    "active-directory": active_directory,
    "api": api,
}


def _published(kind: Any, title: str, versioned: str, version: str) -> dict[str, Any]:
    schema: dict[str, Any] = msgspec.json.schema(kind)
    # What is written always names the schema that it follows; readers may be stricter than our own decoder.
    head = schema["$defs"][versioned]
    head["properties"]["schema"] = {"const": version}
    head["required"] = [*head.get("required", []), "schema"]
    return {"$schema": DIALECT, "$id": f"urn:{version.replace('/', ':')}", "title": title, **schema}
