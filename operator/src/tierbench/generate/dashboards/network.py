"""Networks: rates by class and direction, what TCP and UDP lost, and how long an echo takes."""

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from tierbench.generate.dashboards.board import Panels, board, label_variable, result_variables
from tierbench.generate.dashboards.panels import bars, matrix, over_time, query, share_bars
from tierbench.generate.dashboards.queries import mean, quantile, results

_PREFIX: Final = "tierbench_network"
_CLASSES: Final = "server_class, client_class"
_SHARE: Final = "share_class, share_node, client"
_PATH: Final = "{{client_class}} to {{server_class}}"
_LEVELS: Final = 'protocol=~"$protocol",direction=~"$direction"'


def dashboard() -> Dashboard:
    """Results of NetworkBenchmarks."""
    text = "What the network between classes of node carries, and what it costs on the way."
    rows = {"Rates": _rates(), "Clients at once": _shares(), "Losses": _losses(), "Echo requests": _echoes()}
    carried = results(f"{_PREFIX}_throughput_bits_per_second")
    variables = (
        *result_variables("NetworkBenchmark"),
        label_variable("protocol", "Protocol", carried),
        label_variable("direction", "Direction", carried),
    )
    return board("networks", "Networks", text, variables, rows)


def _mean(by: str, metric: str) -> str:
    return mean(by, f"{_PREFIX}_{metric}", _LEVELS)


def _rates() -> Panels:
    return (
        matrix(
            "Throughput by direction",
            "Payload that receivers got, mean of the good trials. Both: the two ways together.",
            "bps",
            _mean("direction, server_class", "throughput_bits_per_second"),
            "direction",
        ),
        matrix(
            "Throughput from each client class",
            "Payload that receivers got, mean of the good trials.",
            "bps",
            _mean("client_class, server_class", "throughput_bits_per_second"),
            "client_class",
        ),
        over_time(
            "Throughput from run to run",
            "Of the newest run that has ended: what receivers got, what it would be without trimming, and what senders "
            "sent. A step is a new run.",
            "bps",
            query(_mean(_CLASSES, "throughput_bits_per_second"), _PATH),
            query(_mean(_CLASSES, "sent_bits_per_second"), f"{_PATH}, sent"),
            query(_mean(_CLASSES, "untrimmed_throughput_bits_per_second"), f"{_PATH}, untrimmed"),
        ),
        over_time(
            "Both ways at once",
            "Each way's payload a second, where both were used at the same time.",
            "bps",
            query(_mean(_CLASSES, "upload_bits_per_second"), f"{_PATH}, upload"),
            query(_mean(_CLASSES, "download_bits_per_second"), f"{_PATH}, download"),
        ),
    )


def _shares() -> Panels:
    return (
        bars(
            "What each of several clients got",
            "Payload a second of each client that measured at once with others, mean of the good trials.",
            "bps",
            mean(_SHARE, f"{_PREFIX}_client_throughput_bits_per_second", _LEVELS, parts=_SHARE),
            "{{client}} {{share_node}} ({{share_class}})",
        ),
        share_bars(
            "How even the shares were",
            "Jain's index: 100 % where all clients got the same, and 1/n where one of n got everything.",
            _mean(_CLASSES, "fairness_ratio"),
            _PATH,
        ),
    )


def _losses() -> Panels:
    return (
        bars(
            "TCP segments sent again",
            "By the senders, in a trial, mean.",
            "short",
            _mean(_CLASSES, "tcp_retransmits"),
            _PATH,
        ),
        share_bars(
            "TCP not in state Open",
            "Share of samples in which the sender's congestion control was in another state: it had lost something, "
            "or was slowed down.",
            _mean(_CLASSES, "tcp_not_open_ratio"),
            _PATH,
        ),
        bars("UDP packets lost", "Share of those sent, mean.", "percentunit", _mean(_CLASSES, "udp_lost_ratio"), _PATH),
        bars(
            "Jitter of UDP",
            "Mean deviation of the transit time (RFC 3550).",
            "s",
            _mean(_CLASSES, "udp_jitter_seconds"),
            _PATH,
        ),
        share_bars(
            "CPU of the iperf3 server",
            "As a share of one core, mean. Near 100 % it was what was measured.",
            _mean(_CLASSES, "server_process_cpu_ratio"),
            _PATH,
        ),
    )


def _echoes() -> Panels:
    return (
        over_time(
            "Round trip of echo requests",
            "Shortest, mean and longest of a trial, mean over the good trials, and the 99th percentile of all of them.",
            "s",
            query(_mean(_CLASSES, "ping_minimum_seconds"), f"{_PATH}, shortest"),
            query(_mean(_CLASSES, "ping_mean_seconds"), f"{_PATH}, mean"),
            query(_mean(_CLASSES, "ping_maximum_seconds"), f"{_PATH}, longest"),
            query(quantile(0.99, _CLASSES, f"{_PREFIX}_ping_seconds", _LEVELS), f"{_PATH}, 99th percentile"),
        ),
        bars(
            "Spread of echo requests",
            "Standard deviation within a trial, mean.",
            "s",
            _mean(_CLASSES, "ping_stddev_seconds"),
            _PATH,
        ),
        share_bars(
            "Echo requests that were not answered",
            "Share of those sent, mean.",
            _mean(_CLASSES, "ping_lost_ratio"),
            _PATH,
        ),
    )
