"""Ed25519 signatures over a bundle's digest list: the same key and bundle always give the same bytes."""

from __future__ import annotations

import base64
import hashlib

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

_HOW = "'openssl genpkey -algorithm ed25519' makes one"


class KeyProblem(Exception):
    """The key cannot be used; the message says why and never shows the key."""


def private_key(pem: bytes, name: str) -> Ed25519PrivateKey:
    """An Ed25519 private key from PEM."""
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError:
        raise KeyProblem(f"{name} is protected by a password; give an unencrypted Ed25519 key") from None
    except (ValueError, UnsupportedAlgorithm):
        raise KeyProblem(f"{name} is not a private key in PEM; {_HOW}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyProblem(f"{name} is not an Ed25519 key; {_HOW}")
    return key


def public_key(pem: bytes, name: str) -> Ed25519PublicKey:
    """An Ed25519 public key from PEM."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyProblem(f"{name} is not a public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyProblem(f"{name} is not an Ed25519 key")
    return key


def public_pem(key: Ed25519PrivateKey) -> bytes:
    """The public half, as it goes into the bundle."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def fingerprint(key: Ed25519PublicKey) -> str:
    """How people compare keys."""
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"


def sign(key: Ed25519PrivateKey, data: bytes) -> bytes:
    """A signature as a line of base64."""
    return base64.b64encode(key.sign(data)) + b"\n"


def signed_by(key: Ed25519PublicKey, data: bytes, signature: bytes) -> bool:
    """Whether the signature is this key's, over exactly these bytes."""
    try:
        raw = base64.b64decode(signature.removesuffix(b"\n"), validate=True)
        key.verify(raw, data)
    except (InvalidSignature, ValueError):
        return False
    return True
