"""What a Windows machine needs to join: a short-lived token, fingerprints of the CA, the bundle's digest."""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import secrets
import string
from dataclasses import dataclass, field

from winready.cluster.client import Client, Object
from winready.cluster.errors import ApiError, ClusterError, ConfigError, Forbidden
from winready.cluster.resources import CONFIG_MAPS, SECRETS
from winready.node.bundle import ENTRY, SUMS
from winready.node.opened import Opened

KUBE_SYSTEM, KUBE_PUBLIC = "kube-system", "kube-public"
TYPE = "bootstrap.kubernetes.io/token"
GROUP = "system:bootstrappers:kubeadm:default-node-token"
PREFIX = "bootstrap-token-"
SHORTEST, LONGEST = 60.0, 24 * 3600.0
SIGNATURE_SECONDS = 10.0
_ALPHABET = string.ascii_lowercase + string.digits


@dataclass(frozen=True)
class Joining:
    """All that the join line is made of. The token is a secret: ``repr`` does not show it."""

    token: str = field(repr=False)
    expires: str
    endpoint: str
    ca_hashes: list[str]
    signed: bool
    """Whether the cluster has signed its own description with the token, which joining machines insist on."""


@dataclass(frozen=True)
class ClusterInfo:
    """What the cluster tells machines that do not know it yet."""

    endpoint: str
    ca_hashes: list[str]


def forbidden(error: Forbidden) -> ClusterError:
    """The same refusal, with the way to the rights that these commands need."""
    return ClusterError(error.message, "'winready rbac --for node' prints the rights that 'winready node' needs")


async def cluster_info(client: Client) -> ClusterInfo:
    """Endpoint and CA of a cluster that kubeadm made; raises `ConfigError` for any other."""
    config_map = await client.find(CONFIG_MAPS, "cluster-info", KUBE_PUBLIC)
    text = ((config_map or {}).get("data") or {}).get("kubeconfig")
    if not text:
        raise ConfigError(
            "this cluster takes no machines by 'kubeadm join': it has no ConfigMap cluster-info in kube-public",
            "'kubeadm init phase bootstrap-token' on its control plane makes one; providers have ways of their own",
        )
    return read_cluster_info(text)


def read_cluster_info(text: str) -> ClusterInfo:
    """The kubeconfig inside of cluster-info."""
    import yaml

    wrong = ConfigError(
        "the ConfigMap cluster-info in kube-public names no server with its certificate authority",
        "'kubeadm init phase bootstrap-token' on the control plane writes it anew",
    )
    try:
        cluster = yaml.safe_load(text)["clusters"][0]["cluster"]
        ca = base64.b64decode(cluster["certificate-authority-data"], validate=True)
        server = str(cluster["server"])
    except (yaml.YAMLError, KeyError, IndexError, TypeError, ValueError):
        raise wrong from None
    hashes = ca_hashes(ca)
    if not hashes:
        raise wrong
    return ClusterInfo(server.removeprefix("https://").rstrip("/"), hashes)


