"""Each benchmark has its own random credentials and certificates."""

import hashlib
from base64 import b64decode

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from tierbench.controller.credentials import fill
from tierbench.kinds.broker import providers
from tierbench.workloads.pods import SERVER_NAME
from tierbench.workloads.workload import Credentials

MANIFEST = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "server"}}


def data(*, certificate: bool = False, account: bool = False, client: bool = False) -> dict[str, bytes]:
    filled = fill(Credentials(MANIFEST, certificate, providers.account if account else None, client_certificate=client))
    return {key: b64decode(value) for key, value in filled["data"].items()}


def test_secret_has_only_the_keys_that_are_needed() -> None:
    agent = {"agent-token", "agent-key", "agent-pin"}
    assert set(data()) == agent
    assert set(data(certificate=True)) == {*agent, "ca.crt", "tls.crt", "tls.key"}
    client = {"client.crt", "client.key"}
    assert set(data(certificate=True, client=True)) == {*agent, "ca.crt", "tls.crt", "tls.key", *client}
    account = {"username", "password", "mosquitto-passwords", "kafka-account", "payload-key"}
    assert set(data(account=True)) == {*agent, *account}


def test_all_credentials_are_random() -> None:
    one, other = data(certificate=True, account=True), data(certificate=True, account=True)
    assert [key for key in one if one[key] == other[key]] == ["username"]


def test_mosquitto_has_the_hash_of_the_password() -> None:
    secret = data(account=True)
    name, _, hashed = secret["mosquitto-passwords"].decode().strip().partition(":")
    kind, salt, digest = hashed.removeprefix("$").split("$")
    assert (name.encode(), kind) == (secret["username"], "6")
    assert hashlib.sha512(secret["password"] + b64decode(salt)).digest() == b64decode(digest)
    assert len(secret["payload-key"]) == 16


def test_kafka_has_the_same_account() -> None:
    secret = {key: value.decode(errors="replace") for key, value in data(account=True).items()}
    assert secret["kafka-account"] == f"SCRAM-SHA-512=[name={secret['username']},password={secret['password']}]"


def test_certificate_names_the_server_and_is_signed_by_the_ca() -> None:
    secret = data(certificate=True)
    ca, certificate = (x509.load_pem_x509_certificate(secret[key]) for key in ("ca.crt", "tls.crt"))
    certificate.verify_directly_issued_by(ca)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [SERVER_NAME]
    key = load_pem_private_key(secret["tls.key"], password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.public_key() == certificate.public_key()


def test_certificate_of_a_client_is_not_valid_for_a_server() -> None:
    secret = data(certificate=True, client=True)
    ca, certificate = (x509.load_pem_x509_certificate(secret[key]) for key in ("ca.crt", "client.crt"))
    certificate.verify_directly_issued_by(ca)
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert certificate.subject != certificate.issuer  # otherwise, OpenSSL considers it self-signed
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert load_pem_private_key(secret["client.key"], password=None).public_key() == certificate.public_key()
    assert secret["client.key"] != secret["tls.key"]


def test_certificates_are_valid_even_if_the_clock_of_a_node_is_wrong() -> None:
    secret = data(certificate=True, client=True)
    for certificate in (x509.load_pem_x509_certificate(secret[key]) for key in ("ca.crt", "tls.crt", "client.crt")):
        assert certificate.not_valid_before_utc.year == 1970
        assert certificate.not_valid_after_utc.year == 9999
