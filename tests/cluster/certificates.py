"""Creates the cluster's certificate authority with openssl."""

from pathlib import Path

from tests.cluster.processes import output, run

_CONFIGURATION = "openssl.cnf"
_DAYS = "3650"


def make(folder: Path, address: str, service: str) -> None:
    """Write ca, apiserver and kubelet-client (.crt and .key) and the key of account tokens, sa (.key and .pub)."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    (folder / _CONFIGURATION).write_text("[req]\ndistinguished_name = none\n[none]\n")
    use = "keyUsage=critical,keyCertSign,digitalSignature"
    _certificate(folder, "ca", "/CN=tierbench-test", ["basicConstraints=critical,CA:TRUE", use])
    names = "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
    alternative = f"subjectAltName={names},IP:{address},IP:{service},IP:127.0.0.1"
    _signed(folder, "apiserver", "/CN=kube-apiserver", ["extendedKeyUsage=serverAuth", alternative])
    client = "/O=system:masters/CN=kube-apiserver-kubelet-client"
    _signed(folder, "kubelet-client", client, ["extendedKeyUsage=clientAuth"])
    run("openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", f"{folder}/sa.key")
    (folder / "sa.pub").write_text(output("openssl", "pkey", "-in", f"{folder}/sa.key", "-pubout"))


def _signed(folder: Path, name: str, subject: str, extensions: list[str]) -> None:
    authority = ("-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key")
    _certificate(folder, name, subject, ["basicConstraints=critical,CA:FALSE", *extensions], authority)


def _certificate(folder: Path, name: str, subject: str, extensions: list[str], authority: tuple[str, ...] = ()) -> None:
    """Creates a certificate without openssl's default configuration, which would make each certificate an authority."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", f"{folder}/{name}.key"]
    command = ["openssl", "req", "-config", f"{folder}/{_CONFIGURATION}", "-x509", *key, "-days", _DAYS]
    given = [word for extension in extensions for word in ("-addext", extension)]
    run(*command, "-out", f"{folder}/{name}.crt", "-subj", subject, *authority, *given)
