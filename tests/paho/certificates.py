"""Makes a CA with a valid, an expired and a future certificate for localhost, and a CA that signed none."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


def make_certificates(folder: Path) -> None:
    """Writes ca.crt, server.crt and .key, expired.crt and .key, future.crt and .key, and other-ca.crt."""
    now = datetime.now(UTC)
    ca_key = _sign(folder / "ca.crt", "CA", None, (now - _DAY, now + _DAY))
    _sign(folder / "other-ca.crt", "other CA", None, (now - _DAY, now + _DAY))
    all_days = {
        "server": (now - _DAY, now + _DAY),
        "expired": (now - 3 * _DAY, now - _DAY),
        "future": (now + _DAY, now + 2 * _DAY),
    }
    for name, days in all_days.items():
        key = _sign(folder / f"{name}.crt", "localhost", ca_key, days)
        pem, pkcs8, none = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        (folder / f"{name}.key").write_bytes(key.private_bytes(pem, pkcs8, none))


def _sign(
    file: Path, name: str, ca_key: ec.EllipticCurvePrivateKey | None, days: tuple[datetime, datetime]
) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(name if ca_key is None else "CA"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(days[0])
        .not_valid_after(days[1])
        .add_extension(x509.BasicConstraints(ca=ca_key is None, path_length=None), critical=True)
    )
    if ca_key is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    certificate = builder.sign(ca_key or key, hashes.SHA256())
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return key


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
