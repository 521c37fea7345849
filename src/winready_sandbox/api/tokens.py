"""Service-account tokens: signed, expiring, bound to an audience and to the objects they were made for.

A token is worth as much as what it is bound to: it dies with its service account, and with the
pod, secret or node named in it, because every use looks these objects up again by UID.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from winready_sandbox.api.errors import ApiError, bad_request, conflict, invalid, unprocessable
from winready_sandbox.api.identity import Objects, User, service_account_user
from winready_sandbox.chance import unique
from winready_sandbox.clock import utc_now, wall_time

ISSUER = "https://kubernetes.default.svc.cluster.local"
AUTHENTICATION = "authentication.k8s.io"
DEFAULT_SECONDS = 3600
SHORTEST_SECONDS = 600
LONGEST_SECONDS = 2**32
WARN_ONLY_SECONDS = 3607
"""What kubelets ask for in a pod's own token; such tokens outlive it by far, for clients that never read them again."""
EXTENDED_SECONDS = 365 * 24 * 3600
CLOCK_LEEWAY = 60
"""Seconds that the API server's clock and the token's may differ, before and after its life."""
DELETION_LEEWAY = datetime.timedelta(seconds=60)
BOUND_KINDS = {("v1", "Pod"): "pods", ("v1", "Secret"): "secrets", ("v1", "Node"): "nodes"}
COORDINATE_SIZE = 32


class TokenError(Exception):
    """Why a token is not accepted."""


@dataclass
class TokenDefects:
    """What can be wrong with tokens."""

    rotated_refused: bool = False
    """Tokens that running pods are given are signed with a key that the API server does not accept yet."""


