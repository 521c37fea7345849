"""``agnhost test-service-account-issuer-discovery``: verifies its token by the keys that the server publishes."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from winready_sandbox.clock import wall_time
from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.agnhost.golang import klog
from winready_sandbox.programs.agnhost.inclusterclient import DIRECTORY, CallFailed, InClusterClient
from winready_sandbox.programs.net import addresses

FLAGS: cobra.Known = {"token-path": ("string", ""), "audience": ("string", "")}


class NotValid(Exception):
    """Why the token is not to be trusted."""


async def main(process: Process, flags: cobra.Flags) -> int:
    """Verify the token once."""
    path = flags.text("token-path")
    try:
        token = process.files.read(path, who=process.identity).decode().strip()
        client = InClusterClient(process)
    except FileError as error:
        return golang.fatal(process, golang.open_error(process, path or f"{DIRECTORY}/token", error))
    klog(process, "OK: Got token")
    klog(process, "validating with in-cluster discovery")
    try:
        await _validate(process, client, token, flags.text("audience"))
    except (NotValid, CallFailed, NetworkError, ValueError, KeyError) as error:
        klog(process, f"failed to validate with in-cluster discovery: {error}")
        return golang.fatal(process, "falling back to validating with external discovery: no such issuer")
    return 0


async def _validate(process: Process, client: InClusterClient, token: str, audience: str) -> None:
    head, body, signature = token.split(".")
    claims = json.loads(_decoded(body))
    issuer = str(claims["iss"])
    klog(process, f"OK: got issuer {issuer}")
    host = urlsplit(issuer)
    (address, *_) = await addresses(process, host.hostname or "")
    found = json.loads(await client.get("/.well-known/openid-configuration", address, host.port or 443, host.hostname))
    if found["issuer"] != issuer:
        raise NotValid(f"oidc: issuer did not match the issuer returned by provider, expected {issuer!r}")
    klog(process, f"OK: Constructed OIDC provider for issuer {issuer}")
    keys = urlsplit(found["jwks_uri"])
    there = keys.hostname or ""
    (address, *_) = await addresses(process, there)
    published = json.loads(await client.get(keys.path, address, keys.port or 443, there))
    wanted, signed = json.loads(_decoded(head)).get("kid"), f"{head}.{body}".encode()
    known = [key for key in published["keys"] if key.get("kid") == wanted]
    if not any(_signed(key, signed, _decoded(signature)) for key in known):
        raise NotValid("oidc: failed to verify signature: failed to verify id token signature")
    if audience not in claims["aud"] or claims["exp"] < wall_time():
        raise NotValid(f"oidc: expected audience {audience!r} got {claims['aud']!r}")
    klog(process, "OK: Validated signature on JWT")
    klog(process, "OK: Got valid claims from token!")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _signed(key: dict[str, Any], data: bytes, signature: bytes) -> bool:
    """Whether this key, as JSON describes it, made the signature."""
    try:
        if key["kty"] == "RSA":
            numbers = rsa.RSAPublicNumbers(int.from_bytes(_decoded(key["e"])), int.from_bytes(_decoded(key["n"])))
            numbers.public_key().verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
        else:
            point = ec.EllipticCurvePublicNumbers(
                int.from_bytes(_decoded(key["x"])), int.from_bytes(_decoded(key["y"])), ec.SECP256R1()
            )
            half = len(signature) // 2
            pair = encode_dss_signature(int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))
            point.public_key().verify(pair, data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True
