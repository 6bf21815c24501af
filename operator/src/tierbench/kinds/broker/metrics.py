"""The Prometheus metrics of a BrokerBenchmark."""

from collections.abc import Mapping
from typing import Final

from tierbench.api.result import BenchmarkResult
from tierbench.metrics.results import Samples, gauges, histogram

FACTORS: Final = (
    "broker",
    "image",
    "payloadSize",
    "content",
    "delivery",
    "tls",
    "handshake",
    "certificate",
    "encryption",
    "compression",
    "pairs",
    "mqttVersion",
    "groups",
    "codec",
    "partitions",
    "lingerMilliseconds",
    "batchSize",
    "link",
    "engine",
)
PARAMETERS: Final = (
    "pacing",
    "inFlight",
    "messagesPerSecond",
    "load",
    "maxInFlight",
    "deliveryTimeoutMilliseconds",
    "access",
    "clientPods",
    "connections",
    "subscribers",
    "links",
)

HISTOGRAMS: Final = ("roundTripNanoseconds",)

PREFIX: Final = "tierbench_broker"
_gauge: Final = gauges(PREFIX)

ROUND_TRIP: Final = histogram(
    f"{PREFIX}_round_trip_seconds",
    "From a message's intended send time to its arrival, of the good trials; bounds are exact to about 1%.",
    range(-14, 7),  # 61 µs to 64 s
)
MEANS: Final = {
    "roundTripNanoseconds": _gauge(
        "round_trip_mean_seconds", "From a message's intended send time to its arrival, mean of the good trials."
    ),
    "throughputMessagesPerSecond": _gauge(
        "throughput_messages_per_second", "Messages received per second, mean of the good trials."
    ),
    "throughputBytesPerSecond": _gauge(
        "throughput_bytes_per_second",
        "Payload received per second, before compression and encryption, mean of the good trials.",
    ),
    "wireBytes": _gauge("wire_bytes", "Bytes on the wire of all connections in a trial, in both directions, mean."),
    "wireThroughputBytesPerSecond": _gauge(
        "wire_throughput_bytes_per_second",
        "Bytes on the wire per second of the whole session, including connecting, mean.",
    ),
    "wireBytesPerMessage": _gauge(
        "wire_bytes_per_message",
        "Bytes on the wire per message, with acknowledgements and headers, in both directions and on both legs, mean.",
    ),
    "wirePacketsPerMessagePartsPerMillion": _gauge(
        "wire_packets_per_message",
        "TCP segments per message, with acknowledgements, in both directions and on both legs, mean.",
    ),
    "setupBytes": _gauge(
        "setup_bytes",
        "Bytes on the wire, in both directions, of TCP, TLS, login and subscription of a connection, mean.",
    ),
    "setupPackets": _gauge(
        "setup_packets", "TCP segments, in both directions, of TCP, TLS, login and subscription of a connection, mean."
    ),
    "pairFairnessPartsPerMillion": _gauge(
        "fairness_ratio",
        "Jain's index of what each pair received: 1 if all got the same, 1/n if one of n got everything, mean.",
    ),
    "connectNanoseconds": _gauge(
        "connect_seconds", "From the start of a connection until the broker accepts it, without TLS, mean."
    ),
    "tlsNanoseconds": _gauge("tls_handshake_seconds", "TLS handshake of a connection, mean; absent without TLS."),
    "batchMessages": _gauge("batch_messages", "Messages per batch, mean; only for brokers with batches."),
    "batchBytes": _gauge("batch_bytes", "Bytes per batch after the broker's own codec, mean."),
    "encodedPartsPerMillion": _gauge(
        "encoded_ratio", "Payload after compression and encryption, as a share of the payload before, mean."
    ),
    "brokerCpuPartsPerMillion": _gauge("cpu_ratio", "CPU of the broker's process, as a share of one core, mean."),
}
_CODECS: Final = {
    "compress": (_gauge("compress_seconds", "Time to compress a sent message, mean of the good trials."), "sent"),
    "encrypt": (_gauge("encrypt_seconds", "Time to encrypt a sent message, mean."), "sent"),
    "decrypt": (_gauge("decrypt_seconds", "Time to decrypt a received message, mean."), "received"),
    "decompress": (_gauge("decompress_seconds", "Time to decompress a received message, mean."), "received"),
}
ACKNOWLEDGE: Final = _gauge(
    "acknowledge_mean_seconds",
    "From sending a message to the broker's acknowledgement, mean of the good trials; absent with AtMostOnce.",
)
_COUNTS: Final = {
    "sent": _gauge("messages_sent", "Messages sent in all counted trials."),
    "received": _gauge("messages_received", "Sent messages that were received."),
    "lost": _gauge("messages_lost", "Sent messages that were not received."),
    "acknowledged_lost": _gauge(
        "messages_acknowledged_lost", "Messages that the broker acknowledged and that never arrived."
    ),
    "duplicated": _gauge("messages_duplicated", "Duplicate messages that were received."),
    "late_sends": _gauge("messages_late", "Messages sent later than intended."),
    "reconnects": _gauge("reconnects", "Reconnects in all counted trials."),
}
RETRIED: Final = _gauge("messages_retried", "Messages that were sent again in all counted trials.")
ERRORS: Final = _gauge("errors", "Errors of publishers and subscribers in all counted trials.")


def add(samples: Samples, result: BenchmarkResult) -> None:
    """Adds the metrics that only brokers have."""
    status, totals = result.status, result.status.totals
    samples.add_histogram(ROUND_TRIP, status.histograms.get("roundTripNanoseconds"))
    samples.add(ACKNOWLEDGE, _seconds_each(totals, "acknowledgeNanoseconds", "acknowledgements"))
    samples.add_means(MEANS, status.statistics)
    for name, (family, counted) in _CODECS.items():
        samples.add(family, _seconds_each(totals, f"{name}Nanoseconds", counted))
    messages = status.counts.messages
    if messages is not None:
        for name, family in _COUNTS.items():
            samples.add(family, getattr(messages, name))
    samples.add(RETRIED, status.counts.retries)
    samples.add(ERRORS, status.counts.errors)


def _seconds_each(totals: Mapping[str, int], nanoseconds: str, counted: str) -> float | None:
    """Returns the mean time in seconds, or None if nothing was counted."""
    count = totals.get(counted, 0)
    return totals.get(nanoseconds, 0) / count / 1e9 if count else None
