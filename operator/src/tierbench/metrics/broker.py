"""Metrics of brokers."""

from collections.abc import Mapping
from typing import Final

from tierbench.api.quantity import parse_size
from tierbench.api.result import BenchmarkResult
from tierbench.metrics.family import Family, Labels, Samples, gauge, label_text
from tierbench.results import histogram

_PREFIX: Final = "tierbench_broker"
# Powers of two of a second, 61 µs to 64 s.
_BOUNDS: Final = tuple(2.0**exponent for exponent in range(-14, 7))
_BOUNDS_NANOSECONDS: Final = tuple(round(bound * 1e9) for bound in _BOUNDS)
_BUCKETS: Final = tuple("," + label_text({"le": bound}) for bound in (*map(repr, _BOUNDS), "+Inf"))

ROUND_TRIP: Final = Family(
    f"{_PREFIX}_round_trip_seconds",
    "histogram",
    "From a message's intended send time to its arrival, of the good trials; bounds to about 1 %.",
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


def labels(result: BenchmarkResult) -> Labels:
    """The levels of the case as labels.

    Raises:
        KeyError: the result has no such level.
        ValueError: its payload size is none.
    """
    levels = result.spec.levels
    return {
        "broker": levels["broker"],
        **_size(levels),
        "content": levels["content"],
        "delivery": levels["delivery"],
        "tls": levels["tls"],
        "encryption": levels["encryption"],
        "compression": levels["compression"],
        "pairs": levels["pairs"],
        **_kafka(levels),
    }


def _size(levels: Mapping[str, str]) -> Labels:
    """Messages of a user's own have sizes of their own, and no label."""
    return {"payload_size": str(parse_size(levels["payloadSize"]))} if "payloadSize" in levels else {}


def _kafka(levels: Mapping[str, str]) -> Labels:
    """Of Kafka's own factors; without one, as with other brokers, there is no label."""
    if "codec" not in levels:
        return {}
    return {
        "codec": levels["codec"],
        "partitions": levels["partitions"],
        "linger_milliseconds": levels["lingerMilliseconds"],
        "batch_size": str(parse_size(levels["batchSize"])),
    }


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
    messages = status.counts.messages
    if messages is not None:
        for name, family in _COUNTS.items():
            samples.add(family, getattr(messages, name))
    samples.add(RETRIED, status.counts.retries)
    samples.add(ERRORS, status.counts.errors)
