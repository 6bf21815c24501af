"""The dashboard of networks: rates by direction, shares of clients, losses of TCP and UDP, and round trips."""

from typing import Final

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

_PREFIX: Final = "tierbench_network"
_ROW: Final = "direction"
_RESULTS: Final = Results("NetworkBenchmark", _ROW)
_DOCUMENT: Final = "concepts/networks.md"
_DEVICE: Final = "device"


def dashboard() -> Dashboard:
    """Returns the dashboard of NetworkBenchmarks."""
    text = "What the network between node classes carries, and its losses and delays."
    topics = (
        Topic("Rates", _DOCUMENT, "Throughput", _rates()),
        Topic("Clients at once", _DOCUMENT, "Clients at once", _shares()),
        Topic("TCP", _DOCUMENT, "TCP over time", _tcp()),
        Topic("UDP", _DOCUMENT, "UDP", _udp()),
        Topic("Echo requests", _DOCUMENT, "Ping", _echoes()),
    )
    return board("networks", "Networks", text, result_variables(_RESULTS), topics)


def _mean(metric: str) -> str:
    return _RESULTS.mean(f"{_PREFIX}_{metric}")


def _rates() -> Panels:
    return (
        matrix(
            "Throughput",
            "How much does the path carry? Payload that receivers got, mean of the good trials. Both: the two "
            "directions together.",
            "bps",
            _mean("throughput_bits_per_second"),
            _ROW,
        ),
        over_time(
            "Throughput from run to run",
            "Has it changed, and do senders send more than arrives? Of the newest run that has ended: what receivers "
            "got, the same without trimming, and what senders sent. A step is a new run.",
            "bps",
            query(part("received", _mean("throughput_bits_per_second"))),
            query(part("sent", _mean("sent_bits_per_second"))),
            query(part("untrimmed", _mean("untrimmed_throughput_bits_per_second"))),
        ),
        over_time(
            "Both directions at once",
            "How much does each direction carry if both are used? Payload per second of each.",
            "bps",
            query(part("upload", _mean("upload_bits_per_second"))),
            query(part("download", _mean("download_bits_per_second"))),
        ),
        share_bars(
            "CPU of the iperf3 server",
            "Was iperf3 the limit? CPU of its server as a share of one core, mean. Near 100%, iperf3 limits the rate.",
            _mean("server_process_cpu_ratio"),
        ),
    )


def _of_devices(name: str, expression: str, node: str) -> str:
    """Returns rates by client, without the labels of its class and its network."""
    for label in ("client_class", "client_access_network"):
        expression = f'label_replace({expression}, "{label}", "each", "", "")'
    named = f'label_join({expression}, "{_DEVICE}", "", "{node}")'
    return part(name, f"avg by ({_DEVICE}, {_ROW}, ${{by:csv}}) ({named})")


def _shares() -> Panels:
    alone = _RESULTS.lacking(f"{_PREFIX}_throughput_bits_per_second", f"{_PREFIX}_fairness_ratio")
    at_once = _RESULTS.measured(f"{_PREFIX}_client_throughput_bits_per_second")
    both = f"{_of_devices('alone', alone, 'client_node')} or {_of_devices('at once', at_once, 'share_node')}"
    return (
        grouped_bars(
            "Each client alone, and all at once",
            "What does each device get alone, and with the others? Payload per second, mean of the good trials.",
            "bps",
            columns(f"({both})", "part", _ROW),
            _DEVICE,
            "compared",
        ),
        bars(
            "What each of several clients got",
            "How did clients that measured at the same time share the path? Payload per second of each, mean of the "
            "good trials.",
            "bps",
            _RESULTS.mean(
                f"{_PREFIX}_client_throughput_bits_per_second",
                by=f"client, share_node, share_class, {_ROW}, ${{by:csv}}",
            ),
        ),
        share_bars(
            "Fairness between clients",
            "Does each client get the same? Jain's index: 100% if all do, and 1/n if one of n gets everything.",
            _mean("fairness_ratio"),
        ),
    )


def _tcp() -> Panels:
    return (
        bars(
            "TCP segments retransmitted",
            "How much does TCP lose on the path? Segments retransmitted per trial, mean.",
            "short",
            _mean("tcp_retransmits"),
        ),
        share_bars(
            "TCP not in state Open",
            "How long did TCP hold back? Share of samples in which the sender's congestion control had lost data or "
            "was slowed down.",
            _mean("tcp_not_open_ratio"),
        ),
    )


def _udp() -> Panels:
    return (
        bars(
            "UDP packets lost",
            "How much does UDP lose on the path? Share of the sent packets, mean.",
            "percentunit",
            _mean("udp_lost_ratio"),
        ),
        bars(
            "Jitter of UDP",
            "How evenly do packets arrive? Mean deviation of the transit time (RFC 3550).",
            "s",
            _mean("udp_jitter_seconds"),
        ),
    )


def _echoes() -> Panels:
    return (
        over_time(
            "Round trip of echo requests",
            "How long is the path? Shortest, mean and longest round trip of a trial, mean over the good trials, and "
            "the 99th percentile of all.",
            "s",
            query(part("shortest", _mean("ping_minimum_seconds"))),
            query(part("mean", _mean("ping_mean_seconds"))),
            query(part("longest", _mean("ping_maximum_seconds"))),
            query(part("99th percentile", _RESULTS.quantile(0.99, f"{_PREFIX}_ping_seconds"))),
        ),
        bars(
            "Spread of echo requests",
            "How steady is the path? Standard deviation within a trial, mean.",
            "s",
            _mean("ping_stddev_seconds"),
        ),
        share_bars(
            "Echo requests that were not answered",
            "How many are lost while the network is idle? Share of the sent requests, mean.",
            _mean("ping_lost_ratio"),
        ),
    )
