"""The dashboard of brokers: round trips and rates, losses, the cost of TLS and codecs, and bytes on the wire."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.panels import (
    KindPanels,
    Panels,
    Topic,
    bars,
    board,
    parts,
    result_variables,
    stacked_bars,
)
from tierbench.generate.dashboards.queries import Results, columns, part
from tierbench.kinds.broker.metrics import ACKNOWLEDGE, MEANS, PREFIX, ROUND_TRIP

_RESULTS: Final = Results("BrokerBenchmark", row="payload_size")
_PANELS: Final = KindPanels(_RESULTS, PREFIX, (*MEANS.values(), ROUND_TRIP, ACKNOWLEDGE))
_DOCUMENT: Final = "explanation/brokers.md"


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


def _lost(name: str) -> str:
    return f"{_PANELS.total(f'messages_{name}')} / {_PANELS.total('messages_sent')}"


def _round_trips() -> Panels:
    return (
        _PANELS.means("Round trip", "How long does a message take?", "round_trip_mean_seconds"),
        _PANELS.trend("Round trip from run to run", "Has it changed?", "round_trip_mean_seconds"),
        _PANELS.quantiles(
            "Median round trip", "How long does half of the messages take at most?", 0.5, "round_trip_seconds"
        ),
        _PANELS.quantiles(
            "99th percentile of the round trip", "How long do the slowest messages take?", 0.99, "round_trip_seconds"
        ),
    )


def _rates() -> Panels:
    return (
        _PANELS.means("Messages per second", "How many messages are delivered?", "throughput_messages_per_second"),
        _PANELS.means("Payload per second", "How much payload is delivered?", "throughput_bytes_per_second"),
        _PANELS.shares(
            "CPU of the broker",
            "Was the broker the limit?",
            "cpu_ratio",
            "A broker with one thread is saturated from 80% on.",
        ),
        _PANELS.shares("CPU of the broker's node", "Was the broker's node the limit?", "server_cpu_ratio"),
    )


def _pairs() -> Panels:
    return (_PANELS.shares("Fairness between pairs", "Does each pair get the same?", "fairness_ratio"),)


def _losses() -> Panels:
    return (
        bars(
            "Lost messages",
            "How many messages are lost? Share of sent messages that were never received, over all counted trials.",
            "percentunit",
            _lost("lost"),
        ),
        parts(
            "Broken guarantees and duplicates",
            "Does delivery keep its guarantee? Shares of the sent messages: acknowledged by the broker and never "
            "received, duplicated, and sent again.",
            "percentunit",
            {
                "acknowledged and lost": _lost("acknowledged_lost"),
                "duplicated": _lost("duplicated"),
                "sent again": _lost("retried"),
            },
        ),
        parts(
            "Received and late",
            "Did the client keep the pace? Shares of the sent messages: received, and sent later than intended.",
            "percentunit",
            {"received": _lost("received"), "late": _lost("late")},
        ),
        parts(
            "Reconnects and errors",
            "Were connections stable? Over all counted trials.",
            "short",
            {"reconnects": _PANELS.total("reconnects"), "errors": _PANELS.total("errors")},
        ),
    )


def _tls() -> Panels:
    return (
        _PANELS.compared_with_none(
            "Messages per second with TLS",
            "How much throughput does TLS cost?",
            "tls",
            "throughput_messages_per_second",
        ),
        _PANELS.compared_with_none(
            "Round trip with TLS", "How much longer does a message take with TLS?", "tls", "round_trip_mean_seconds"
        ),
        _PANELS.means("TLS handshake", "How long does a TLS handshake take?", "tls_handshake_seconds"),
    )


def _codecs() -> Panels:
    before, after = ("compress", "encrypt"), ("decrypt", "decompress")
    codecs = {name: _RESULTS.mean(f"{PREFIX}_{name}_seconds") for name in (*before, *after)}
    way = " - ".join([_PANELS.mean("round_trip_mean_seconds"), *(codecs[name] for name in before)])
    steps = {name: codecs[name] for name in before} | {"on the way": way} | {name: codecs[name] for name in after}
    stacked = " or ".join(part(name, expression) for name, expression in steps.items())
    return (
        _PANELS.compared_with_none(
            "Messages per second with compression",
            "What does compression cost or gain?",
            "compression",
            "throughput_messages_per_second",
        ),
        _PANELS.compared_with_none(
            "Messages per second with encryption",
            "What does encryption cost?",
            "encryption",
            "throughput_messages_per_second",
        ),
        stacked_bars(
            "Where the time of a message goes",
            "Do codecs or the network take the time? Mean per message: compression, encryption, the rest of the round "
            "trip, decryption, decompression. With an open loop, the rest includes waiting to be sent.",
            "s",
            columns(f"({stacked})", _RESULTS.row),
            "compared",
            "part",
        ),
        _PANELS.means(
            "Payload after compression and encryption",
            "How much of the payload is left?",
            "encoded_ratio",
            "Above 100%, it grew.",
        ),
    )


def _wire() -> Panels:
    return (
        _PANELS.means("Bytes on the wire per message", "How large is a message on the wire?", "wire_bytes_per_message"),
        _PANELS.means("Packets per message", "How many packets is a message?", "wire_packets_per_message"),
        _PANELS.means(
            "Bytes to set up a connection", "What does a connection cost before its first message?", "setup_bytes"
        ),
        _PANELS.means(
            "Packets to set up a connection",
            "How many packets does a connection need before its first message?",
            "setup_packets",
        ),
        _PANELS.means("Connecting", "How long does it take to connect?", "connect_seconds"),
        _PANELS.means("Bytes on the wire", "How much is on the wire in a trial?", "wire_bytes"),
        _PANELS.means(
            "Bytes on the wire per second", "How much of the network is used?", "wire_throughput_bytes_per_second"
        ),
    )


def _delivery() -> Panels:
    return (
        _PANELS.means("Acknowledgement", "When does a publisher get the acknowledgement?", "acknowledge_mean_seconds"),
        _PANELS.means("Messages per batch", "How many messages are in a batch of Kafka?", "batch_messages"),
        _PANELS.means("Bytes per batch", "How large are Kafka's batches?", "batch_bytes"),
    )
