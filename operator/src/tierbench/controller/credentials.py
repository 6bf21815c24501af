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

from tierbench.workloads.pods import AGENT_KEY, AGENT_PIN, AGENT_TOKEN, SERVER_NAME
from tierbench.workloads.workload import Credentials, Manifest

# A certificate belongs to one server of one run, and clocks of nodes differ by any amount.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_LONGEST_NAME = 64
_DER, _PEM = serialization.Encoding.DER, serialization.Encoding.PEM
_PKCS8 = serialization.PrivateFormat.PKCS8


def fill(credentials: Credentials, of_run: Mapping[str, bytes] = MappingProxyType({})) -> Manifest:
    """Returns the Secret with new data: token, key and pin of the agent, and what is the same in the whole run.

    With `certificate`, it also has a CA and a server certificate that the CA signed. With `account`, it also has what
    that function returns for the user.
    """
    data = {**_agent(), **of_run}
    if credentials.account is not None:
        data |= credentials.account(credentials.username)
    if credentials.certificate:
        data |= certificates(SERVER_NAME)
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
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tierbench")])
    return _builder(name, name, key.public_key()).sign(key, hashes.SHA256()).public_bytes(_PEM)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, _PKCS8, serialization.NoEncryption())


def certificates(*hosts: str) -> dict[str, bytes]:
    """Returns a CA certificate, and key and certificate of a server with these names.

    The key of the CA is not kept, so nothing else can be signed with it.
    """
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tierbench")])
    ca = (
        _builder(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:_LONGEST_NAME])])
    certificate = (
        _builder(name, ca_name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return {
        "ca.crt": ca.public_bytes(_PEM),
        "tls.crt": certificate.public_bytes(_PEM),
        "tls.key": _pem(key),
    }


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
