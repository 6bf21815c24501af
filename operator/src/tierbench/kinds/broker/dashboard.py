"""The dashboard of brokers: round trips and rates, losses, the cost of TLS and codecs, and bytes on the wire."""

from typing import Final

from grafana_foundation_sdk.builders import table, timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.panels import (
    Panels,
    Topic,
    bars,
    board,
    grouped_bars,
    matrix,
    over_time,
    query,
    result_variables,
    share_bars,
)
from tierbench.generate.dashboards.queries import Results, columns, part

_PREFIX: Final = "tierbench_broker"
_ROW: Final = "payload_size"
_RESULTS: Final = Results("BrokerBenchmark", _ROW)
_DOCUMENT: Final = "concepts/brokers.md"
_ROUGH: Final = (
    "From intended send times. Buckets are a factor of 2 apart, so this is an estimate. Results are exact to 1%."
)


def dashboard() -> Dashboard:
    """Returns the dashboard of BrokerBenchmarks."""
    text = "How fast and reliably brokers deliver messages, and what each setting costs."
    topics = (
        Topic("Round trips", _DOCUMENT, "Round trip", _round_trips()),
        Topic("Rates", _DOCUMENT, "Pacing", _rates()),
        Topic("Pairs", _DOCUMENT, "A pair", _pairs()),
        Topic("Losses", _DOCUMENT, "Messages", _losses()),
        Topic("What TLS costs", _DOCUMENT, "Bytes on the wire", _tls()),
        Topic("What compression and encryption cost", _DOCUMENT, "Compression and encryption", _codecs()),
        Topic("On the wire", _DOCUMENT, "Bytes on the wire", _wire()),
        Topic("Delivery and batches", _DOCUMENT, "Delivery", _delivery()),
    )
    return board("brokers", "Brokers", text, result_variables(_RESULTS), topics)


def _mean(metric: str) -> str:
    return _RESULTS.mean(f"{_PREFIX}_{metric}")


def _matrix(title: str, text: str, unit: str, metric: str) -> table.Panel:
    return matrix(title, text, unit, _mean(metric), _ROW)


def _quantile(title: str, question: str, share: float) -> table.Panel:
    trips = _RESULTS.quantile(share, f"{_PREFIX}_round_trip_seconds")
    return matrix(title, f"{question} {_ROUGH}", "s", trips, _ROW)


def _total(metric: str) -> str:
    return _RESULTS.total(f"{_PREFIX}_{metric}")


def _lost(name: str) -> str:
    return f"{_total(f'messages_{name}')} / {_total('messages_sent')}"


def _parts_over_time(title: str, text: str, unit: str, **parts: str) -> timeseries.Panel:
    named = (query(part(name.replace("_", " "), expression)) for name, expression in parts.items())
    return over_time(title, text, unit, *named)


def _round_trips() -> Panels:
    return (
        _matrix(
            "Round trip",
            "How long does a message take? Mean of the good trials, from the intended send time to the arrival.",
            "s",
            "round_trip_mean_seconds",
        ),
        over_time(
            "Round trip from run to run",
            "Has it changed? Mean of the good trials of the newest run that has ended. A step is a new run.",
            "s",
            query(_mean("round_trip_mean_seconds")),
        ),
        _quantile("Median round trip", "How long does half of the messages take at most?", 0.5),
        _quantile("99th percentile of the round trip", "How long do the slowest messages take?", 0.99),
    )


def _rates() -> Panels:
    return (
        _matrix(
            "Messages per second",
            "How many messages are delivered? Received, mean of the good trials.",
            "mps",
            "throughput_messages_per_second",
        ),
        _matrix(
            "Payload per second",
            "How much payload is delivered? Received, before compression and encryption, mean of the good trials.",
            "Bps",
            "throughput_bytes_per_second",
        ),
        share_bars(
            "CPU of the broker",
            "Was the broker the limit? Its CPU as a share of one core, mean. A broker with one thread is saturated "
            "from 80% on.",
            _mean("cpu_ratio"),
        ),
        share_bars(
            "CPU of the broker's node",
            "Was the broker's node the limit? Share of CPU time that it was busy, mean.",
            _RESULTS.mean("tierbench_server_cpu_ratio"),
        ),
    )


def _pairs() -> Panels:
    return (
        share_bars(
            "Fairness between pairs",
            "Does each pair get the same? Jain's index: 100% if all do, and 1/n if one of n gets everything.",
            _mean("fairness_ratio"),
        ),
    )


