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

_PREFIX: Final = "tierbench_network"

PING: Final = histogram(
    f"{_PREFIX}_ping_seconds",
    "Round trip of each answered echo request of the good trials.",
    range(-14, 5),  # 61 µs to 16 s
)
_UNTRIMMED: Final = {
    "throughputBitsPerSecond": gauge(
        f"{_PREFIX}_untrimmed_throughput_bits_per_second",
        "Payload per second that receivers got, mean of all good trials, if some were trimmed.",
    )
}
CLIENT: Final = gauge(
    f"{_PREFIX}_client_throughput_bits_per_second",
    "Payload per second that one of several clients got that measured at the same time, mean.",
)
_MEANS: Final = {
    "throughputBitsPerSecond": gauge(
        f"{_PREFIX}_throughput_bits_per_second",
        "Payload per second that receivers got, in both directions together, mean.",
    ),
    "sentBitsPerSecond": gauge(
        f"{_PREFIX}_sent_bits_per_second", "Payload per second that senders sent, in both directions together, mean."
    ),
    "uploadBitsPerSecond": gauge(
        f"{_PREFIX}_upload_bits_per_second",
        "Payload per second from client to server, if both directions were used, mean.",
    ),
    "downloadBitsPerSecond": gauge(
        f"{_PREFIX}_download_bits_per_second",
        "Payload per second from server to client, if both directions were used, mean.",
    ),
    "fairnessPartsPerMillion": gauge(
        f"{_PREFIX}_fairness_ratio", "Jain's index of clients that measured at the same time: 1 for even shares, mean."
    ),
    "retransmits": gauge(f"{_PREFIX}_tcp_retransmits", "TCP segments that senders retransmitted in a trial, mean."),
    "tcpNotOpenPartsPerMillion": gauge(
        f"{_PREFIX}_tcp_not_open_ratio", "Share of samples in which TCP's congestion state was not Open, mean."
    ),
    "lostPartsPerMillion": gauge(f"{_PREFIX}_udp_lost_ratio", "Share of UDP packets that were lost, mean."),
    "jitterNanoseconds": gauge(f"{_PREFIX}_udp_jitter_seconds", "Jitter of UDP (RFC 3550), mean."),
    "pingNanoseconds": gauge(f"{_PREFIX}_ping_mean_seconds", "Round trip of echo requests, mean."),
    "pingMinimumNanoseconds": gauge(
        f"{_PREFIX}_ping_minimum_seconds", "Shortest round trip of a trial's echo requests, mean."
    ),
    "pingMaximumNanoseconds": gauge(
        f"{_PREFIX}_ping_maximum_seconds", "Longest round trip of a trial's echo requests, mean."
    ),
    "pingStandardDeviationNanoseconds": gauge(
        f"{_PREFIX}_ping_stddev_seconds", "Standard deviation of a trial's echo requests, mean."
    ),
    "pingLostPartsPerMillion": gauge(
        f"{_PREFIX}_ping_lost_ratio", "Share of echo requests that were not answered, mean."
    ),
    "iperf3CpuPartsPerMillion": gauge(
        f"{_PREFIX}_server_process_cpu_ratio", "CPU of the iperf3 server, as a share of one core, mean."
    ),
}


def add(samples: Samples, result: BenchmarkResult) -> None:
    """Adds the metrics that only networks have."""
    status = result.status
    echoes = status.distributions.ping
    if echoes is not None:
        samples.add_histogram(PING, partial(count_up_to, echoes), echoes.count, echoes.sum_nanoseconds)
    samples.add_means(_MEANS, status.statistics)
    samples.add_means(_UNTRIMMED, status.untrimmed)
    for number, node in enumerate(result.spec.clients, start=1):
        value = status.statistics.get(f"client{number}BitsPerSecond")
        more = {"client": str(number), "share_class": node.node_class, "share_node": node.node}
        samples.add(CLIENT, None if value is None else value.mean, more)
