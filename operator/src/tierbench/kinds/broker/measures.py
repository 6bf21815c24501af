"""What one trial of a broker gives."""

from typing import Final

from tierbench.api.contract import ServerSample
from tierbench.api.result import ResultTrial, Spread

RATE: Final = "throughputMessagesPerSecond"
MAIN: Final = ("roundTripNanoseconds", RATE)
TIME: Final = ("roundTripNanoseconds", "acknowledgeNanoseconds")
TIMES: Final = {
    RATE: "durationNanoseconds",
    "throughputBytesPerSecond": "durationNanoseconds",
    "wireThroughputBytesPerSecond": "sessionNanoseconds",
}
_NOT_SEEN: Final = ServerSample()


def of(trial: ResultTrial) -> dict[str, float | None]:
    """Quantities by name; None where the trial does not tell.

    Rates are of what was received; without subscribers of what was acknowledged. What goes over the wire for a message
    is of those that were sent, and what setting up takes is of a connection.
    """
    exchange, sample = trial.exchange, trial.server or _NOT_SEEN
    if exchange is None:
        return {}
    alone = exchange.received is None
    messages, payload = exchange.received, exchange.received_bytes
    if alone:
        messages, payload = exchange.acknowledged, exchange.acknowledged_bytes
    seconds, session = trial.duration_nanoseconds / 1e9, exchange.session_nanoseconds / 1e9
    wire = exchange.wire_sent_bytes + exchange.wire_received_bytes
    return {
        **_times("roundTrip", trial.round_trip),
        **_times("acknowledge", trial.acknowledge),
        "durationNanoseconds": trial.duration_nanoseconds,
        "sessionNanoseconds": exchange.session_nanoseconds,
        "throughputMessagesPerSecond": _rate(messages, seconds),
        "throughputBytesPerSecond": _rate(payload, seconds),
        "wireBytes": wire,
        "wireThroughputBytesPerSecond": _rate(wire, session),
        "wireBytesPerMessage": _mean(exchange.load_bytes, exchange.sent) if exchange.connections else None,
        "wirePacketsPerMessagePartsPerMillion": _share(exchange.load_packets, exchange.sent)
        if exchange.connections
        else None,
        "setupBytes": _mean(exchange.setup_bytes, exchange.connections),
        "setupPackets": _mean(exchange.setup_packets, exchange.connections),
        "pairFairnessPartsPerMillion": trial.pair_fairness_parts_per_million,
        "lost": None if alone else exchange.lost,
        "retries": exchange.retried,
        "connectNanoseconds": exchange.connect_nanoseconds,
        "tlsNanoseconds": exchange.tls_nanoseconds,
        "compressNanoseconds": exchange.compress_nanoseconds,
        "encryptNanoseconds": exchange.encrypt_nanoseconds,
        "decryptNanoseconds": None if alone else exchange.decrypt_nanoseconds,
        "decompressNanoseconds": None if alone else exchange.decompress_nanoseconds,
        "batchMessages": _mean(exchange.sent, exchange.batches),
        "batchBytes": _mean(exchange.batch_bytes, exchange.batches),
        "encodedPartsPerMillion": _share(exchange.encoded_bytes, exchange.sent_bytes),
        "clientCpuPartsPerMillion": _share(trial.client.cpu_nanoseconds, trial.duration_nanoseconds),
        "brokerCpuPartsPerMillion": None
        if sample.process_cpu_nanoseconds is None
        else _share(sample.process_cpu_nanoseconds, trial.duration_nanoseconds),
        "serverCpuPartsPerMillion": sample.cpu_parts_per_million,
        "tcpRetransmits": sample.tcp_retransmits,
        "clientTcpRetransmits": exchange.tcp_retransmits,
    }


def _times(name: str, spread: Spread | None) -> dict[str, float | None]:
    if spread is None:
        return {}
    each = {"": spread.mean, "P50": spread.p50, "P90": spread.p90, "P99": spread.p99}
    return {f"{name}{which}Nanoseconds": value for which, value in each.items()}


def _rate(number: int | None, seconds: float) -> float | None:
    return number / seconds if number is not None and seconds else None


def _mean(total: int | None, number: int) -> float | None:
    return total / number if total is not None and number else None


def _share(part: int, whole: int) -> float | None:
    return 1e6 * part / whole if whole else None
