"""Certificates made on the spot: one authority per sandbox, gone with it.

Elliptic curves keep this to a few milliseconds. OpenSSL reads certificates from files only, so a
key touches the disk for the moment of loading, in a folder that only its owner can enter.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=365)
CLOCK_SKEW = datetime.timedelta(minutes=5)


def new_key() -> ec.EllipticCurvePrivateKey:
    """A private key on the curve that everything here uses."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as PEM, in the form that Go and OpenSSL both read."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def public_key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public half as PEM."""
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True)
class KeyPair:
    """A certificate with its private key, both as PEM."""

    certificate: bytes
    key: bytes

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make this the certificate that a TLS context presents."""
        with tempfile.TemporaryDirectory(prefix="winready-") as folder:
            path = Path(folder) / "pair.pem"
            path.write_bytes(self.key + self.certificate)
            context.load_cert_chain(path)


class Authority:
    """A certificate authority and what it issues."""

    def __init__(self, name: str = "winready-sandbox-ca") -> None:
        self._key = new_key()
        self._name = _name(name)
        certificate = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate: bytes = certificate.public_bytes(serialization.Encoding.PEM)
        """The authority's own certificate as PEM: what clients trust."""
        self.key: bytes = key_pem(self._key)

    def server(self, name: str, hosts: Iterable[str]) -> KeyPair:
        """A serving certificate for host names and IP addresses."""
        return self._issue(_name(name), ExtendedKeyUsageOID.SERVER_AUTH, [_general_name(host) for host in hosts])

    def client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """A client certificate: the common name is the user, organizations are groups."""
        return self._issue(_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _issue(self, subject: x509.Name, usage: x509.ObjectIdentifier, hosts: list[x509.GeneralName]) -> KeyPair:
        key = new_key()
        builder = (
            self._builder(subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(now + LIFETIME)
        )


def server_context(pair: KeyPair, client_authority: bytes | None = None) -> ssl.SSLContext:
    """TLS for a server; with an authority, clients may present a certificate of it (and need not)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    pair.load_into(context)
    if client_authority is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=client_authority.decode())
    return context


def client_context(authority: bytes, pair: KeyPair | None = None) -> ssl.SSLContext:
    """TLS for a client that trusts one authority and may identify itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority.decode())
    if pair is not None:
        pair.load_into(context)
    return context


def _name(common_name: str, organizations: Iterable[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