def _losses() -> Panels:
    return (
        bars(
            "Lost messages",
            "How many messages are lost? Share of sent messages that were never received, over all counted trials.",
            "percentunit",
            _lost("lost"),
        ),
        _parts_over_time(
            "Broken guarantees and duplicates",
            "Does delivery keep its guarantee? Shares of the sent messages: acknowledged by the broker and never "
            "received, duplicated, and sent again.",
            "percentunit",
            acknowledged_and_lost=_lost("acknowledged_lost"),
            duplicated=_lost("duplicated"),
            sent_again=_lost("retried"),
        ),
        _parts_over_time(
            "Received and late",
            "Did the client keep the pace? Shares of the sent messages: received, and sent later than intended.",
            "percentunit",
            received=_lost("received"),
            late=_lost("late"),
        ),
        _parts_over_time(
            "Reconnects and errors",
            "Were connections stable? Over all counted trials.",
            "short",
            reconnects=_total("reconnects"),
            errors=_total("errors"),
        ),
    )


def _with_and_without(title: str, question: str, factor: str, metric: str) -> table.Panel:
    text = (
        f"{question} As a share of the value without it, on the same nodes, all else equal. Needs results with None, "
        "too."
    )
    return matrix(title, text, "percentunit", _RESULTS.share_of_without(factor, f"{_PREFIX}_{metric}"), _ROW)


def _tls() -> Panels:
    return (
        _with_and_without(
            "Messages per second with TLS",
            "How much throughput does TLS cost?",
            "tls",
            "throughput_messages_per_second",
        ),
        _with_and_without(
            "Round trip with TLS", "How much longer does a message take with TLS?", "tls", "round_trip_mean_seconds"
        ),
        matrix(
            "Additional bytes per message with TLS",
            "How many bytes does TLS add to a message? On the wire, minus those without TLS, all else equal.",
            "bytes",
            _RESULTS.more_than_without("tls", f"{_PREFIX}_wire_bytes_per_message"),
            _ROW,
        ),
        _matrix(
            "TLS handshake",
            "How long does a TLS handshake take? Mean per connection. Empty if no case uses TLS.",
            "s",
            "tls_handshake_seconds",
        ),
    )


def _codecs() -> Panels:
    before, after = ("compress", "encrypt"), ("decrypt", "decompress")
    codecs = {name: _mean(f"{name}_seconds") for name in (*before, *after)}
    way = " - ".join([_mean("round_trip_mean_seconds"), *(codecs[name] for name in before)])
    parts = {name: codecs[name] for name in before} | {"on the way": way} | {name: codecs[name] for name in after}
    stacked = " or ".join(part(name, expression) for name, expression in parts.items())
    return (
        _with_and_without(
            "Messages per second with compression",
            "What does compression cost or gain?",
            "compression",
            "throughput_messages_per_second",
        ),
        _with_and_without(
            "Messages per second with encryption",
            "What does encryption cost?",
            "encryption",
            "throughput_messages_per_second",
        ),
        grouped_bars(
            "Where the time of a message goes",
            "Do codecs or the network take the time? Mean per message: compression, encryption, the rest of the round "
            "trip, decryption, decompression. With an open loop, the rest includes waiting to be sent.",
            "s",
            columns(f"({stacked})", _ROW),
            "compared",
            "part",
            stacked=True,
        ),
        _matrix(
            "Payload after compression and encryption",
            "How much of the payload is left? As a share of the payload before, mean. Above 100%, it grew.",
            "percentunit",
            "encoded_ratio",
        ),
    )


def _wire() -> Panels:
    return (
        _matrix(
            "Bytes on the wire per message",
            "How large is a message on the wire? In both directions and on both legs, with acknowledgements and "
            "headers, mean.",
            "bytes",
            "wire_bytes_per_message",
        ),
        _matrix(
            "Packets per message",
            "How many packets is a message? TCP segments in both directions and on both legs, with acknowledgements, "
            "mean.",
            "none",
            "wire_packets_per_message",
        ),
        _matrix(
            "Bytes to set up a connection",
            "What does a connection cost before its first message? TCP, TLS, login and subscription, in both "
            "directions, mean.",
            "bytes",
            "setup_bytes",
        ),
        _matrix(
            "Packets to set up a connection",
            "How many packets does a connection need before its first message? In both directions, mean.",
            "none",
            "setup_packets",
        ),
        _matrix(
            "Connecting",
            "How long does it take to connect? Until the broker accepts the connection, without TLS, mean.",
            "s",
            "connect_seconds",
        ),
        _matrix(
            "Bytes on the wire",
            "How much is on the wire in a trial? All connections, in both directions, with headers, mean.",
            "bytes",
            "wire_bytes",
        ),
        _matrix(
            "Bytes on the wire per second",
            "How much of the network is used? All connections, in both directions, over the whole session, mean.",
            "Bps",
            "wire_throughput_bytes_per_second",
        ),
    )


def _delivery() -> Panels:
    return (
        _matrix(
            "Acknowledgement",
            "When does a publisher get the acknowledgement? Mean time after sending. Empty if the delivery has none.",
            "s",
            "acknowledge_mean_seconds",
        ),
        _matrix("Messages per batch", "How many messages are in a batch of Kafka? Mean.", "short", "batch_messages"),
        _matrix(
            "Bytes per batch",
            "How large are Kafka's batches? As sent, after its own compression, mean.",
            "bytes",
            "batch_bytes",
        ),
    )
