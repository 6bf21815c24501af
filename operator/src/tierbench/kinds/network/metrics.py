"""The Prometheus metrics of a NetworkBenchmark."""

from functools import partial
from typing import Final

from tierbench.api.result import BenchmarkResult
from tierbench.metrics.family import Samples, gauge, histogram
from tierbench.stats.histogram import count_up_to

FACTORS: Final = ("protocol", "direction", "streams", "together", "congestionControl")
PARAMETERS: Final = (
    "access",
    "durationSeconds",
    "udpKilobitsPerSecond",
    "pingIntervalMilliseconds",
    "pingSize",
    "simultaneousClients",
)

PREFIX: Final = "tierbench_network"

PING: Final = histogram(
    f"{PREFIX}_ping_seconds",
    "Round trip of each answered echo request of the good trials.",
    range(-14, 5),  # 61 µs to 16 s
)
UNTRIMMED: Final = {
    "throughputBitsPerSecond": gauge(
        f"{PREFIX}_untrimmed_throughput_bits_per_second",
        "Payload per second that receivers got, mean of all good trials, if some were trimmed.",
    )
}
CLIENT: Final = gauge(
    f"{PREFIX}_client_throughput_bits_per_second",
    "Payload per second that one of several clients got that measured at the same time, mean.",
)
MEANS: Final = {
    "throughputBitsPerSecond": gauge(
        f"{PREFIX}_throughput_bits_per_second",
        "Payload per second that receivers got, in both directions together, mean.",
    ),
    "sentBitsPerSecond": gauge(
        f"{PREFIX}_sent_bits_per_second", "Payload per second that senders sent, in both directions together, mean."
    ),
    "uploadBitsPerSecond": gauge(
        f"{PREFIX}_upload_bits_per_second",
        "Payload per second from client to server, if both directions were used, mean.",
    ),
    "downloadBitsPerSecond": gauge(
        f"{PREFIX}_download_bits_per_second",
        "Payload per second from server to client, if both directions were used, mean.",
    ),
    "fairnessPartsPerMillion": gauge(
        f"{PREFIX}_fairness_ratio",
        "Jain's index of simultaneous clients: 1 if all got the same, 1/n if one of n got everything, mean.",
    ),
    "retransmits": gauge(f"{PREFIX}_tcp_retransmits", "TCP segments that senders retransmitted in a trial, mean."),
    "tcpNotOpenPartsPerMillion": gauge(
        f"{PREFIX}_tcp_not_open_ratio",
        "Share of samples in which TCP's congestion state was not Open, because of losses or a slowdown, mean.",
    ),
    "lostPartsPerMillion": gauge(f"{PREFIX}_udp_lost_ratio", "Share of UDP packets that were lost, mean."),
    "jitterNanoseconds": gauge(
        f"{PREFIX}_udp_jitter_seconds", "Deviation of the transit time of UDP packets (RFC 3550), mean."
    ),
    "pingNanoseconds": gauge(f"{PREFIX}_ping_mean_seconds", "Round trip of echo requests, mean."),
    "pingMinimumNanoseconds": gauge(
        f"{PREFIX}_ping_minimum_seconds", "Shortest round trip of a trial's echo requests, mean."
    ),
    "pingMaximumNanoseconds": gauge(
        f"{PREFIX}_ping_maximum_seconds", "Longest round trip of a trial's echo requests, mean."
    ),
    "pingStandardDeviationNanoseconds": gauge(
        f"{PREFIX}_ping_stddev_seconds", "Standard deviation of a trial's echo requests, mean."
    ),
    "pingLostPartsPerMillion": gauge(
        f"{PREFIX}_ping_lost_ratio", "Share of echo requests that were not answered, mean."
    ),
    "iperf3CpuPartsPerMillion": gauge(
        f"{PREFIX}_server_process_cpu_ratio", "CPU of the iperf3 server, as a share of one core, mean."
    ),
}


def add(samples: Samples, result: BenchmarkResult) -> None:
    """Adds the metrics that only networks have."""
    status = result.status
    echoes = status.distributions.ping
    if echoes is not None:
        samples.add_histogram(PING, partial(count_up_to, echoes), echoes.count, echoes.sum_nanoseconds)
    samples.add_means(MEANS, status.statistics)
    samples.add_means(UNTRIMMED, status.untrimmed)
    for number, node in enumerate(result.spec.clients, start=1):
        value = status.statistics.get(f"client{number}BitsPerSecond")
        more = {"client": str(number), "share_class": node.node_class, "share_node": node.node}
        samples.add(CLIENT, None if value is None else value.mean, more)
