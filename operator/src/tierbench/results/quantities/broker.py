"""What one trial of a broker gives."""

from typing import Final

from tierbench.api.contract import ServerSample
from tierbench.api.result import ResultTrial

MAIN: Final = "roundTripNanoseconds"
TIME: Final = MAIN
RATE: Final = "throughputMessagesPerSecond"
_NOT_SEEN: Final = ServerSample()


def of(trial: ResultTrial) -> dict[str, float | None]:
    """Quantities by name; None where the trial does not tell. Rates are of what was received; what goes over the wire
    for a message is of those that were sent, and what setting up takes is of a connection."""
    exchange, sample, spread = trial.exchange, trial.server or _NOT_SEEN, trial.round_trip
    if exchange is None:
        return {}
    seconds, session = trial.duration_nanoseconds / 1e9, exchange.session_nanoseconds / 1e9
    wire = exchange.wire_sent_bytes + exchange.wire_received_bytes
    return {
        "roundTripNanoseconds": None if spread is None else spread.mean,
        "roundTripP50Nanoseconds": None if spread is None else spread.p50,
        "roundTripP90Nanoseconds": None if spread is None else spread.p90,
        "roundTripP99Nanoseconds": None if spread is None else spread.p99,
        "durationNanoseconds": trial.duration_nanoseconds,
        "sessionNanoseconds": exchange.session_nanoseconds,
        "throughputMessagesPerSecond": exchange.received / seconds if seconds else None,
        "throughputBytesPerSecond": exchange.received_bytes / seconds if seconds else None,
        "wireBytes": wire,
        "wireThroughputBytesPerSecond": wire / session if session else None,
        "wireBytesPerMessage": _mean(exchange.load_bytes, exchange.sent) if exchange.connections else None,
        "wirePacketsPerMessage": _mean(exchange.load_packets, exchange.sent) if exchange.connections else None,
        "setupBytes": _mean(exchange.setup_bytes, exchange.connections),
        "setupPackets": _mean(exchange.setup_packets, exchange.connections),
        "pairFairnessPartsPerMillion": trial.pair_fairness_parts_per_million,
        "lost": exchange.lost,
        "retries": exchange.retried,
        "connectNanoseconds": exchange.connect_nanoseconds,
        "tlsNanoseconds": exchange.tls_nanoseconds,
        "compressNanoseconds": exchange.compress_nanoseconds,
        "encryptNanoseconds": exchange.encrypt_nanoseconds,
        "decryptNanoseconds": exchange.decrypt_nanoseconds,
        "decompressNanoseconds": exchange.decompress_nanoseconds,
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


def _mean(total: int, number: int) -> float | None:
    return total / number if number else None


def _share(part: int, whole: int) -> float | None:
    return 1e6 * part / whole if whole else None
