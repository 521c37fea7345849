"""Kubernetes' sample API server, which others aggregate: flunders, kept in memory and gone with the process.

It trusts whoever calls it: callers reach it through the API server, which has asked who they are.
"""

from __future__ import annotations

import json
import re
import ssl
import uuid
from typing import Any

from winready_sandbox.clock import utc_now
from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs.agnhost.servers import https, until_killed
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import endpoint_of, server_tls

Object = dict[str, Any]
GROUP, VERSIONS = "wardle.example.com", ("v1alpha1", "v1beta1")
PORT = 443
_VERBS = ["create", "delete", "deletecollection", "get", "list"]
_JSON = {"Content-Type": "application/json"}
_PATH = re.compile(
    rf"/apis/{re.escape(GROUP)}/(?P<version>\w+)"
    r"(?:(?:/namespaces/(?P<space>[^/]+))?/flunders(?:/(?P<name>[^/]+))?)?"
)


async def sample_apiserver(process: Process) -> int:
    """Serve until killed."""
    flags = dict(word.removeprefix("--").partition("=")[::2] for word in process.argv[1:])
    try:
        pair = [
            process.files.read(flags.get(name, ""), who=process.identity)
            for name in ("tls-cert-file", "tls-private-key-file")
        ]
        listener = endpoint_of(process).listen(PORT, https(_Flunders().page, server_tls(*pair)))
    except (FileError, ssl.SSLError, NetworkError) as error:
        process.err(f"Error: error creating self-signed certificates: {error}\n")
        return 1
    return await until_killed([listener])


class _Flunders:
    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Object] = {}
        self._version = 1

    async def page(self, request: Request) -> Response:
        """Answer one request."""
        if request.path in ("/readyz", "/healthz", "/livez"):
            return Response("ok")
        if request.path in ("/apis", f"/apis/{GROUP}"):
            everything = {**_kind("APIGroupList", "v1"), "groups": [_group()]}
            return _answer(everything if request.path == "/apis" else _group())
        match = _PATH.fullmatch(request.path)
        if match is None or match["version"] not in VERSIONS:
            return _failure(404, "NotFound", "the server could not find the requested resource")
        if "flunders" not in request.path:
            return _answer(_resources(match["version"]))
        return self._flunder(request, f"{GROUP}/{match['version']}", match["space"] or "", match["name"] or "")

    def _flunder(self, request: Request, version: str, space: str, name: str) -> Response:
        if request.value("watch") in ("1", "true"):
            return _failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        if request.method == "POST" and not name:
            return self._create(request, version, space)
        chosen = {key: each for key, each in self._objects.items() if key[0] == space or not space}
        if not name:
            if request.method == "DELETE":
                self._drop(chosen)
            listed = [{**each, "apiVersion": version} for each in chosen.values()]
            head = {**_kind("FlunderList", version), "metadata": {"resourceVersion": str(self._version)}}
            return _answer({**head, "items": listed})
        found = self._objects.get((space, name))
        if found is None:
            return _failure(404, "NotFound", f'flunders.{GROUP} "{name}" not found')
        if request.method == "DELETE":
            self._drop({(space, name): found})
        return _answer({**found, "apiVersion": version})

    def _create(self, request: Request, version: str, space: str) -> Response:
        try:
            given: Object = json.loads(request.body)
            name = str(given["metadata"]["name"])
        except (ValueError, KeyError, TypeError) as error:
            return _failure(400, "BadRequest", f"the object provided is unrecognized: {error}")
        if (space, name) in self._objects:
            return _failure(409, "AlreadyExists", f'flunders.{GROUP} "{name}" already exists')
        self._version += 1
        told = {"uid": str(uuid.uuid4()), "resourceVersion": str(self._version), "namespace": space}
        told["creationTimestamp"] = f"{utc_now():%Y-%m-%dT%H:%M:%SZ}"
        made = {**given, **_kind("Flunder", version), "metadata": {**given["metadata"], **told}}
        self._objects[space, name] = made
        return _answer(made, 201)

    def _drop(self, chosen: dict[tuple[str, str], Object]) -> None:
        self._version += 1
        for key in chosen:
            del self._objects[key]


def _kind(kind: str, version: str) -> Object:
    return {"kind": kind, "apiVersion": version}


def _answer(body: Object, status: int = 200) -> Response:
    return Response(json.dumps(body), status, _JSON)


def _failure(code: int, reason: str, message: str) -> Response:
    told = {"metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}
    return _answer({**_kind("Status", "v1"), **told}, code)


def _group() -> Object:
    versions = [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in VERSIONS]
    return {**_kind("APIGroup", "v1"), "name": GROUP, "versions": versions, "preferredVersion": versions[0]}


def _resources(version: str) -> Object:
    flunders = {"name": "flunders", "singularName": "flunder", "namespaced": True, "kind": "Flunder", "verbs": _VERBS}
    return {**_kind("APIResourceList", "v1"), "groupVersion": f"{GROUP}/{version}", "resources": [flunders]}
