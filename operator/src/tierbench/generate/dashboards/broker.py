"""Brokers: round trips and rates by payload and class, losses, and what connections and encodings cost."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.board import Panels, board, label_variable, result_variables
from tierbench.generate.dashboards.panels import bars, matrix, over_time, query, share_bars
from tierbench.generate.dashboards.queries import mean, quantile, results, total

_PREFIX: Final = "tierbench_broker"
_BY: Final = "payload_size, server_class"
_CLASS: Final = "{{server_class}}"
_LEVELS: Final = 'broker=~"$broker",delivery=~"$delivery"'
_ROUGH: Final = (
    "From intended send times. Buckets are a factor of 2 apart, so it is rough: the results are exact to 1 %."
)


def dashboard() -> Dashboard:
    """Results of BrokerBenchmarks."""
    text = "How fast and how safely messages come through a broker on each class of node."
    rows = {"Round trips": _round_trips(), "Rates": _rates(), "Losses": _losses(), "Costs": _costs()}
    sent = results(f"{_PREFIX}_messages_sent")
    variables = (
        *result_variables("BrokerBenchmark"),
        label_variable("broker", "Broker", sent),
        label_variable("delivery", "Delivery", sent),
    )
    return board("brokers", "Brokers", text, variables, rows)


def _mean(by: str, metric: str) -> str:
    return mean(by, f"{_PREFIX}_{metric}", _LEVELS)


def _total(metric: str) -> str:
    return total("server_class", f"{_PREFIX}_{metric}", _LEVELS)


def _lost(name: str) -> str:
    return f"{_total(f'messages_{name}')} / {_total('messages_sent')}"


def _round_trips() -> Panels:
    trips = f"{_PREFIX}_round_trip_seconds"
    return (
        matrix(
            "Round trip",
            "Mean of the good trials, from the intended send time to the arrival.",
            "s",
            _mean(_BY, "round_trip_mean_seconds"),
            "payload_size",
        ),
        over_time(
            "Round trip from run to run",
            "Mean of the good trials of the newest run that has ended. A step is a new run.",
            "s",
            query(_mean(_BY, "round_trip_mean_seconds"), "{{server_class}}, {{payload_size}} B"),
        ),
        matrix("Median round trip", _ROUGH, "s", quantile(0.5, _BY, trips, _LEVELS), "payload_size"),
        matrix("99th percentile of the round trip", _ROUGH, "s", quantile(0.99, _BY, trips, _LEVELS), "payload_size"),
    )


def _rates() -> Panels:
    return (
        matrix(
            "Messages a second",
            "Received, mean of the good trials.",
            "mps",
            _mean(_BY, "throughput_messages_per_second"),
            "payload_size",
        ),
        matrix(
            "Payload a second",
            "Received, before compression and encryption, mean of the good trials.",
            "Bps",
            _mean(_BY, "throughput_bytes_per_second"),
            "payload_size",
        ),
        share_bars(
            "CPU of the broker",
            "As a share of one core, mean. From 80 % of a core on, a broker of one thread is the limit.",
            _mean("server_class", "cpu_ratio"),
            _CLASS,
        ),
        share_bars(
            "CPU of the broker's node",
            "Share of CPU time that it was busy, mean.",
            mean("server_class", "tierbench_server_cpu_ratio", _LEVELS),
            _CLASS,
        ),
    )


def _losses() -> Panels:
    return (
        bars(
            "Lost messages",
            "Share of the messages sent that were never received, over all counted trials.",
            "percentunit",
            _lost("lost"),
            _CLASS,
        ),
        over_time(
            "Broken promises and copies",
            "Shares of the messages sent: acknowledged by the broker but never received, received more than once, and "
            "sent again.",
            "percentunit",
            query(_lost("acknowledged_lost"), "{{server_class}}, acknowledged and lost"),
            query(_lost("duplicated"), "{{server_class}}, duplicated"),
            query(_lost("retried"), "{{server_class}}, sent again"),
        ),
        over_time(
            "Received and late",
            "Shares of the messages sent. Late: sent later than intended, because the client could not keep the pace.",
            "percentunit",
            query(_lost("received"), "{{server_class}}, received"),
            query(_lost("late"), "{{server_class}}, late"),
        ),
        over_time(
            "Reconnects and errors",
            "Over all counted trials.",
            "short",
            query(_total("reconnects"), "{{server_class}}, reconnects"),
            query(_total("errors"), "{{server_class}}, errors"),
        ),
    )


def _costs() -> Panels:
    return (
        matrix(
            "Bytes on the wire",
            "Of all connections, both ways, headers included, in a trial, mean.",
            "bytes",
            _mean(_BY, "wire_bytes"),
            "payload_size",
        ),
        over_time(
            "Bytes on the wire a second",
            "Of all connections, both ways, headers included, over the whole session, mean.",
            "Bps",
            query(_mean("server_class", "wire_throughput_bytes_per_second"), "{{server_class}}"),
        ),
        matrix(
            "Payload after compression and encryption",
            "As a share of before, mean. Above 100 % it grew.",
            "percentunit",
            _mean(_BY, "encoded_ratio"),
            "payload_size",
        ),
        over_time(
            "Connecting",
            "From the start of a connection to the broker's consent, TLS left out, mean.",
            "s",
            query(_mean("server_class", "connect_seconds"), _CLASS),
        ),
        over_time(
            "Acknowledgement",
            "From handing a message over to the broker's acknowledgement, mean; empty where none is asked for.",
            "s",
            query(_mean("server_class, broker", "acknowledge_mean_seconds"), "{{server_class}}, {{broker}}"),
        ),
        over_time(
            "Messages in a batch",
            "Of Kafka: sent together, mean.",
            "short",
            query(_mean("server_class, broker", "batch_messages"), "{{server_class}}, {{broker}}"),
        ),
        over_time(
            "Bytes of a batch",
            "Of Kafka: as sent, after its own compression, mean.",
            "bytes",
            query(_mean("server_class, broker", "batch_bytes"), "{{server_class}}, {{broker}}"),
        ),
        over_time(
            "TLS handshake",
            "Of a connection, mean; empty if no case uses TLS.",
            "s",
            query(_mean("server_class, tls", "tls_handshake_seconds"), "{{server_class}}, {{tls}}"),
        ),
    )
