"""Requests that the API server does not answer itself but carries to a node, a pod or a service.

The server's part is to find the address, to choose the container, and to say what the real one
says when either fails; what containers answer is the node's affair.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from winready_sandbox.api.errors import ApiError, bad_request, invalid, unprocessable
from winready_sandbox.api.identity import Objects, User
from winready_sandbox.api.paths import Target
from winready_sandbox.api.rbac import Authorizer, Request
from winready_sandbox.api.tunnel import EgressConnector, Failure, forward, upgrade, wants_upgrade
from winready_sandbox.egress import Egress, NoRoute
from winready_sandbox.pki import KeyPair

KUBELET_PORT = 10250
UPGRADES_NEED_CREATE = 35
"""Since this minor version a WebSocket, which begins as a GET, needs the right to create exec as well."""
STREAM_OPTIONS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
LOG_SWITCHES = ("follow", "previous", "timestamps")
LOG_VALUES = ("sinceTime", "stream")
LOG_NUMBERS = {"tailLines": 0, "sinceSeconds": 1, "limitBytes": 1}
TRUE = ("true", "1", "t")

Object = dict[str, Any]


class KubeletGateway:
    """The way from API paths to what runs on nodes."""

    def __init__(
        self,
        objects: Objects,
        egress: Egress,
        identity: KeyPair | None = None,
        *,
        authorizer: Authorizer | None = None,
        minor: int = UPGRADES_NEED_CREATE,
    ) -> None:
        self._objects = objects
        self._authorizer = authorizer if minor >= UPGRADES_NEED_CREATE else None
        self._egress = egress
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Like a real API server without --kubelet-certificate-authority: whoever serves the node's port is believed.
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE
        if identity is not None:
            identity.load_into(self._tls)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Let go of what is open."""
        if self._session is not None:
            await self._session.close()

    async def connect(self, request: web.Request, target: Target, user: User) -> web.StreamResponse:
        """Answer ``pods/{exec,attach,portforward,log,proxy}``, ``nodes/proxy`` and ``services/proxy``."""
        namespace, name = target.namespace, target.name
        if target.subresource == "proxy":
            scheme, base, port = _proxy_name(name)
            if target.plural == "nodes":
                url = self._node_url(base, scheme, port)
            elif target.plural == "pods":
                url = self._pod_url(namespace, base, scheme, port)
            else:
                url = self._service_url(namespace, base, scheme, port)
            far = URL(f"{url}{_proxied_path(request, target)}", encoded=True)
            return await self._carry(request, far, "error trying to reach service: ", 503, "ServiceUnavailable")
        pod = self._objects.get("pods", name, namespace)
        if target.subresource == "log":
            return await self._log(request, pod)
        if self._authorizer is not None:
            self._authorizer.require(user, Request("create", "", "pods", target.subresource, namespace, name))
        return await self._stream(request, pod, target.subresource)

    async def _stream(self, request: web.Request, pod: Object, subresource: str) -> web.StreamResponse:
        """exec, attach and port-forward."""
        metadata = pod["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        query: list[tuple[str, str]] = []
        if subresource == "portforward":
            path = f"/portForward/{namespace}/{name}"
            query += [("port", port) for value in request.query.getall("ports", []) for port in value.split(",")]
        else:
            container = _container(pod, request.query.get("container", ""))
            path = f"/{subresource}/{namespace}/{name}/{container}"
            query += [(kubelet, "1") for ours, kubelet in STREAM_OPTIONS.items() if _is_set(request, ours)]
            if subresource == "exec":
                commands = request.query.getall("command", [])
                if not commands:
                    raise bad_request("you must specify at least 1 command for the container")
                query += [("command", word) for word in commands]
            if not any(option in ("input", "output", "error") for option, _ in query):
                raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
        if not pod["spec"].get("nodeName"):
            raise bad_request(f"pod {name} does not have a host assigned")
        if not wants_upgrade(request):
            raise bad_request("Upgrade request required")
        target = URL(f"{self._node_url(pod['spec']['nodeName'])}{path}").with_query(query)
        return await self._carry(request, target, "error dialing backend: ", 500, "InternalError")

    async def _log(self, request: web.Request, pod: Object) -> web.StreamResponse:
        _check_log_options(request, pod["metadata"]["name"])
        metadata = pod["metadata"]
        container = _container(pod, request.query.get("container", ""))
        if not pod["spec"].get("nodeName"):
            return web.Response(status=204)
        query = [(option, "true") for option in LOG_SWITCHES if _is_set(request, option)]
        query += [(key, request.query[key]) for key in (*LOG_NUMBERS, *LOG_VALUES) if request.query.get(key)]
        path = f"/containerLogs/{metadata['namespace']}/{metadata['name']}/{container}"
        target = URL(f"{self._node_url(pod['spec']['nodeName'])}{path}").with_query(query)
        return await self._carry(request, target, f'Get "{target}": ', 500, "InternalError", _log_failure)

    async def _carry(
        self, request: web.Request, url: URL, prefix: str, code: int, reason: str, failure: Failure | None = None
    ) -> web.StreamResponse:
        """Send a request on; an address that does not answer becomes the given error."""
        try:
            if wants_upgrade(request):
                return await upgrade(self._egress, self._tls, request, url)
            if self._session is None:
                timeout = aiohttp.ClientTimeout(total=None)
                connector = EgressConnector(self._egress, self._tls)
                self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
            return await forward(self._session, request, url, failure)
        except (NoRoute, OSError, EOFError, asyncio.IncompleteReadError, aiohttp.ClientError) as error:
            if isinstance(error, aiohttp.ClientConnectionResetError) and request.transport is None:
                raise
            raise ApiError(code, reason, f"{prefix}{str(error) or 'EOF'}") from None

    def _node_url(self, name: str, scheme: str = "", port: str = "") -> str:
        node = self._objects.get("nodes", name)
        status = node.get("status") or {}
        addresses = [each["address"] for each in status.get("addresses") or [] if each["type"] == "InternalIP"]
        if not addresses:
            kinds = "[Hostname InternalDNS InternalIP ExternalDNS ExternalIP]"
            raise ApiError(500, "InternalError", f"no preferred addresses found; known addresses: [], wanted: {kinds}")
        endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        return f"{scheme or 'https'}://{_host(addresses[0])}:{port or endpoint.get('Port') or KUBELET_PORT}"

    def _pod_url(self, namespace: str, name: str, scheme: str, port: str) -> str:
        pod = self._objects.get("pods", name, namespace)
        address = (pod.get("status") or {}).get("podIP")
        if not address:
            raise bad_request(f"address not allowed: pod {name} has no IP address yet")
        if not port:
            declared = [p["containerPort"] for c in pod["spec"]["containers"] for p in c.get("ports") or []]
            port = str(declared[0]) if declared else "443" if scheme == "https" else "80"
        return f"{scheme or 'http'}://{_host(address)}:{port}"

    def _service_url(self, namespace: str, name: str, scheme: str, port: str) -> str:
        service = self._objects.get("services", name, namespace)
        ports = service["spec"].get("ports") or []
        if not port and len(ports) == 1:
            chosen = ports[0]
        else:
            matching = [p for p in ports if port in (p.get("name", ""), str(p["port"]))]
            if not matching:
                raise _unavailable(f'no service port "{port}" found for service "{name}"')
            chosen = matching[0]
        for slice_ in self._objects.list("endpointslices", namespace)[0]:
            if (slice_["metadata"].get("labels") or {}).get("kubernetes.io/service-name") != name:
                continue
            numbers = [p["port"] for p in slice_.get("ports") or [] if p.get("name", "") == chosen.get("name", "")]
            for endpoint in slice_.get("endpoints") or []:
                if numbers and (endpoint.get("conditions") or {}).get("ready", True) is not False:
                    return f"{scheme or 'http'}://{_host(endpoint['addresses'][0])}:{numbers[0]}"
        raise _unavailable(f'no endpoints available for service "{name}"')


def _proxied_path(request: web.Request, target: Target) -> str:
    """What follows ``/proxy`` in a request, untouched: its escapes, slashes and query mean something to the far end."""
    path, _, query = request.raw_path.partition("?")
    depth = 8 if target.namespace else 6
    rest = "/" + "/".join(path.split("/")[depth:])
    return f"{rest}?{query}" if query else rest


def _proxy_name(name: str) -> tuple[str, str, str]:
    """Split ``[https:]name[:port]``."""
    parts = name.split(":")
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    return ("", parts[0], parts[1]) if len(parts) == 2 else ("", name, "")


def _container(pod: Object, wanted: str) -> str:
    """The container that a request is about; without a name there may be only one."""
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    names, inits, ephemerals = (
        [container["name"] for container in spec.get(key) or []]
        for key in ("containers", "initContainers", "ephemeralContainers")
    )
    if not wanted:
        if len(names) == 1:
            return str(names[0])
        text = f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(names)}]"
        if inits:
            text += f" or one of the init containers: [{' '.join(inits)}]"
        if ephemerals:
            text += f" or one of the ephemeral containers: [{' '.join(ephemerals)}]"
        raise bad_request(text)
    if wanted not in (*names, *inits, *ephemerals):
        raise bad_request(f"container {wanted} is not valid for pod {pod_name}")
    return wanted


def _check_log_options(request: web.Request, pod: str) -> None:
    errors = []
    for option, least in LOG_NUMBERS.items():
        text = request.query.get(option)
        if not text:
            continue
        try:
            number = int(text)
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
        if number < least:
            rule = f"must be greater than {'or equal to ' if least == 0 else ''}0"
            errors.append(invalid(option, number, rule))
    if request.query.get("sinceSeconds") and request.query.get("sinceTime"):
        errors.append(invalid("sinceSeconds", "", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    if errors:
        raise unprocessable("PodLogOptions", "", pod, errors)


def _log_failure(code: int, text: str) -> ApiError:
    """A kubelet's refusal of a log as the API server hands it on."""
    if code == 400:
        return bad_request(text)
    if code == 404:
        return ApiError(404, "NotFound", "the server could not find the requested resource")
    return ApiError(500, "InternalError", f"Internal error occurred: {text}")


def _is_set(request: web.Request, option: str) -> bool:
    return request.query.get(option, "").lower() in TRUE


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message)
