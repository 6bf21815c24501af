"""Metrics of brokers."""

from collections.abc import Sequence
from typing import Final

from tierbench.api.contract import Outcome
from tierbench.api.result import BenchmarkResult, ResultTrial
from tierbench.metrics.family import Family, Samples, gauge, label_text
from tierbench.stats import histogram

FACTORS: Final = (
    "broker",
    "image",
    "payloadSize",
    "content",
    "delivery",
    "tls",
    "encryption",
    "compression",
    "pairs",
    "codec",
    "partitions",
    "lingerMilliseconds",
    "batchSize",
)
PARAMETERS: Final = (
    "pacing",
    "inFlight",
    "messagesPerSecond",
    "load",
    "window",
    "patienceMilliseconds",
    "access",
    "engine",
    "clientPods",
    "connections",
    "subscribers",
)

_PREFIX: Final = "tierbench_broker"
# Powers of two of a second, 61 µs to 64 s.
_BOUNDS: Final = tuple(2.0**exponent for exponent in range(-14, 7))
_BOUNDS_NANOSECONDS: Final = tuple(round(bound * 1e9) for bound in _BOUNDS)
_BUCKETS: Final = tuple("," + label_text({"le": bound}) for bound in (*map(repr, _BOUNDS), "+Inf"))

ROUND_TRIP: Final = Family(
    f"{_PREFIX}_round_trip_seconds",
    "histogram",
    "From a message's intended send time to its arrival, of the good trials; bounds to about 1%.",
)
_MEANS: Final = {
    "roundTripNanoseconds": (gauge(f"{_PREFIX}_round_trip_mean_seconds", "Round trip, mean of the good trials."), 1e9),
    "throughputMessagesPerSecond": (
        gauge(f"{_PREFIX}_throughput_messages_per_second", "Messages received a second, mean of the good trials."),
        1,
    ),
    "throughputBytesPerSecond": (
        gauge(
            f"{_PREFIX}_throughput_bytes_per_second",
            "Payload received a second, before compression and encryption, mean of the good trials.",
        ),
        1,
    ),
    "wireBytes": (
        gauge(f"{_PREFIX}_wire_bytes", "Bytes on the wire of all connections, both ways, in a trial, mean."),
        1,
    ),
    "wireThroughputBytesPerSecond": (
        gauge(
            f"{_PREFIX}_wire_throughput_bytes_per_second",
            "Bytes on the wire a second of the whole session, connecting included, mean.",
        ),
        1,
    ),
    "wireBytesPerMessage": (
        gauge(f"{_PREFIX}_wire_bytes_per_message", "Bytes on the wire of the load, both ways, a message, mean."),
        1,
    ),
    "wirePacketsPerMessagePartsPerMillion": (
        gauge(f"{_PREFIX}_wire_packets_per_message", "TCP segments of the load, both ways, a message, mean."),
        1e6,
    ),
    "setupBytes": (
        gauge(f"{_PREFIX}_setup_bytes", "Bytes on the wire until a connection is ready for messages, both ways, mean."),
        1,
    ),
    "setupPackets": (
        gauge(f"{_PREFIX}_setup_packets", "TCP segments until a connection is ready for messages, both ways, mean."),
        1,
    ),
    "pairFairnessPartsPerMillion": (
        gauge(f"{_PREFIX}_fairness_ratio", "Jain's index of what each pair received: 1 for even shares, mean."),
        1e6,
    ),
    "connectNanoseconds": (
        gauge(f"{_PREFIX}_connect_seconds", "From the start of a connection to the broker's consent, TLS left out."),
        1e9,
    ),
    "tlsNanoseconds": (gauge(f"{_PREFIX}_tls_handshake_seconds", "TLS handshake of a connection, mean."), 1e9),
    "batchMessages": (
        gauge(f"{_PREFIX}_batch_messages", "Messages of a batch, mean; of brokers that have batches."),
        1,
    ),
    "batchBytes": (gauge(f"{_PREFIX}_batch_bytes", "Bytes of a batch after the broker's own codec, mean."), 1),
    "encodedPartsPerMillion": (
        gauge(f"{_PREFIX}_encoded_ratio", "Payload after compression and encryption, as a share of it before, mean."),
        1e6,
    ),
    "brokerCpuPartsPerMillion": (
        gauge(f"{_PREFIX}_cpu_ratio", "CPU of the broker's process, as a share of one core, mean."),
        1e6,
    ),
}
_CODECS: Final = {
    "compress": (
        gauge(f"{_PREFIX}_compress_seconds", "Compression of a message sent, mean of the good trials."),
        "sent",
    ),
    "encrypt": (gauge(f"{_PREFIX}_encrypt_seconds", "Encryption of a message sent, mean."), "sent"),
    "decrypt": (gauge(f"{_PREFIX}_decrypt_seconds", "Decryption of a message received, mean."), "received"),
    "decompress": (gauge(f"{_PREFIX}_decompress_seconds", "Decompression of a message received, mean."), "received"),
}
ACKNOWLEDGE: Final = gauge(
    f"{_PREFIX}_acknowledge_mean_seconds",
    "From the time at which a message was sent to the broker's acknowledgement, mean of the good trials.",
)
_COUNTS: Final = {
    "sent": gauge(f"{_PREFIX}_messages_sent", "Messages sent in all counted trials."),
    "received": gauge(f"{_PREFIX}_messages_received", "Of these, those that were received."),
    "lost": gauge(f"{_PREFIX}_messages_lost", "Of these, those that were not."),
    "acknowledged_lost": gauge(f"{_PREFIX}_messages_acknowledged_lost", "Acknowledged by the broker, never received."),
    "duplicated": gauge(f"{_PREFIX}_messages_duplicated", "Further copies that were received."),
    "late_sends": gauge(f"{_PREFIX}_messages_late", "Messages sent later than intended."),
    "reconnects": gauge(f"{_PREFIX}_reconnects", "Connections made anew in all counted trials."),
}
RETRIED: Final = gauge(f"{_PREFIX}_messages_retried", "Messages that were sent again in all counted trials.")
ERRORS: Final = gauge(f"{_PREFIX}_errors", "Errors of publishers and subscribers in all counted trials.")