def ca_hashes(bundle: bytes) -> list[str]:
    """The fingerprints of public keys that kubeadm pins, one for each certificate of a PEM text."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    try:
        certificates = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return []
    keys = [item.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for item in certificates]
    return [f"sha256:{hashlib.sha256(key).hexdigest()}" for key in keys]


def new_token() -> str:
    """A token as kubeadm writes it: six characters that name it, sixteen that nobody may know."""
    return ".".join("".join(secrets.choice(_ALPHABET) for _ in range(length)) for length in (6, 16))


def token_secret(token: str, expires: str, description: str) -> Object:
    """The Secret behind a bootstrap token."""
    identifier, _, secret = token.partition(".")
    values = {
        "token-id": identifier,
        "token-secret": secret,
        "expiration": expires,
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": GROUP,
        "description": description,
    }
    return {
        "metadata": {"name": PREFIX + identifier, "namespace": KUBE_SYSTEM},
        "type": TYPE,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


async def make_joining(client: Client, ttl: float, *, patience: float = SIGNATURE_SECONDS) -> Joining:
    """Make a token that lives for ``ttl`` seconds; nothing is made unless the cluster can be joined at all."""
    try:
        info = await cluster_info(client)
        expires = (_now() + datetime.timedelta(seconds=ttl)).strftime("%Y-%m-%dT%H:%M:%SZ")
        token = new_token()
        await client.create(
            SECRETS, token_secret(token, expires, "Joins a Windows worker; made by winready."), KUBE_SYSTEM
        )
    except Forbidden as error:
        raise forbidden(error) from None
    signed = await _signed(client, token.partition(".")[0], patience)
    return Joining(token, expires, info.endpoint, info.ca_hashes, signed)


async def _signed(client: Client, identifier: str, patience: float) -> bool:
    loop = asyncio.get_running_loop()
    end = loop.time() + patience
    while True:
        try:
            config_map = await client.get(CONFIG_MAPS, "cluster-info", KUBE_PUBLIC)
        except ApiError:
            return False
        if f"jws-kubeconfig-{identifier}" in (config_map.get("data") or {}):
            return True
        if loop.time() >= end:
            return False
        await asyncio.sleep(0.5)


@dataclass(frozen=True)
class Token:
    """A bootstrap token as it may be shown: without its secret."""

    identifier: str
    expires: datetime.datetime | None
    """None: never."""
    joins_nodes: bool
    """Whether it may be used to join and leads into kubeadm's group of new nodes."""


async def list_tokens(client: Client) -> list[Token]:
    """The bootstrap tokens of a cluster, by name."""
    found = await client.list(SECRETS, KUBE_SYSTEM, fields=f"type={TYPE}")
    return sorted((_token(item) for item in found), key=lambda token: token.identifier)


def _token(secret: Object) -> Token:
    def value(key: str) -> str:
        try:
            return base64.b64decode((secret.get("data") or {}).get(key) or "").decode()
        except ValueError:
            return ""

    expires: datetime.datetime | None = None
    if text := value("expiration"):
        try:
            expires = datetime.datetime.fromisoformat(text)
        except ValueError:
            # What Kubernetes cannot read either counts as expired there.
            expires = datetime.datetime.min
        expires = expires if expires.tzinfo else expires.replace(tzinfo=datetime.UTC)
    joins = value("usage-bootstrap-authentication") == "true" and value("usage-bootstrap-signing") == "true"
    groups = value("auth-extra-groups").split(",")
    return Token(secret["metadata"]["name"].removeprefix(PREFIX), expires, joins and GROUP in groups)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def join_line(joining: Joining, bundle: Opened | None) -> str:
    """The one line for PowerShell on the Windows machine, in the folder of the bundle.

    It says when the token ends: the machine can tell before its first step that the line is too old.
    """
    arguments = ["join", "-Token", joining.token, "-TokenExpires", joining.expires]
    arguments += ["-CaHash", ",".join(f"'{item}'" for item in joining.ca_hashes)]
    if bundle is None:
        return " ".join([r".\node.ps1", *arguments])
    return _guarded("join", arguments, bundle.digest, bundle.entry_digest)


def upgrade_line(digest: str, entry_digest: str) -> str:
    """The one line for a machine that has joined and gets this bundle; it holds no secret."""
    return _guarded("upgrade", ["upgrade"], digest, entry_digest)


def _guarded(what: str, arguments: list[str], digest: str, entry_digest: str) -> str:
    """Nothing of the bundle runs before its script and its list of digests are known to be the ones that were made
    here; the script then checks everything else by that list."""
    other = " -or ".join(
        f"(Get-FileHash .\\{name} -Algorithm SHA256).Hash -ne '{wanted}'"
        for name, wanted in ((SUMS, digest), (ENTRY, entry_digest))
    )
    run = " ".join([r".\node.ps1", *arguments, "-BundleDigest", digest])
    return f"if ({other}) {{ throw 'this folder is not the bundle that the {what} line was made for' }}; {run}"
