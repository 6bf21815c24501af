"""The cluster's certificate authority, made with openssl."""

from pathlib import Path

from tests.cluster.processes import output, run

_DAYS = "3650"


def make(folder: Path, address: str, service: str) -> None:
    """Write ca, apiserver and kubelet-client (.crt and .key) and the key of account tokens, sa (.key and .pub)."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    authority = ["-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key"]
    names = "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
    _certificate(folder, "ca", "/CN=tierbench-test", ["-addext", "keyUsage=critical,keyCertSign,digitalSignature"])
    _certificate(
        folder,
        "apiserver",
        "/CN=kube-apiserver",
        [
            *authority,
            "-addext",
            f"subjectAltName={names},IP:{address},IP:{service},IP:127.0.0.1",
            "-addext",
            "extendedKeyUsage=serverAuth",
        ],
    )
    client = [*authority, "-addext", "extendedKeyUsage=clientAuth"]
    _certificate(folder, "kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client", client)
    run("openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", f"{folder}/sa.key")
    (folder / "sa.pub").write_text(output("openssl", "pkey", "-in", f"{folder}/sa.key", "-pubout"))


def _certificate(folder: Path, name: str, subject: str, extra: list[str]) -> None:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", f"{folder}/{name}.key"]
    run("openssl", "req", "-x509", *key, "-out", f"{folder}/{name}.crt", "-days", _DAYS, "-subj", subject, *extra)
