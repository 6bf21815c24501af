"""TLS as a request asks for it, and the reasons of failed handshakes."""

import socket
import ssl
from functools import cache
from time import monotonic_ns
from typing import Final

from .pipe import FailureError

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

_EXPIRED: Final = (9, 10)  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
_VERSION_WORDS: Final = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "WRONG_SSL_VERSION")


class TimedSocket(ssl.SSLSocket):
    """A socket that measures its handshake."""

    handshake_nanoseconds = 0
    _begun = 0

    def do_handshake(self, block: bool = False) -> None:
        """Does the handshake, or its next step."""
        self._begun = self._begun or monotonic_ns()
        super().do_handshake(block)
        self.handshake_nanoseconds = monotonic_ns() - self._begun


class Context(ssl.SSLContext):
    """Verifies that the server's certificate contains `server_name`, whatever address the client dials."""

    server_name: str | None = None
    sslsocket_class = TimedSocket

    def wrap_socket(
        self,
        sock: socket.socket,
        server_side: bool = False,
        do_handshake_on_connect: bool = True,
        suppress_ragged_eofs: bool = True,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLSocket:
        """Wraps a socket, and verifies `server_name` instead of the given name."""
        return super().wrap_socket(
            sock, server_side, do_handshake_on_connect, suppress_ragged_eofs, self.server_name, session
        )


@cache
def client_context(version: str, ca_file: str, server_name: str) -> Context:
    """Exactly one version of TLS. Without a file, the CAs of the system are trusted.

    Raises:
        OSError: the CA cannot be read.
    """
    context = Context(ssl.PROTOCOL_TLS_CLIENT)
    context.server_name = server_name
    context.minimum_version = context.maximum_version = VERSIONS[version]
    if ca_file:
        context.load_verify_locations(ca_file)
    else:
        context.load_default_certs()
    return context


def cipher(connection: ssl.SSLSocket) -> str:
    """Returns the IANA name of the cipher suite of a connection."""
    found = connection.cipher()
    return "" if found is None else standard_name(found[0])


def standard_name(name: str) -> str:
    """Returns the IANA name for OpenSSL's, which differs up to TLS 1.2, as in ECDHE-RSA-AES128-GCM-SHA256."""
    if name.startswith("TLS_"):
        return name
    exchange, signature, rest = name.split("-", 2)
    rest = rest.replace("AES", "AES_").replace("-", "_")
    if rest.startswith("AES") and "GCM" not in rest:
        rest = rest.replace("_SHA", "_CBC_SHA")
    return f"TLS_{exchange}_{signature}_WITH_{rest if 'SHA' in rest else f'{rest}_SHA256'}"


def failure(error: ssl.SSLError) -> FailureError:
    """Returns the failure that a failed handshake means."""
    if isinstance(error, ssl.SSLCertVerificationError):
        problem = error.verify_message
        if error.verify_code in _EXPIRED:
            return FailureError(
                "CertificateExpired", f"the broker's certificate: {problem}: renew it, or check the clocks"
            )
        return FailureError(
            "CertificateUnknown",
            f"the broker's certificate: {problem}: check that ca.crt is its CA, and that it has the name",
        )
    if any(word in (error.reason or "") for word in _VERSION_WORDS):
        return FailureError("TlsVersionRefused", f"the broker does not speak this version of TLS: {error}")
    return FailureError("", f"no TLS handshake with the broker: {error}: check that its port supports TLS")
