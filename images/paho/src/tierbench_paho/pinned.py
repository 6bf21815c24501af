"""HTTP over TLS with a server of a known key: no CA, no name, and no date, as clocks are wrong."""

import hashlib
import http.client
import ssl
from base64 import b64encode
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .contract import FailureError


class PinnedConnection(http.client.HTTPSConnection):
    """Says nothing before the server has shown that it has the key."""

    def __init__(self, host: str, port: int | None, pin: str, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout, context=_unverified())
        self._pin = pin

    def connect(self) -> None:
        """The same, and a look at the key.

        Raises:
            FailureError: it is another one.
        """
        try:
            super().connect()
            self._look()
        except BaseException:
            self.close()  # or the next request would go by what there is of it
            raise

    def _look(self) -> None:
        found = pin_of(cast(bytes, self.sock.getpeercert(binary_form=True)))
        if found != self._pin:
            message = (
                f"the server has the key {found} instead of the agent's {self._pin}: check whether another program has "
                "its address"
            )
            raise FailureError("AgentKeyUnknown", message)


def pin_of(certificate: bytes) -> str:
    """The SHA-256 of the SubjectPublicKeyInfo, as curl's --pinnedpubkey takes it."""
    key = x509.load_der_x509_certificate(certificate).public_key()
    digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    return f"sha256//{b64encode(digest).decode()}"


def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
