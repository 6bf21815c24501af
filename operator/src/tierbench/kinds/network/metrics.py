"""The Prometheus metrics of a NetworkBenchmark."""

from collections.abc import Mapping
from typing import Final

from tierbench.api.result import BenchmarkResult, Statistic
from tierbench.metrics.results import Samples, gauges, histogram, in_base_unit

FACTORS: Final = ("protocol", "direction", "streams", "clientMode", "congestionControl", "link")
PARAMETERS: Final = (
    "access",
    "durationSeconds",
    "udpKilobitsPerSecond",
    "pingIntervalMilliseconds",
    "pingSize",
    "pingUnderLoad",
    "simultaneousClients",
    "links",
)

HISTOGRAMS: Final = ("pingNanoseconds", "pingUnderLoadNanoseconds")

PREFIX: Final = "tierbench_network"
_gauge: Final = gauges(PREFIX)

PING: Final = histogram(
    f"{PREFIX}_ping_seconds",
    "Round trip of each answered echo request of the good trials.",
    range(-14, 5),  # 61 µs to 16 s
)
PING_UNDER_LOAD: Final = histogram(
    f"{PREFIX}_ping_under_load_seconds",
    "Round trip of each answered echo request during the load of the good trials.",
    range(-14, 5),
)
UNTRIMMED: Final = {
    "throughputBitsPerSecond": _gauge(
        "untrimmed_throughput_bits_per_second",
        "Payload per second that receivers got, mean of all good trials, if some were trimmed.",
    )
}
CLIENT: Final = _gauge(
    "client_throughput_bits_per_second",
    "Payload per second that one of several clients got that measured at the same time, mean.",
)
INCREASE: Final = _gauge(
    "ping_increase_seconds", "How much longer the mean round trip of echo requests is under load than before it."
)
MEANS: Final = {
    "throughputBitsPerSecond": _gauge(
        "throughput_bits_per_second", "Payload per second that receivers got, in both directions together, mean."
    ),
    "sentBitsPerSecond": _gauge(
        "sent_bits_per_second", "Payload per second that senders sent, in both directions together, mean."
    ),
    "uploadBitsPerSecond": _gauge(
        "upload_bits_per_second", "Payload per second from client to server, if both directions were used, mean."
    ),
    "downloadBitsPerSecond": _gauge(
        "download_bits_per_second", "Payload per second from server to client, if both directions were used, mean."
    ),
    "fairnessPartsPerMillion": _gauge(
        "fairness_ratio",
        "Jain's index of simultaneous clients: 1 if all got the same, 1/n if one of n got everything, mean.",
    ),
    "retransmits": _gauge("tcp_retransmits", "TCP segments that senders retransmitted in a trial, mean."),
    "tcpNotOpenPartsPerMillion": _gauge(
        "tcp_not_open_ratio",
        "Share of samples in which TCP's congestion state was not Open, because of losses or a slowdown, mean.",
    ),
    "lostPartsPerMillion": _gauge("udp_lost_ratio", "Share of UDP packets that were lost, mean."),
    "jitterNanoseconds": _gauge("udp_jitter_seconds", "Deviation of the transit time of UDP packets (RFC 3550), mean."),
    "pingNanoseconds": _gauge("ping_mean_seconds", "Round trip of echo requests, mean."),
    "pingMinNanoseconds": _gauge("ping_min_seconds", "Shortest round trip of a trial's echo requests, mean."),
    "pingMaxNanoseconds": _gauge("ping_max_seconds", "Longest round trip of a trial's echo requests, mean."),
    "pingStandardDeviationNanoseconds": _gauge(
        "ping_stddev_seconds", "Standard deviation of a trial's echo requests, mean."
    ),
    "pingLostPartsPerMillion": _gauge("ping_lost_ratio", "Share of echo requests that were not answered, mean."),
    "pingUnderLoadNanoseconds": _gauge(
        "ping_under_load_mean_seconds", "Round trip of echo requests during the load, mean."
    ),
    "pingUnderLoadMinNanoseconds": _gauge(
        "ping_under_load_min_seconds", "Shortest round trip of a trial's echo requests during the load, mean."
    ),
    "pingUnderLoadMaxNanoseconds": _gauge(
        "ping_under_load_max_seconds", "Longest round trip of a trial's echo requests during the load, mean."
    ),
    "pingUnderLoadStandardDeviationNanoseconds": _gauge(
        "ping_under_load_stddev_seconds", "Standard deviation of a trial's echo requests during the load, mean."
    ),
    "pingUnderLoadLostPartsPerMillion": _gauge(
        "ping_under_load_lost_ratio", "Share of echo requests during the load that were not answered, mean."
    ),
    "iperf3CpuPartsPerMillion": _gauge(
        "server_process_cpu_ratio", "CPU of the iperf3 server, as a share of one core, mean."
    ),
}


def add(samples: Samples, result: BenchmarkResult) -> None:
    """Adds the metrics that only networks have."""
    status = result.status
    samples.add_histogram(PING, status.histograms.get("pingNanoseconds"))
    samples.add_histogram(PING_UNDER_LOAD, status.histograms.get("pingUnderLoadNanoseconds"))
    samples.add_means(MEANS, status.statistics)
    samples.add_means(UNTRIMMED, status.untrimmed)
    samples.add(INCREASE, _increase(status.statistics))
    for number, node in enumerate(result.spec.clients, start=1):
        value = status.statistics.get(f"client{number}BitsPerSecond")
        more = {"client": str(number), "share_class": node.node_class, "share_node": node.node}
        samples.add(CLIENT, None if value is None else value.mean, more)


def _increase(statistics: Mapping[str, Statistic]) -> float | None:
    idle, loaded = statistics.get("pingNanoseconds"), statistics.get("pingUnderLoadNanoseconds")
    if idle is None or loaded is None:
        return None
    return in_base_unit("pingNanoseconds", loaded.mean - idle.mean)
