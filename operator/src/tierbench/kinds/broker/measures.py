"""The measurements of a BrokerBenchmark: quantities, trials of several clients, and what distorts or explains them."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Final

from pydantic.alias_generators import to_camel

from tierbench.api.contract import Outcome, PairShares, ServerSample, TrialLine
from tierbench.api.measurements import Exchange, ExchangeErrors
from tierbench.api.record import RecordStatus, ResultTrial, Spread
from tierbench.api.result import MessageCounts, Note, ResultSpec
from tierbench.kinds.broker.tls import HANDSHAKE, Handshake
from tierbench.results.quantities import spread_of
from tierbench.stats.distributions import jain_index, parts_per_million, ratio

_SETUP_MEANS: Final = ("connect_nanoseconds", "tls_nanoseconds")
_SETUP_SUMS: Final = ("setup_bytes", "setup_packets")
_COSTS: Final = (
    "reconnects", "errors", "wire_sent_bytes", "wire_received_bytes", "wire_sent_packets", "wire_received_packets",
    "connections", "load_bytes", "load_packets", "tcp_retransmits", "decrypt_nanoseconds", "decompress_nanoseconds",
    "tls_handshakes", "resumed_handshakes",
)  # fmt: skip
_WHOLE: Final = ("error_causes", "session_nanoseconds", "steady", "cipher")
RATE: Final = "throughputMessagesPerSecond"
MAIN: Final = ("roundTripNanoseconds", RATE)
TIME: Final = ("roundTripNanoseconds", "acknowledgeNanoseconds")
TIMES: Final = {
    RATE: "durationNanoseconds",
    "throughputBytesPerSecond": "durationNanoseconds",
    "wireThroughputBytesPerSecond": "sessionNanoseconds",
}
TITLES: Final = {
    "roundTripNanoseconds": "Round trip",
    "acknowledgeNanoseconds": "Time to the acknowledgement",
    "sessionNanoseconds": "Whole session",
    "throughputMessagesPerSecond": "Messages per second",
    "wireThroughputBytesPerSecond": "Bytes on the wire per second",
    "overallThroughputMessagesPerSecond": "All messages by all time",
    "overallWireThroughputBytesPerSecond": "All bytes on the wire by all time",
    "wireBytes": "On the wire",
    "wireBytesPerMessage": "Bytes on the wire per message",
    "wirePacketsPerMessagePartsPerMillion": "Packets per message",
    "setupBytes": "On the wire to set up a connection",
    "setupPackets": "Packets to set up a connection",
    "pairFairnessPartsPerMillion": "Fairness between pairs (Jain's index)",
    "encodedPartsPerMillion": "Payload left by compression",
    "brokerCpuPartsPerMillion": "CPU of the broker's process",
}
_OF_SUBSCRIBERS: Final = {"received", "lost", "acknowledged_lost", "duplicated", "out_of_order"}
_NO_SAMPLE: Final = ServerSample()
_SPREAD: Final = Spread(mean=0, p50=0, p90=0, p99=0)
EVERYTHING: Final = ResultTrial(
    trial=1,
    outcome=Outcome.COMPLETED,
    start_time="",
    duration_nanoseconds=1,
    exchange=Exchange(received=0, lost=0, received_bytes=0),
    round_trip=_SPREAD,
    acknowledge=_SPREAD,
)
"""A trial that has all quantities."""
SATURATED_SHARE: Final = 0.8
_KAFKAS_OWN: Final = "codec"  # a factor of Kafka only
NODE_SATURATED_PARTS_PER_MILLION: Final = 950_000
_TOTALS: Final = (
    "sent", "received", "compress_nanoseconds", "encrypt_nanoseconds", "decrypt_nanoseconds", "decompress_nanoseconds",
)  # fmt: skip


def quantities(trial: ResultTrial) -> dict[str, float | None]:
    """Returns quantities by name, None if the trial does not have them.

    Rates are those of received messages, each counted once per subscriber, or of acknowledged ones without subscribers.
    Bytes and packets per message are those of sent messages, and setup bytes and packets are per connection.
    """
    exchange, sample = trial.exchange, trial.server or _NO_SAMPLE
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
        "throughputMessagesPerSecond": ratio(messages, seconds),
        "throughputBytesPerSecond": ratio(payload, seconds),
        "wireBytes": wire,
        "wireThroughputBytesPerSecond": ratio(wire, session),
        "wireBytesPerMessage": ratio(exchange.load_bytes, exchange.sent) if exchange.connections else None,
        "wirePacketsPerMessagePartsPerMillion": parts_per_million(exchange.load_packets, exchange.sent)
        if exchange.connections
        else None,
        "setupBytes": ratio(exchange.setup_bytes, exchange.connections),
        "setupPackets": ratio(exchange.setup_packets, exchange.connections),
        "pairFairnessPartsPerMillion": trial.pair_fairness_parts_per_million,
        "lost": None if alone else exchange.lost,
        "retries": exchange.retried,
        "connectNanoseconds": exchange.connect_nanoseconds,
        "tlsNanoseconds": exchange.tls_nanoseconds,
        "compressNanoseconds": exchange.compress_nanoseconds,
        "encryptNanoseconds": exchange.encrypt_nanoseconds,
        "decryptNanoseconds": None if alone else exchange.decrypt_nanoseconds,
        "decompressNanoseconds": None if alone else exchange.decompress_nanoseconds,
        "batchMessages": ratio(exchange.sent, exchange.batches),
        "batchBytes": ratio(exchange.batch_bytes, exchange.batches),
        "encodedPartsPerMillion": parts_per_million(exchange.encoded_bytes, exchange.sent_bytes),
        "clientCpuPartsPerMillion": parts_per_million(trial.client.cpu_nanoseconds, trial.duration_nanoseconds),
        "brokerCpuPartsPerMillion": parts_per_million(sample.process_cpu_nanoseconds, trial.duration_nanoseconds),
        "serverCpuPartsPerMillion": sample.cpu_parts_per_million,
        "tcpRetransmits": sample.tcp_retransmits,
        "clientTcpRetransmits": exchange.tcp_retransmits,
    }


def _times(name: str, spread: Spread | None) -> dict[str, float | None]:
    if spread is None:
        return {}
    each = {"": spread.mean, "P50": spread.p50, "P90": spread.p90, "P99": spread.p99}
    return {f"{name}{which}Nanoseconds": value for which, value in each.items()}


def facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Returns what explains the numbers without distorting them: saturation, late messages, and duplicates."""
    notes = []
    single_threaded = _KAFKAS_OWN not in spec.levels
    limited = sum(_broker_saturated(trial, single_threaded) for trial in good)
    if limited:
        message = (
            f"In {limited} of {len(good)} trials the broker or its node used all its CPU, which limited the numbers."
        )
        notes.append(Note(reason="BrokerSaturated", message=message))
    late = sum(trial.exchange.late_sends for trial in good if trial.exchange is not None)
    unsent = sum(trial.exchange.unsent for trial in good if trial.exchange is not None)
    if late or unsent:
        message = (
            f"{late} messages were sent later than intended, and {unsent} due messages were not sent: broker or "
            "subscribers were slower than the pacing."
        )
        notes.append(Note(reason="BehindPace", message=message))
    moving = sum(trial.exchange.steady is False for trial in good if trial.exchange is not None)
    if moving:
        message = (
            f"In {moving} of {len(good)} trials round trips reached no steady state, so no message was left out of "
            "them. Make the load longer."
        )
        notes.append(Note(reason="NotSteady", message=message))
    twice = sum(trial.exchange.duplicated for trial in good if trial.exchange is not None)
    if twice:
        notes.append(Note(reason="Duplicated", message=f"{twice} duplicate messages were received."))
    return notes


