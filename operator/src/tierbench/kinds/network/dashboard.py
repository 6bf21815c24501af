"""The dashboard of networks: rates by direction, shares of clients, losses of TCP and UDP, and round trips."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.panels import KindPanels, Panels, Topic, bars, board, parts, result_variables
from tierbench.generate.dashboards.queries import Results
from tierbench.kinds.network.metrics import CLIENT, INCREASE, MEANS, PREFIX, UNTRIMMED

_RESULTS: Final = Results("NetworkBenchmark", row="direction")
_PANELS: Final = KindPanels(_RESULTS, PREFIX, (*MEANS.values(), *UNTRIMMED.values(), INCREASE))
_DOCUMENT: Final = "explanation/networks.md"


def dashboard() -> Dashboard:
    """Returns the dashboard of NetworkBenchmarks."""
    text = "The throughput, losses and delays of the network between node classes."
    topics = (
        Topic("Rates", _DOCUMENT, "Throughput", _rates()),
        Topic("Clients at once", _DOCUMENT, "Clients at once", _shares()),
        Topic("TCP", _DOCUMENT, "TCP over time", _tcp()),
        Topic("UDP", _DOCUMENT, "UDP", _udp()),
        Topic("Echo requests", _DOCUMENT, "Ping", _echoes()),
    )
    return board("networks", "Networks", text, result_variables(_RESULTS), topics)


def _rates() -> Panels:
    return (
        _PANELS.means("Throughput", "How much does the path carry?", "throughput_bits_per_second"),
        parts(
            "Throughput from run to run",
            "Has it changed, and do senders send more than arrives? Of the newest run that has ended: what receivers "
            "got, the same without trimming, and what senders sent. A step is a new run.",
            "bps",
            {
                "received": _PANELS.mean("throughput_bits_per_second"),
                "sent": _PANELS.mean("sent_bits_per_second"),
                "untrimmed": _PANELS.mean("untrimmed_throughput_bits_per_second"),
            },
        ),
        parts(
            "Both directions at once",
            "How much does each direction carry if both are used? Payload per second of each.",
            "bps",
            {
                "upload": _PANELS.mean("upload_bits_per_second"),
                "download": _PANELS.mean("download_bits_per_second"),
            },
        ),
        _PANELS.shares(
            "CPU of the iperf3 server",
            "Was iperf3 the limit?",
            "server_process_cpu_ratio",
            "Near 100%, iperf3 limits the rate.",
        ),
    )


def _shares() -> Panels:
    return (
        bars(
            "What each of several clients got",
            f"How did clients that measured at the same time share the path? {CLIENT.text}",
            "bps",
            _RESULTS.mean(CLIENT.name, by=f"client, share_node, share_class, {_RESULTS.row}, ${{by:csv}}"),
        ),
        _PANELS.shares("Fairness between clients", "Does each client get the same?", "fairness_ratio"),
    )


def _tcp() -> Panels:
    return (
        _PANELS.bars("TCP segments retransmitted", "How much does TCP lose on the path?", "tcp_retransmits"),
        _PANELS.shares("TCP not in state Open", "How long did TCP hold back?", "tcp_not_open_ratio"),
    )


def _udp() -> Panels:
    return (
        _PANELS.bars("UDP packets lost", "How much does UDP lose on the path?", "udp_lost_ratio"),
        _PANELS.bars("Jitter of UDP", "How evenly do packets arrive?", "udp_jitter_seconds"),
    )


def _echoes() -> Panels:
    return (
        parts(
            "Round trip of echo requests",
            "How long is the path? Shortest, mean and longest round trip of a trial, mean over the good trials, and "
            "the 99th percentile of all.",
            "s",
            {
                "shortest": _PANELS.mean("ping_min_seconds"),
                "mean": _PANELS.mean("ping_mean_seconds"),
                "longest": _PANELS.mean("ping_max_seconds"),
                "99th percentile": _RESULTS.quantile(0.99, f"{PREFIX}_ping_seconds"),
            },
        ),
        parts(
            "Echo requests, idle and under load",
            "How much does a load delay what else uses the link? Mean round trip before the load and during it, and "
            "the difference.",
            "s",
            {
                "idle": _PANELS.mean("ping_mean_seconds"),
                "under load": _PANELS.mean("ping_under_load_mean_seconds"),
                "difference": _PANELS.mean("ping_increase_seconds"),
            },
        ),
        parts(
            "Round trip of echo requests under load",
            "How long does the path take while it is full? Shortest, mean and longest round trip of a trial, mean over "
            "the good trials, and the 99th percentile of all.",
            "s",
            {
                "shortest": _PANELS.mean("ping_under_load_min_seconds"),
                "mean": _PANELS.mean("ping_under_load_mean_seconds"),
                "longest": _PANELS.mean("ping_under_load_max_seconds"),
                "99th percentile": _RESULTS.quantile(0.99, f"{PREFIX}_ping_under_load_seconds"),
            },
        ),
        _PANELS.bars("Spread of echo requests", "How steady is the path?", "ping_stddev_seconds"),
        _PANELS.shares(
            "Echo requests that were not answered", "How many are lost while the network is idle?", "ping_lost_ratio"
        ),
        _PANELS.bars(
            "Spread of echo requests under load",
            "How steady is the path while it is full?",
            "ping_under_load_stddev_seconds",
        ),
        _PANELS.shares(
            "Echo requests that were not answered under load",
            "How many are lost while the network is full?",
            "ping_under_load_lost_ratio",
        ),
    )
