"""`agnhost inclusterclient`: polls the API server with the pod's own token, over real TLS, through its network."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError, TimedOut
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.agnhost.golang import klog
from winready_sandbox.programs.net import TlsStream, client_tls, endpoint_of, join_host_port

DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_PERIOD = 60.0
"""How long client-go trusts a token that it read."""
CONNECT_TIMEOUT = 30.0
FLAGS: cobra.Known = {"poll-interval": ("int", 30)}


class CallFailed(Exception):
    """One call that failed, in client-go's words; ``body``: what the server said, which is printed below them."""

    def __init__(self, words: str, body: bytes = b"") -> None:
        super().__init__(words)
        self.body = body.decode("utf-8", "replace")


async def main(process: Process, flags: cobra.Flags) -> int:
    """Poll until killed."""
    klog(process, "started", source="main.go:61")
    host, port = process.env.get("KUBERNETES_SERVICE_HOST", ""), process.env.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        missing = "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
        return golang.fatal(process, f"err: unable to load in-cluster configuration, {missing}")
    try:
        client = InClusterClient(process)
    except FileError as error:
        return golang.fatal(process, f"err: {golang.open_error(process, f'{DIRECTORY}/token', error)}")
    clock = process.container.clock
    while True:
        await clock.sleep(flags.number("poll-interval"))
        klog(process, "calling /healthz", source="main.go:79")
        try:
            await client.get("/healthz")
        except CallFailed as error:
            klog(process, "status=failed", level="E", source="main.go:82")
            klog(process, f"error checking /healthz: {error}\n{error.body}", level="E", source="main.go:83")


class InClusterClient:
    """The in-cluster client: its token file is read again every minute."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._host = process.env.get("KUBERNETES_SERVICE_HOST", "")
        self._port = int(process.env.get("KUBERNETES_SERVICE_PORT") or 443)
        self._token = self._read("token").strip()
        self._read_at = process.container.clock.now()

    def _read(self, name: str) -> str:
        files = self._process.files
        return files.read(f"{DIRECTORY}/{name}", who=self._process.identity).decode("ascii", "replace")

    def _current_token(self) -> str:
        now = self._process.container.clock.now()
        if now - self._read_at >= TOKEN_PERIOD:
            try:
                self._token, self._read_at = self._read("token").strip(), now
            except FileError:
                klog(self._process, "Unable to rotate token", level="E", source="token_source.go:152")
        return self._token

    async def get(self, path: str, address: str = "", port: int = 0, server_name: str | None = "") -> bytes:
        """One call, to the service of the API server or to that address of it; raises `CallFailed`."""
        address, port = address or self._host, port or self._port
        process, url = self._process, f"https://{join_host_port(server_name or address, port)}"
        header = f"Bearer {self._current_token()}"
        digest = hashlib.sha256(f"salt|{header}".encode()).digest()
        shown = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        klog(process, f"authz_header={shown}", source="main.go:99")
        prefix = f'Get "{url}{path}": '
        try:
            context = client_tls(verify=True, authorities=self._read("ca.crt"))
            connection = await endpoint_of(process).connect(address, port, timeout=CONNECT_TIMEOUT)
        except (FileError, ssl.SSLError) as error:
            raise CallFailed(f"{prefix}tls: failed to verify certificate: {error}") from None
        except TimedOut:
            raise CallFailed(f"{prefix}dial tcp {join_host_port(address, port)}: i/o timeout") from None
        except NetworkError as error:
            raise CallFailed(prefix + golang.dial_error(process, error, address, port)) from None
        stream = TlsStream(connection, context, server_name=server_name or address)
        try:
            await stream.handshake()
            headers = [("Host", join_host_port(server_name or address, port)), ("Accept", "application/json, */*")]
            headers += [("Authorization", header), ("User-Agent", "agnhost/v1.36"), ("Connection", "close")]
            stream.write(http1.request_bytes("GET", path, headers))
            answer = await http1.read_answer(stream)
        except ssl.SSLCertVerificationError as error:
            raise CallFailed(f"{prefix}tls: failed to verify certificate: x509: {error.verify_message}") from None
        except (ssl.SSLError, EOFError, http1.BadAnswer, asyncio.IncompleteReadError):
            raise CallFailed(f"{prefix}EOF") from None
        finally:
            stream.close()
        if answer is None:
            raise CallFailed(f"{prefix}EOF")
        if answer.status != 200:
            # client-go keeps the server's own words of 403 alone.
            text = {
                401: "the server has asked for the client to provide credentials",
                403: f'forbidden: cannot get path "{path}"',
            }.get(answer.status, f"the server responded with the status code {answer.status} but did not return more")
            raise CallFailed(text, answer.body)
        return answer.body
