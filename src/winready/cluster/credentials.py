"""Who we say we are, kept fresh: tokens that rotate on disk and plug-ins that hand out new ones."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from winready.cluster.errors import ConfigError
from winready.cluster.kubeconfig import ExecPlugin, Target

PLUGIN_SECONDS = 60.0
FRESH_SECONDS = 30.0
"""A credential that ends sooner than this is renewed before it is used."""


@dataclass(frozen=True)
class Issued:
    """What a plug-in handed out."""

    token: str | None
    certificate: bytes | None
    key: bytes | None
    expires: datetime | None

    def stale(self) -> bool:
        """Whether it ends now or soon."""
        return self.expires is not None and (self.expires - datetime.now(UTC)).total_seconds() < FRESH_SECONDS


class Credentials:
    """The headers and the TLS context of a target, renewed when they end or are refused."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._issued: Issued | None = None
        self._from_file: str | None = None
        self._context: ssl.SSLContext | None = None
        self._lock = asyncio.Lock()

    async def headers(self) -> list[tuple[str, str]]:
        """Authorization and impersonation headers for the next request."""
        target = self.target
        result = [(name, value) for name, values in target.impersonate.items() for value in values]
        if target.plugin:
            await self._renew(target.plugin)
        token = target.token or (self._issued.token if self._issued else None)
        if token is None and target.token_file:
            token = self._from_file = _read_token(target.token_file)
        if token:
            result.append(("Authorization", f"Bearer {token}"))
        elif target.basic:
            pair = base64.b64encode(":".join(target.basic).encode()).decode()
            result.append(("Authorization", f"Basic {pair}"))
        return result

    def secrets(self) -> list[str]:
        """Everything that was sent to prove who we are: nothing of it may reach a record."""
        issued = self._issued.token if self._issued else None
        found = [self.target.token, issued, self._from_file, self.target.basic[1] if self.target.basic else None]
        return [secret for secret in found if secret]

    async def tls(self) -> ssl.SSLContext | bool:
        """The TLS context; made anew when a plug-in handed out another client certificate."""
        if not self.target.server.startswith("https:"):
            return False
        if self.target.plugin:
            await self._renew(self.target.plugin)
        if self._context is None:
            self._context = self._make_context()
        return self._context

    async def refused(self) -> bool:
        """A 401 came back. True when there is hope that the next try carries something newer."""
        if self.target.plugin and self._issued:
            self._issued = None
            self._context = None
            return True
        return self.target.token_file is not None

    def _make_context(self) -> ssl.SSLContext:
        target = self.target
        try:
            context = ssl.create_default_context(cadata=target.ca.decode("ascii") if target.ca else None)
        except (ssl.SSLError, UnicodeDecodeError):
            raise ConfigError(
                f"the certificate authority of cluster {target.cluster!r} is not a PEM certificate",
                "repair certificate-authority in the kubeconfig",
            ) from None
        if target.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate = (self._issued.certificate if self._issued else None) or target.client_certificate
        key = (self._issued.key if self._issued else None) or target.client_key
        if certificate and key:
            _load_pair(context, certificate, key, target.context)
        return context

    async def _renew(self, plugin: ExecPlugin) -> None:
        async with self._lock:
            if self._issued is not None and not self._issued.stale():
                return
            issued = await run_plugin(plugin, self.target)
            if self._issued is None or issued.certificate != self._issued.certificate:
                self._context = None
            self._issued = issued


def _read_token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ConfigError(f"token file {path} cannot be read: {error.strerror}") from None


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes, name: str) -> None:
    # ssl reads key pairs from files only; the folder is private and gone before the first request.
    with tempfile.TemporaryDirectory(prefix="winready-") as folder:
        pair = Path(folder) / "pair.pem"
        descriptor = os.open(pair, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(certificate + b"\n" + key)
        try:
            context.load_cert_chain(pair)
        except ssl.SSLError:
            raise ConfigError(
                f"the client certificate and key of context {name!r} do not fit together or are not PEM",
                "renew the credentials in the kubeconfig",
            ) from None


async def run_plugin(plugin: ExecPlugin, target: Target) -> Issued:
    """Run a credential plug-in as client-go does and read what it hands out."""
    info: dict[str, Any] = {
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()},
    }
    if plugin.provide_cluster_info:
        cluster: dict[str, Any] = {"server": target.server}
        if target.ca:
            cluster["certificate-authority-data"] = base64.b64encode(target.ca).decode()
        optional = {"tls-server-name": target.tls_server_name, "proxy-url": target.proxy_url}
        cluster |= {key: value for key, value in optional.items() if value}
        if target.insecure:
            cluster["insecure-skip-tls-verify"] = True
        info["spec"]["cluster"] = cluster
    env = {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command, *plugin.args, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except OSError as error:
        remedy = plugin.install_hint or f"install {plugin.command} or correct its path in the kubeconfig"
        raise ConfigError(f"credential plug-in {plugin.command!r} did not start: {error.strerror}", remedy) from None
    try:
        stdout, stderr = await asyncio.wait_for(process.communicate(), PLUGIN_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise ConfigError(f"credential plug-in {plugin.command!r} gave no answer in {PLUGIN_SECONDS:g} s") from None
    if process.returncode != 0:
        tail = stderr.decode(errors="replace").strip().splitlines()[-3:]
        detail = f"credential plug-in {plugin.command!r} ended with exit code {process.returncode}: {' '.join(tail)}"
        raise ConfigError(detail, "log in again with the tool of your provider")
    return _issued(plugin, stdout)


def _issued(plugin: ExecPlugin, output: bytes) -> Issued:
    try:
        document = json.loads(output)
        status = document["status"]
        expires = status.get("expirationTimestamp")
        issued = Issued(
            token=status.get("token"),
            certificate=_encoded(status.get("clientCertificateData")),
            key=_encoded(status.get("clientKeyData")),
            expires=datetime.fromisoformat(expires) if expires else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"credential plug-in {plugin.command!r} printed no ExecCredential") from None
    if document.get("apiVersion") != plugin.api_version:
        raise ConfigError(
            f"credential plug-in {plugin.command!r} answered in {document.get('apiVersion')!r}, "
            f"the kubeconfig asks for {plugin.api_version!r}"
        )
    if not issued.token and not (issued.certificate and issued.key):
        raise ConfigError(f"credential plug-in {plugin.command!r} handed out neither a token nor a certificate")
    return issued


def _encoded(text: str | None) -> bytes | None:
    return text.encode() if text else None
