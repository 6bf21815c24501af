"""What clients of a broker do with TLS: the sessions that they resume, and the certificates that they present."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from tierbench.api.benchmark import Tls
from tierbench.api.model import Model, Rule, factor
from tierbench.workloads.plan import Factor

TLS: Final = "tls"
HANDSHAKE: Final = "handshake"
CERTIFICATE: Final = "certificate"
_NO_TLS: Final = (TLS, Tls.NONE.value)


class Handshake(StrEnum):
    """The way in which a connection begins TLS."""

    FULL = "Full"
    RESUMED = "Resumed"


class Certificate(StrEnum):
    """The certificate of a client."""

    NONE = "None"
    REQUIRED = "Required"


class TlsClients(Model):
    """Factors that only clients with TLS have."""

    handshakes: tuple[Handshake, ...] = factor(
        (Handshake.FULL,),
        "Full: each connection makes a full handshake. Resumed: each connection resumes the session of an earlier one "
        "(a factor).",
        most=2,
    )
    certificates: tuple[Certificate, ...] = factor(
        (Certificate.NONE,),
        "None: clients have an account only. Required: the broker also requires a certificate of each client (a "
        "factor).",
        most=2,
    )

    @property
    def required(self) -> bool:
        """Whether any case requires certificates of clients."""
        return Certificate.REQUIRED in self.certificates


def tls_factors(clients: TlsClients) -> tuple[Factor, ...]:
    """Returns the factors that only cases with TLS have, if the spec names any of their levels."""
    if clients == TlsClients():
        return ()
    return (
        Factor(HANDSHAKE, tuple(level.value for level in clients.handshakes), unless=_NO_TLS),
        Factor(CERTIFICATE, tuple(level.value for level in clients.certificates), unless=_NO_TLS),
    )


def is_secure(levels: Mapping[str, str]) -> bool:
    """Returns whether cases with these levels use TLS."""
    return levels[TLS] != Tls.NONE


def requires_certificate(levels: Mapping[str, str]) -> bool:
    """Returns whether clients of cases with these levels need a certificate."""
    return levels.get(CERTIFICATE) == Certificate.REQUIRED


TLS_CASES: Final = (
    "self.tls.map(t, t == 'None' ? 1 : size(self.tlsClients.handshakes) * size(self.tlsClients.certificates)).sum()"
)
"""The CEL expression for the number of combinations of TLS and its factors."""

_USUAL: Final = "self.tlsClients.handshakes == ['Full'] && self.tlsClients.certificates == ['None']"
_NO_CERTIFICATES: Final = "self.tlsClients.certificates == ['None']"
TLS_RULES: Final = (
    Rule(
        "self.tls.all(t, t == 'None') || self.brokers.all(b, !has(b.external) || has(b.external.secretRef))",
        "clients trust no CA but that of an external broker: with TLS write external.secretRef, and give its Secret "
        "the key ca.crt; or write tls: [None]",
    ),
    Rule(
        f"{_USUAL} || self.tls.exists(t, t != 'None')",
        "tlsClients is only for connections with TLS: write, for example, tls: [TLSv1.3], or remove tlsClients",
    ),
    Rule(
        f"{_USUAL} || self.clients.engine == 'Native'",
        "only clients.engine: Native resumes sessions and presents certificates: write Native, or remove tlsClients",
    ),
    Rule(
        "self.tlsClients.handshakes == ['Full'] || !self.brokers.exists(b, has(b.kafka) || has(b.external)"
        " && b.external.protocol == 'Kafka')",
        "Kafka resumes few sessions, because Java refuses most tickets: write tlsClients.handshakes: [Full], or "
        "measure Kafka in another benchmark",
    ),
    Rule(
        f"{_NO_CERTIFICATES} || !self.brokers.exists(b, has(b.kafka) && b.kafka.provider == 'Strimzi')",
        "users of Strimzi have a password or a certificate, and not both: write tlsClients.certificates: [None], or "
        "provider: Standalone",
    ),
    Rule(
        f"{_NO_CERTIFICATES} || self.brokers.all(b, !has(b.external)"
        " || has(b.external.secretRef) && size(self.tlsClients.certificates) == 1)",
        "an external broker has one address: write tlsClients.certificates: [Required], and a secretRef whose Secret "
        "has the keys tls.crt and tls.key of the client",
    ),
)