def add(samples: Samples, result: BenchmarkResult) -> None:
    """Everything that only brokers say."""
    status = result.status
    round_trips = status.distributions.round_trip
    if round_trips is not None:
        up_to = [histogram.count_up_to(round_trips, bound) for bound in _BOUNDS_NANOSECONDS]
        samples.add_histogram(ROUND_TRIP, _BUCKETS, [*up_to, round_trips.count], round_trips.sum_nanoseconds / 1e9)
    acknowledged = status.distributions.acknowledge
    if acknowledged is not None and acknowledged.count:
        samples.add(ACKNOWLEDGE, acknowledged.sum_nanoseconds / acknowledged.count / 1e9)
    for quantity, (family, divisor) in _MEANS.items():
        value = status.statistics.get(quantity)
        samples.add(family, None if value is None else value.mean / divisor)
    _codecs(samples, status.trials)
    messages = status.counts.messages
    if messages is not None:
        for name, family in _COUNTS.items():
            samples.add(family, getattr(messages, name))
    samples.add(RETRIED, status.counts.retries)
    samples.add(ERRORS, status.counts.errors)


def _codecs(samples: Samples, trials: Sequence[ResultTrial]) -> None:
    """What compression and encryption took, a message: of all good trials together, as trials tell sums."""
    good = [trial.exchange for trial in trials if not trial.warmup and trial.outcome is Outcome.COMPLETED]
    exchanges = [exchange for exchange in good if exchange is not None]
    for name, (family, counted) in _CODECS.items():
        messages = sum(getattr(exchange, counted) for exchange in exchanges)
        nanoseconds = sum(getattr(exchange, f"{name}_nanoseconds") for exchange in exchanges)
        samples.add(family, nanoseconds / messages / 1e9 if messages else None)
