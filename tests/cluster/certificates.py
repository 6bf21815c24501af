"""Creates the cluster's certificate authority with openssl."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.cluster.processes import output, run

_CONFIGURATION = """\
[req]
distinguished_name = none
[none]
[ca]
default_ca = authority
[authority]
database = {folder}/index.txt
new_certs_dir = {folder}
rand_serial = yes
unique_subject = no
default_md = sha256
policy = names
[names]
organizationName = optional
commonName = supplied
"""
_AGE = timedelta(days=1)  # nodes whose clocks are late accept the certificates
_LIFETIME = timedelta(days=3650)


def make(folder: Path, address: str, service: str) -> None:
    """Writes ca, apiserver and kubelet-client (.crt and .key) and the key of account tokens, sa (.key and .pub)."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    (folder / "openssl.cnf").write_text(_CONFIGURATION.format(folder=folder))
    (folder / "index.txt").touch()
    use = "keyUsage=critical,keyCertSign,digitalSignature"
    _certificate(folder, "ca", "/CN=tierbench-test", ["basicConstraints=critical,CA:TRUE", use], ["-selfsign"])
    names = "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
    alternative = f"subjectAltName={names},IP:{address},IP:{service},IP:127.0.0.1"
    _signed(folder, "apiserver", "/CN=kube-apiserver", ["extendedKeyUsage=serverAuth", alternative])
    client = "/O=system:masters/CN=kube-apiserver-kubelet-client"
    _signed(folder, "kubelet-client", client, ["extendedKeyUsage=clientAuth"])
    run("openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", f"{folder}/sa.key")
    (folder / "sa.pub").write_text(output("openssl", "pkey", "-in", f"{folder}/sa.key", "-pubout"))


def _signed(folder: Path, name: str, subject: str, extensions: list[str]) -> None:
    common = ["basicConstraints=critical,CA:FALSE", "authorityKeyIdentifier=keyid"]
    _certificate(folder, name, subject, [*common, *extensions], ["-cert", f"{folder}/ca.crt"])


def _certificate(folder: Path, name: str, subject: str, extensions: list[str], signer: list[str]) -> None:
    """Creates a certificate with only these extensions, and the identifier of its key."""
    file, configuration = f"{folder}/{name}", ("-config", f"{folder}/openssl.cnf")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", f"{file}.key"]
    run("openssl", "req", *configuration, "-new", *key, "-out", f"{file}.csr", "-subj", subject)
    Path(f"{file}.ext").write_text("".join(f"{line}\n" for line in [*extensions, "subjectKeyIdentifier=hash"]))
    start = datetime.now(UTC) - _AGE
    dates = ["-startdate", _time(start), "-enddate", _time(start + _LIFETIME)]
    asked = ["-in", f"{file}.csr", "-extfile", f"{file}.ext", "-keyfile", f"{folder}/ca.key", *signer]
    run("openssl", "ca", *configuration, "-batch", "-notext", *dates, *asked, "-out", f"{file}.crt")


def _time(time: datetime) -> str:
    return f"{time:%Y%m%d%H%M%SZ}"