def _broker_saturated(trial: ResultTrial, single_threaded: bool) -> bool:
    """Returns whether the broker's process used 80% of its limit, or its node 95% of its CPU.

    The limit of a single-threaded process is one CPU. Above this, its queues grow.
    """
    sample = trial.server
    if trial.exchange is None or sample is None:
        return False
    limit = 1000 if single_threaded else sample.cpu_limit_millicores
    used = (sample.process_cpu_nanoseconds or 0) * 1000
    saturated = limit is not None and 0 < SATURATED_SHARE * limit * trial.duration_nanoseconds <= used
    return saturated or (sample.cpu_parts_per_million or 0) >= NODE_SATURATED_PARTS_PER_MILLION


def invalid(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """Returns what may have distorted the numbers: messages that did not arrive, and sessions that did not resume."""
    exchanges = [trial.exchange for trial in good if trial.exchange is not None]
    notes = []
    handshakes = sum(one.tls_handshakes for one in exchanges)
    full = handshakes - sum(one.resumed_handshakes for one in exchanges)
    if full and spec.levels.get(HANDSHAKE) == Handshake.RESUMED:
        message = (
            f"{full} of {handshakes} TLS handshakes were full, because the broker did not resume the session. The "
            "numbers of connecting include them."
        )
        notes.append(Note(reason="NotResumed", message=message))
    broken = sum(one.acknowledged_lost for one in exchanges)
    if broken:
        message = (
            f"{broken} messages were acknowledged by the broker and never delivered. Check whether the broker "
            "restarted."
        )
        notes.append(Note(reason="AcknowledgedLost", message=message))
    lost = sum(one.lost for one in exchanges)
    if lost > broken:
        due = lost + sum(one.received or 0 for one in exchanges)
        message = f"{lost} of {due} messages were lost; the times are those of messages that arrived."
        notes.append(Note(reason="MessagesLost", message=message))
    return notes


def bits_per_second(trial: ResultTrial, direction: str) -> float | None:
    """Returns the bits per second that a trial sent in a direction."""
    exchange = trial.exchange
    if exchange is None or not exchange.session_nanoseconds:
        return None
    wire = exchange.wire_received_bytes if direction == "down" else exchange.wire_sent_bytes
    return 8e9 * wire / exchange.session_nanoseconds


def counts(trials: Sequence[ResultTrial]) -> dict[str, Any]:
    """Returns errors, and counts of messages if there were any. Without subscribers, the counts about receiving are
    absent."""
    exchanges = [trial.exchange for trial in trials if trial.exchange is not None]
    if not exchanges:
        return {}
    alone = all(one.received is None for one in exchanges)
    names = set(MessageCounts.model_fields) - (_OF_SUBSCRIBERS if alone else set())
    messages = MessageCounts(**{name: sum(getattr(one, name) or 0 for one in exchanges) for name in names})
    return {"errors": sum(one.errors for one in exchanges), "messages": messages}


def merge(merged: TrialLine, lines: Sequence[TrialLine | None], echoes: Sequence[bool]) -> TrialLine:
    """Returns the trial with the messages and the pairs of several clients.

    The costs of a client that echoes count, its messages do not.
    """
    known = [(line, echo) for line, echo in zip(lines, echoes, strict=True) if line is not None]
    pairs = [line.pair_shares for line, echo in known if not echo and line.pair_shares is not None]
    exchange = None if merged.exchange is None else _exchange(known)
    return merged.model_copy(update={"exchange": exchange, "pair_shares": _join_pairs(pairs)})


def _join_pairs(parts: Sequence[PairShares]) -> PairShares | None:
    """Returns the pairs of several parts, in the order of the parts."""
    if not parts:
        return None
    return PairShares(
        received=tuple(number for part in parts for number in part.received),
        nanoseconds=tuple(number for part in parts for number in part.nanoseconds),
    )


def _exchange(lines: Sequence[tuple[TrialLine, bool]]) -> Exchange | None:
    whole = [line.exchange for line, echo in lines if line.exchange is not None and not echo]
    echoes = [line.exchange for line, echo in lines if line.exchange is not None and echo]
    if not whole:
        return None
    summed = {
        name: sum(getattr(one, name) or 0 for one in whole)
        for name in Exchange.model_fields
        if name not in (*_SETUP_MEANS, *_SETUP_SUMS, *_WHOLE) and any(getattr(one, name) is not None for one in whole)
    }
    for name in _COSTS:
        summed[name] += sum(getattr(one, name) for one in echoes)
    causes = {
        name: sum(getattr(one.error_causes, name) for one in (*whole, *echoes)) for name in ExchangeErrors.model_fields
    }
    steady = [one.steady for one in whole if one.steady is not None]
    return Exchange(
        **summed,
        **_setup(whole, echoes),
        error_causes=ExchangeErrors(**causes),
        session_nanoseconds=max(one.session_nanoseconds for one in whole),
        steady=all(steady) if steady else None,
        cipher=next((one.cipher for one in whole if one.cipher is not None), None),
    )


def _setup(whole: Sequence[Exchange], echoes: Sequence[Exchange]) -> dict[str, int]:
    """Returns what connecting took. It is absent if a part uses the connections of an earlier trial."""
    pairs = max(sum(one.pairs for one in whole), 1)
    means = {name: [(getattr(one, name), one.pairs) for one in whole] for name in _SETUP_MEANS}
    sums = {name: [getattr(one, name) for one in (*whole, *echoes)] for name in _SETUP_SUMS}
    return {
        name: sum(value * weight for value, weight in values) // pairs
        for name, values in means.items()
        if all(value is not None for value, _ in values)
    } | {name: sum(values) for name, values in sums.items() if None not in values}


def condense(line: TrialLine) -> dict[str, Any]:
    """Returns the fields of a result's trial that replace its distributions and its pairs."""
    rates = () if line.pair_shares is None else pair_rates(line.pair_shares)
    fairness = round(1e6 * jain_index(rates)) if len(rates) > 1 and any(rates) else None
    return {
        "round_trip": spread_of(line.distributions.round_trip),
        "acknowledge": spread_of(line.distributions.acknowledge),
        "pair_fairness_parts_per_million": fairness,
    }


def pair_rates(shares: PairShares) -> tuple[float, ...]:
    """Returns the messages per second of each pair. Its time ends with its last message."""
    each = zip(shares.received, shares.nanoseconds, strict=True)
    return tuple(1e9 * received / nanoseconds if nanoseconds else 0.0 for received, nanoseconds in each)


def totals(_: ResultSpec, record: RecordStatus) -> dict[str, int]:
    """Returns the messages and the times of compression, encryption and acknowledgements, without zeros."""
    good = (trial.exchange for trial in record.trials if not trial.warmup and trial.outcome is Outcome.COMPLETED)
    exchanges = [exchange for exchange in good if exchange is not None]
    sums = {to_camel(name): sum(getattr(one, name) or 0 for one in exchanges) for name in _TOTALS}
    acknowledged = record.distributions.acknowledge
    if acknowledged is not None:
        sums |= {"acknowledgements": acknowledged.count, "acknowledgeNanoseconds": acknowledged.sum_nanoseconds}
    return {name: total for name, total in sums.items() if total}


def accumulate(record: RecordStatus, line: TrialLine) -> dict[str, Any]:
    """Returns the pairs of all good trials so far and of one more."""
    return {"pair_shares": add_pair_shares(record.pair_shares, line.pair_shares)}


def add_pair_shares(first: PairShares | None, second: PairShares | None) -> PairShares | None:
    """Returns the sum for each pair. A pair that one of the two lacks counts as 0."""
    if first is None or second is None:
        return first or second
    return PairShares(
        received=_add(first.received, second.received), nanoseconds=_add(first.nanoseconds, second.nanoseconds)
    )


def _add(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    return tuple(one + other for one, other in zip_longest(first, second, fillvalue=0))
