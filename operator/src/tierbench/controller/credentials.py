"""Random credentials and certificates of one benchmark."""

import hashlib
import secrets
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tierbench.workloads.pods import (
    AGENT_KEY,
    AGENT_PIN,
    AGENT_TOKEN,
    CA,
    CLIENT_CERTIFICATE,
    CLIENT_NAME,
    SERVER_NAME,
    TLS_CERTIFICATE,
)
from tierbench.workloads.workload import Credentials, Manifest

# A certificate belongs to one server of one run, and clocks of nodes differ by any amount.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_AUTHORITY = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tierbench")])
_LONGEST_NAME = 64
_DER, _PEM = serialization.Encoding.DER, serialization.Encoding.PEM
_PKCS8 = serialization.PrivateFormat.PKCS8


def fill(credentials: Credentials, of_run: Mapping[str, bytes] = MappingProxyType({})) -> Manifest:
    """Returns the Secret with new data: token, key and pin of the agent, and what is the same in the whole run.

    With `certificate`, it also has a CA and a server certificate that the CA signed, and with `client_certificate` one
    of the clients. With `account`, it also has what that function returns for the user.
    """
    data = {**_agent(), **of_run}
    if credentials.account is not None:
        data |= credentials.account(credentials.username)
    if credentials.certificate:
        data |= certificates(SERVER_NAME, client=CLIENT_NAME if credentials.client_certificate else "")
    return {**credentials.manifest, "data": {key: b64encode(value).decode() for key, value in data.items()}}


def _agent() -> dict[str, bytes]:
    """Returns token, key and pin."""
    key = ec.generate_private_key(ec.SECP256R1())
    return {
        AGENT_TOKEN: secrets.token_urlsafe(32).encode(),
        AGENT_KEY: _pem(key),
        AGENT_PIN: pin_of(key),
    }


def pin_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Returns the pin of a key, in the format of curl's --pinnedpubkey."""
    public = key.public_key().public_bytes(_DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return b"sha256//" + b64encode(hashlib.sha256(public).digest())


def new_key() -> bytes:
    """Returns a new private key as PEM."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


def self_signed(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Returns a certificate of a key, for clients that know its pin."""
    return _builder(_AUTHORITY, _AUTHORITY, key.public_key()).sign(key, hashes.SHA256()).public_bytes(_PEM)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, _PKCS8, serialization.NoEncryption())


def certificates(*hosts: str, client: str = "") -> dict[str, bytes]:
    """Returns a CA certificate, key and certificate of a server with these names, and those of a client if it is named.

    The key of the CA is not kept, so nothing else can be signed with it.
    """
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = (
        _builder(_AUTHORITY, _AUTHORITY, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    server = _signed(ca_key, hosts[0], ExtendedKeyUsageOID.SERVER_AUTH, names)
    made = {CA: ca.public_bytes(_PEM), **dict(zip(TLS_CERTIFICATE, server, strict=True))}
    if client:
        made |= zip(CLIENT_CERTIFICATE, _signed(ca_key, client, ExtendedKeyUsageOID.CLIENT_AUTH), strict=True)
    return made


def _signed(
    ca_key: ec.EllipticCurvePrivateKey, name: str, usage: x509.ObjectIdentifier, *extensions: x509.ExtensionType
) -> tuple[bytes, bytes]:
    """Returns a certificate of a new key, and the key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_LONGEST_NAME])])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    builder = _builder(subject, _AUTHORITY, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    for extension in (*extensions, x509.ExtendedKeyUsage([usage]), issuer):
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(ca_key, hashes.SHA256()).public_bytes(_PEM), _pem(key)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FIRST)
        .not_valid_after(_LAST)
    )
