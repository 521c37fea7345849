"""A cluster as far as a machine asks it before it joins: over TLS, what a stranger may know, and the release it has."""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import hmac
import ipaddress
import json
import ssl
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from windows.ground import Ground
from winready.node.joining import ca_hashes

RELEASE, NEXT = "1.36.3", "1.37.0"
ENDPOINT = "127.0.0.1:6443"
TOKEN = "abcdef.0123456789abcdef"
_NOW = datetime.datetime.now(datetime.UTC)


class Authority:
    """A certificate authority, of its own or below another one, and what it signs."""

    def __init__(self, name: str, above: Authority | None = None) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer = above or self
        builder = signer._builder(self._name, self._key)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self.certificate = builder.add_extension(basic, critical=True).sign(signer._key, hashes.SHA256())
        self._sent = self.pem if above else b""

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(_NOW - datetime.timedelta(days=1))
        return builder.not_valid_after(_NOW + datetime.timedelta(days=1))

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def fingerprint(self) -> str:
        """As kubeadm pins it."""
        return ca_hashes(self.pem)[0]

    def context(self, address: str) -> ssl.SSLContext:
        """A server with a certificate for an address."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]), key)
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        certificate = builder.add_extension(names, critical=False).sign(self._key, hashes.SHA256())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "server.pem"
            file.write_bytes(private + certificate.public_bytes(Encoding.PEM) + self._sent)
            context.load_cert_chain(file)
        return context


CLUSTER, OTHERS = Authority("kubernetes"), Authority("kubernetes")
"""That of our cluster, and one of the same name."""
BELOW = Authority("issuing", CLUSTER)
"""One that the cluster's own vouches for; servers send its certificate along."""
CA_HASH = CLUSTER.fingerprint


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class Api:
    """What the API server answers; a test may change it."""

    release: str = RELEASE
    tokens: list[str] = field(default_factory=lambda: [TOKEN])
    """Tokens that the cluster has signed its description with."""
    authority: Authority = CLUSTER
    """Whose certificate it shows."""
    named: Authority = CLUSTER
    """Whose certificate stands in the description."""
    address: str = "127.0.0.1"
    """What the certificate is for."""
    refusal: int = 0
    """Answer everything with this instead."""
    asked: list[str] = field(default_factory=list)

    def kubeconfig(self) -> str:
        data = base64.b64encode(self.named.pem).decode()
        cluster = f"certificate-authority-data: {data}\n    server: https://{ENDPOINT}"
        return f'apiVersion: v1\nclusters:\n- cluster:\n    {cluster}\n  name: ""\nkind: Config\n'

    def signature(self, token: str) -> str:
        """Detached, as the bootstrap signer writes it."""
        identifier, _, secret = token.partition(".")
        head = _encoded(json.dumps({"alg": "HS256", "kid": identifier}, separators=(",", ":")).encode())
        signed = f"{head}.{_encoded(self.kubeconfig().encode())}".encode()
        return f"{head}..{_encoded(hmac.new(secret.encode(), signed, hashlib.sha256).digest())}"

    def answer(self, path: str) -> tuple[int, object]:
        if self.refusal:
            return self.refusal, {"kind": "Status", "code": self.refusal}
        if path == "/version":
            major, minor, _ = self.release.split(".")
            return 200, {"major": major, "minor": minor, "gitVersion": f"v{self.release}"}
        if path == "/api/v1/namespaces/kube-public/configmaps/cluster-info":
            signatures = {f"jws-kubeconfig-{token[:6]}": self.signature(token) for token in self.tokens}
            return 200, {"kind": "ConfigMap", "data": {"kubeconfig": self.kubeconfig(), **signatures}}
        return 404, {"kind": "Status", "code": 404}


@contextlib.contextmanager
def api_server(ground: Ground, given: Api | None = None) -> Iterator[Api]:
    """An API server where the bundles say that it is, in the machine's network."""
    api = given or Api()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            api.asked.append(self.path)
            code, document = api.answer(self.path)
            content = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def finish_request(self, request: Any, client_address: Any) -> None:
            # In the thread of the connection: somebody who only connects keeps nobody else waiting.
            context = api.authority.context(api.address)
            with context.wrap_socket(request, server_side=True) as encrypted:
                super().finish_request(encrypted, client_address)

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is none of the test's business."""

    host, _, port = ENDPOINT.partition(":")
    with ground.network():
        server = Server((host, int(port)), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
