"""The certificate in a Secret: made by the server itself, and its authority is where an ExtensionConfig takes it from.

The Secret is made empty, by whoever deploys. The server may change that one and no other; nobody ever sees the key.
"""

from __future__ import annotations

import base64
import binascii
import datetime

from cryptography import x509

from winready.cluster.client import Client, Object
from winready.cluster.errors import ClusterError, Conflict, NotFound
from winready.cluster.resources import SECRETS
from winready.cluster.serving import CA, CERTIFICATE, KEY, Identity, fits, make_identity

NAME = "winready-capi"
REST = datetime.timedelta(days=30)
"""It is made anew that long before its end."""
TRIES = 5


async def from_secret(client: Client, namespace: str, name: str, host: str) -> Identity:
    """The identity in a Secret, made anew where it does not hold for a month; raises `ClusterError`."""
    for _ in range(TRIES):
        try:
            secret = await client.get(SECRETS, name, namespace)
        except NotFound:
            raise ClusterError(
                f"there is no Secret {namespace}/{name} for the certificate",
                "'winready deploy capi' makes an empty one",
            ) from None
        found = _read(secret)
        if found is not None and _holds(found, host):
            return found
        made = make_identity(host, NAME)
        # Controllers that still trust the old authority, and those that learnt of the new one, are both right.
        known = made.ca + (found.ca.partition(b"-----END CERTIFICATE-----\n")[0] + b"-----END CERTIFICATE-----\n"
                           if found else b"")  # fmt: skip
        data = {CA: known, CERTIFICATE: made.certificate, KEY: made.key}
        secret["data"] = {**(secret.get("data") or {}), **{k: base64.b64encode(v).decode() for k, v in data.items()}}
        try:
            await client.replace(SECRETS, secret)
        except Conflict:
            continue
        return Identity(known, made.certificate, made.key)
    raise ClusterError(
        f"somebody else keeps changing Secret {namespace}/{name}", "give each server a Secret of its own"
    )


def _read(secret: Object) -> Identity | None:
    data = secret.get("data") or {}
    try:
        values = [base64.b64decode(data[name], validate=True) for name in (CA, CERTIFICATE, KEY)]
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
    return Identity(*values) if all(values) else None


def _holds(found: Identity, host: str) -> bool:
    try:
        found.context()
        return fits(found, host, REST)
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
