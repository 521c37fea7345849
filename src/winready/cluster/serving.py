"""Who a server of ours is: a certificate with an authority of its own, made on the spot and kept where it is wanted."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import os
import ssl
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

IDLE_SECONDS = 75.0
LIFETIME = datetime.timedelta(days=365)
DAY = datetime.timedelta(days=1)
SKEW = datetime.timedelta(minutes=10)
CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"


@dataclass(frozen=True)
class Identity:
    """A serving certificate with its key, and the authority that it is known by; all as PEM."""

    ca: bytes
    certificate: bytes
    key: bytes

    def context(self) -> ssl.SSLContext:
        """What a server presents."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.load(context)
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Present it from now on."""
        # OpenSSL reads keys from files only: for the moment of loading it is in a folder that only its owner enters.
        with tempfile.TemporaryDirectory(prefix="winready-") as folder:
            pair = Path(folder) / "pair.pem"
            pair.touch(mode=0o600)
            pair.write_bytes(self.key + self.certificate)
            context.load_cert_chain(pair)


def make_identity(host: str, name: str = "winready-steer") -> Identity:
    """An authority that nobody has the key of any more, and a certificate of it for this host."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer, subject = _name(f"{name}-ca"), _name(name)
    ca = (
        _builder(issuer, issuer, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    certificate = (
        _builder(issuer, subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Identity(ca.public_bytes(pem), certificate.public_bytes(pem), private)


def fits(identity: Identity, host: str, rest: datetime.timedelta = DAY) -> bool:
    """Whether it is for this host and holds for that much longer; raises ``ValueError`` if it is no certificate."""
    certificate = x509.load_pem_x509_certificate(identity.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    later = datetime.datetime.now(datetime.UTC) + rest
    return list(names) == [_general_name(host)] and certificate.not_valid_after_utc > later


def kept_identity(folder: Path, host: str, name: str = "winready-steer") -> Identity:
    """The identity in a folder, made anew unless it is there for this host and holds for a day; raises ``OSError``."""
    with contextlib.suppress(OSError, ValueError, x509.ExtensionNotFound):
        found = Identity(*((folder / file).read_bytes() for file in (CA, CERTIFICATE, KEY)))
        if fits(found, host):
            return found
    made = make_identity(host, name)
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in ((CA, made.ca), (CERTIFICATE, made.certificate), (KEY, made.key)):
        part = folder / f".{file}.part"
        part.unlink(missing_ok=True)
        part.touch(mode=0o600 if file == KEY else 0o644)
        part.write_bytes(content)
        os.replace(part, folder / file)
    return made


@contextlib.asynccontextmanager
async def serving(app: web.Application, context: ssl.SSLContext, address: str, port: int) -> AsyncIterator[int]:
    """Serve for the time of the block; the port. Raises ``OSError``."""
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=IDLE_SECONDS, shutdown_timeout=5.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, port, ssl_context=context)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().issuer_name(issuer).subject_name(subject).public_key(key)
    return (
        builder.serial_number(x509.random_serial_number()).not_valid_before(now - SKEW).not_valid_after(now + LIFETIME)
    )
