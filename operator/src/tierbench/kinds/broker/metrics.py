"""The Prometheus metrics of a BrokerBenchmark."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from tierbench.api.contract import Outcome
from tierbench.api.result import BenchmarkResult, ResultTrial
from tierbench.metrics.family import Samples, gauge, histogram
from tierbench.stats.histogram import count_up_to

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

PREFIX: Final = "tierbench_broker"

ROUND_TRIP: Final = histogram(
    f"{PREFIX}_round_trip_seconds",
    "From a message's intended send time to its arrival, of the good trials; bounds are exact to about 1%.",
    range(-14, 7),  # 61 µs to 64 s
)
MEANS: Final = {
    "roundTripNanoseconds": gauge(
        f"{PREFIX}_round_trip_mean_seconds",
        "From a message's intended send time to its arrival, mean of the good trials.",
    ),
    "throughputMessagesPerSecond": gauge(
        f"{PREFIX}_throughput_messages_per_second", "Messages received per second, mean of the good trials."
    ),
    "throughputBytesPerSecond": gauge(
        f"{PREFIX}_throughput_bytes_per_second",
        "Payload received per second, before compression and encryption, mean of the good trials.",
    ),
    "wireBytes": gauge(
        f"{PREFIX}_wire_bytes", "Bytes on the wire of all connections in a trial, in both directions, mean."
    ),
    "wireThroughputBytesPerSecond": gauge(
        f"{PREFIX}_wire_throughput_bytes_per_second",
        "Bytes on the wire per second of the whole session, including connecting, mean.",
    ),
    "wireBytesPerMessage": gauge(
        f"{PREFIX}_wire_bytes_per_message",
        "Bytes on the wire per message, with acknowledgements and headers, in both directions and on both legs, mean.",
    ),
    "wirePacketsPerMessagePartsPerMillion": gauge(
        f"{PREFIX}_wire_packets_per_message",
        "TCP segments per message, with acknowledgements, in both directions and on both legs, mean.",
    ),
    "setupBytes": gauge(
        f"{PREFIX}_setup_bytes",
        "Bytes on the wire, in both directions, of TCP, TLS, login and subscription of a connection, mean.",
    ),
    "setupPackets": gauge(
        f"{PREFIX}_setup_packets",
        "TCP segments, in both directions, of TCP, TLS, login and subscription of a connection, mean.",
    ),
    "pairFairnessPartsPerMillion": gauge(
        f"{PREFIX}_fairness_ratio",
        "Jain's index of what each pair received: 1 if all got the same, 1/n if one of n got everything, mean.",
    ),
    "connectNanoseconds": gauge(
        f"{PREFIX}_connect_seconds", "From the start of a connection until the broker accepts it, without TLS, mean."
    ),
    "tlsNanoseconds": gauge(
        f"{PREFIX}_tls_handshake_seconds", "TLS handshake of a connection, mean; absent without TLS."
    ),
    "batchMessages": gauge(f"{PREFIX}_batch_messages", "Messages per batch, mean; only for brokers with batches."),
    "batchBytes": gauge(f"{PREFIX}_batch_bytes", "Bytes per batch after the broker's own codec, mean."),
    "encodedPartsPerMillion": gauge(
        f"{PREFIX}_encoded_ratio", "Payload after compression and encryption, as a share of the payload before, mean."
    ),
    "brokerCpuPartsPerMillion": gauge(
        f"{PREFIX}_cpu_ratio", "CPU of the broker's process, as a share of one core, mean."
    ),
}
_CODECS: Final = {
    "compress": (
        gauge(f"{PREFIX}_compress_seconds", "Time to compress a sent message, mean of the good trials."),
        "sent",
    ),
    "encrypt": (gauge(f"{PREFIX}_encrypt_seconds", "Time to encrypt a sent message, mean."), "sent"),
    "decrypt": (gauge(f"{PREFIX}_decrypt_seconds", "Time to decrypt a received message, mean."), "received"),
    "decompress": (gauge(f"{PREFIX}_decompress_seconds", "Time to decompress a received message, mean."), "received"),
}
ACKNOWLEDGE: Final = gauge(
    f"{PREFIX}_acknowledge_mean_seconds",
    "From sending a message to the broker's acknowledgement, mean of the good trials; absent with AtMostOnce.",
)
_COUNTS: Final = {
    "sent": gauge(f"{PREFIX}_messages_sent", "Messages sent in all counted trials."),
    "received": gauge(f"{PREFIX}_messages_received", "Sent messages that were received."),
    "lost": gauge(f"{PREFIX}_messages_lost", "Sent messages that were not received."),
    "acknowledged_lost": gauge(
        f"{PREFIX}_messages_acknowledged_lost", "Messages that the broker acknowledged and that never arrived."
    ),
    "duplicated": gauge(f"{PREFIX}_messages_duplicated", "Duplicate messages that were received."),
    "late_sends": gauge(f"{PREFIX}_messages_late", "Messages sent later than intended."),
    "reconnects": gauge(f"{PREFIX}_reconnects", "Reconnects in all counted trials."),
}
RETRIED: Final = gauge(f"{PREFIX}_messages_retried", "Messages that were sent again in all counted trials.")
ERRORS: Final = gauge(f"{PREFIX}_errors", "Errors of publishers and subscribers in all counted trials.")


def add(samples: Samples, result: BenchmarkResult) -> None:
    """Adds the metrics that only brokers have."""
    status = result.status
    round_trips = status.distributions.round_trip
    if round_trips is not None:
        up_to = partial(count_up_to, round_trips)
        samples.add_histogram(ROUND_TRIP, up_to, round_trips.count, round_trips.sum_nanoseconds)
    acknowledged = status.distributions.acknowledge
    if acknowledged is not None and acknowledged.count:
        samples.add(ACKNOWLEDGE, acknowledged.sum_nanoseconds / acknowledged.count / 1e9)
    samples.add_means(MEANS, status.statistics)
    _codecs(samples, status.trials)
    messages = status.counts.messages
    if messages is not None:
        for name, family in _COUNTS.items():
            samples.add(family, getattr(messages, name))
    samples.add(RETRIED, status.counts.retries)
    samples.add(ERRORS, status.counts.errors)


def _codecs(samples: Samples, trials: Sequence[ResultTrial]) -> None:
    """Adds the time per message of compression and encryption, over all good trials, because trials have sums."""
    good = [trial.exchange for trial in trials if not trial.warmup and trial.outcome is Outcome.COMPLETED]
    exchanges = [exchange for exchange in good if exchange is not None]
    for name, (family, counted) in _CODECS.items():
        messages = sum(getattr(exchange, counted) for exchange in exchanges)
        nanoseconds = sum(getattr(exchange, f"{name}_nanoseconds") for exchange in exchanges)
        samples.add(family, nanoseconds / messages / 1e9 if messages else None)