class TokenIssuer:
    """Signs tokens, checks them, and publishes the key to check them with."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, objects: Objects, issuer: str = ISSUER) -> None:
        self._key = key
        self._objects = objects
        self.issuer = issuer
        self.defects = TokenDefects()
        self._next_key: ec.EllipticCurvePrivateKey | None = None
        self.audiences = [issuer]
        """What a token without other wishes is good for: the API server itself."""
        der = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._key_id = _base64url(hashlib.sha256(der).digest())

    def request(self, namespace: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a ``TokenRequest`` for a service account."""
        account = self._objects.get("serviceaccounts", name, namespace)
        spec = body.get("spec") or {}
        seconds = spec.get("expirationSeconds")
        seconds = DEFAULT_SECONDS if seconds is None else seconds
        _check_lifetime(seconds)
        audiences = list(spec.get("audiences") or self.audiences)
        now = int(wall_time())
        private: dict[str, Any] = {
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": account["metadata"]["uid"]},
        }
        reference = spec.get("boundObjectRef")
        if reference:
            private.update(self._bound(reference, namespace, name))
        lifetime = seconds
        if (
            reference
            and reference.get("kind") == "Pod"
            and seconds == WARN_ONLY_SECONDS
            and audiences == self.audiences
        ):
            private["warnafter"] = now + seconds
            lifetime = EXTENDED_SECONDS
        token = self._sign(
            self._signing_key(reference, namespace),
            {
                "aud": audiences,
                "exp": now + lifetime,
                "iat": now,
                "iss": self.issuer,
                "jti": unique(),
                "kubernetes.io": private,
                "nbf": now,
                "sub": f"system:serviceaccount:{namespace}:{name}",
            },
        )
        expires = datetime.datetime.fromtimestamp(now + seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{AUTHENTICATION}/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": _timestamp(now)},
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference or None},
            "status": {"token": token, "expirationTimestamp": expires},
        }

    def user(self, token: str, audiences: list[str] | None = None) -> tuple[User, list[str]]:
        """Whom a token stands for and which of the audiences it is good for; ``TokenError`` says why it is not."""
        claims = self._verified(token)
        now = wall_time()
        if claims["exp"] + CLOCK_LEEWAY < now:
            raise TokenError("service account token has expired")
        if claims["nbf"] > now + CLOCK_LEEWAY:
            raise TokenError("service account token is not valid yet")
        wanted = audiences or self.audiences
        good_for = [audience for audience in wanted if audience in claims["aud"]]
        if not good_for:
            raise TokenError(
                f"token audiences {json.dumps(claims['aud'])} is invalid for the target audiences {wanted}"
            )
        private = claims["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        self._alive("serviceaccounts", account, namespace, "service account")
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}
        for kind, scope in (("pod", namespace), ("secret", namespace), ("node", "")):
            bound = private.get(kind)
            if not bound:
                continue
            if kind != "node" or "pod" not in private:
                self._alive(f"{kind}s", bound, scope, kind)
            if kind != "secret":
                extra[f"authentication.kubernetes.io/{kind}-name"] = [bound["name"]]
                extra[f"authentication.kubernetes.io/{kind}-uid"] = [bound["uid"]]
        return service_account_user(namespace, account["name"], account["uid"], extra), good_for

    def jwks(self) -> dict[str, Any]:
        """``/openid/v1/jwks``: the public key."""
        numbers = self._key.public_key().public_numbers()
        point = {axis: _base64url(n.to_bytes(COORDINATE_SIZE)) for axis, n in (("x", numbers.x), ("y", numbers.y))}
        key = {"use": "sig", "kty": "EC", "kid": self._key_id, "crv": "P-256", "alg": "ES256", **point}
        return {"keys": [key]}

    def openid_configuration(self, server: str) -> dict[str, Any]:
        """``/.well-known/openid-configuration``."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{server}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }

    def _bound(self, reference: dict[str, Any], namespace: str, account: str) -> dict[str, Any]:
        """The claims of the object that a token is bound to."""
        kind = reference.get("kind", "")
        resource = BOUND_KINDS.get((reference.get("apiVersion", ""), kind))
        if resource is None:
            raise bad_request(f"cannot bind token to object of type {reference.get('apiVersion', '')}, Kind={kind}")
        name = reference.get("name", "")
        found = self._objects.get(resource, name, "" if resource == "nodes" else namespace)
        uid = found["metadata"]["uid"]
        if reference.get("uid") and reference["uid"] != uid:
            text = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            raise conflict(resource, "", name, text + "The object might have been deleted and then recreated")
        claims = {kind.lower(): {"name": name, "uid": uid}}
        if kind == "Pod":
            if found["spec"].get("serviceAccountName") != account:
                text = "to pod running with different serviceaccount name."
                raise bad_request(f'cannot bind token for serviceaccount "{account}" {text}')
            if node_name := found["spec"].get("nodeName"):
                claims["node"] = {"name": node_name, **self._node_uid(node_name)}
        return claims

    def _node_uid(self, name: str) -> dict[str, str]:
        try:
            return {"uid": self._objects.get("nodes", name)["metadata"]["uid"]}
        except ApiError as error:
            if error.code != 404:
                raise
            return {}

    def _alive(self, resource: str, reference: dict[str, Any], namespace: str, what: str) -> None:
        """Refuse a token whose object is gone, replaced or long on its way out."""
        try:
            metadata = self._objects.get(resource, reference["name"], namespace)["metadata"]
        except ApiError as error:
            if error.code != 404:
                raise
            raise TokenError(f"{what} {reference['name']} no longer exists: the token has been invalidated") from None
        if metadata["uid"] != reference["uid"]:
            raise TokenError(f"{what} UID ({metadata['uid']}) does not match claim ({reference['uid']})")
        deleted = metadata.get("deletionTimestamp")
        if deleted:
            since = utc_now() - datetime.datetime.fromisoformat(deleted)
            if since > DELETION_LEEWAY:
                raise TokenError(f"{what} {reference['name']} has been deleted: the token has been invalidated")

    def _signing_key(self, reference: dict[str, Any] | None, namespace: str) -> ec.EllipticCurvePrivateKey:
        """The issuer's own key; with the defect, the next one for pods that run already."""
        if not self.defects.rotated_refused or not reference or reference.get("kind") != "Pod":
            return self._key
        pod = self._objects.get("pods", reference.get("name", ""), namespace)
        if (pod.get("status") or {}).get("phase") != "Running":
            return self._key
        if self._next_key is None:
            self._next_key = ec.generate_private_key(ec.SECP256R1())
        return self._next_key

    def _sign(self, key: ec.EllipticCurvePrivateKey, claims: dict[str, Any]) -> str:
        header = {"alg": "ES256", "kid": self._key_id}
        signed = f"{_encoded(header)}.{_encoded(claims)}"
        r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_base64url(r.to_bytes(COORDINATE_SIZE) + s.to_bytes(COORDINATE_SIZE))}"

    def _verified(self, token: str) -> dict[str, Any]:
        """The claims of a token that this issuer signed."""
        try:
            signed, signature_text = token.rsplit(".", 1)
            header, payload = (json.loads(_decoded(part)) for part in signed.split("."))
            signature = _decoded(signature_text)
        except ValueError:
            raise TokenError("invalid bearer token") from None
        if not isinstance(header, dict) or header.get("alg") != "ES256" or len(signature) != 2 * COORDINATE_SIZE:
            raise TokenError("invalid bearer token")
        r, s = int.from_bytes(signature[:COORDINATE_SIZE]), int.from_bytes(signature[COORDINATE_SIZE:])
        accepted = [self._key]
        if self._next_key is not None and not self.defects.rotated_refused:
            accepted.append(self._next_key)
        if not any(_signed_by(key, encode_dss_signature(r, s), signed.encode()) for key in accepted):
            raise TokenError("invalid bearer token")
        claims: dict[str, Any] = payload
        return claims


def _signed_by(key: ec.EllipticCurvePrivateKey, signature: bytes, data: bytes) -> bool:
    try:
        key.public_key().verify(signature, data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _check_lifetime(seconds: Any) -> None:
    field = "spec.expirationSeconds"
    if not isinstance(seconds, int) or seconds < SHORTEST_SECONDS:
        error = invalid(field, seconds, "may not specify a duration less than 10 minutes")
    elif seconds > LONGEST_SECONDS:
        error = invalid(field, seconds, "may not specify a duration larger than 2^32 seconds")
    else:
        return
    raise unprocessable("TokenRequest", AUTHENTICATION, "", [error])


def _timestamp(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _encoded(value: dict[str, Any]) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _decoded(text: str) -> bytes:
    return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
