"""The Prometheus metrics of a NetworkBenchmark."""

from typing import Final

from tierbench.api.result import BenchmarkResult
from tierbench.metrics.family import Family, Samples, gauge, label_text
from tierbench.stats import histogram

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
# Powers of two of a second, 61 µs to 16 s.
_BOUNDS: Final = tuple(2.0**exponent for exponent in range(-14, 5))
_BOUNDS_NANOSECONDS: Final = tuple(round(bound * 1e9) for bound in _BOUNDS)
_BUCKETS: Final = tuple("," + label_text({"le": bound}) for bound in (*map(repr, _BOUNDS), "+Inf"))

PING: Final = Family(
    f"{_PREFIX}_ping_seconds", "histogram", "Round trip of each answered echo request of the good trials."
)
UNTRIMMED: Final = gauge(
    f"{_PREFIX}_untrimmed_throughput_bits_per_second",
    "Payload per second that receivers got, mean of all good trials, if some were trimmed.",
)
CLIENT: Final = gauge(
    f"{_PREFIX}_client_throughput_bits_per_second",
    "Payload per second that one of several clients got that measured at the same time, mean.",
)
_MEANS: Final = {
    "throughputBitsPerSecond": (
        gauge(
            f"{_PREFIX}_throughput_bits_per_second",
            "Payload per second that receivers got, in both directions together, mean.",
        ),
        1,
    ),
    "sentBitsPerSecond": (
        gauge(
            f"{_PREFIX}_sent_bits_per_second",
            "Payload per second that senders sent, in both directions together, mean.",
        ),
        1,
    ),
    "uploadBitsPerSecond": (
        gauge(
            f"{_PREFIX}_upload_bits_per_second",
            "Payload per second from client to server, if both directions were used, mean.",
        ),
        1,
    ),
    "downloadBitsPerSecond": (
        gauge(
            f"{_PREFIX}_download_bits_per_second",
            "Payload per second from server to client, if both directions were used, mean.",
        ),
        1,
    ),
    "fairnessPartsPerMillion": (
        gauge(
            f"{_PREFIX}_fairness_ratio",
            "Jain's index of clients that measured at the same time: 1 for even shares, mean.",
        ),
        1e6,
    ),
    "retransmits": (
        gauge(f"{_PREFIX}_tcp_retransmits", "TCP segments that senders retransmitted in a trial, mean."),
        1,
    ),
    "tcpNotOpenPartsPerMillion": (
        gauge(f"{_PREFIX}_tcp_not_open_ratio", "Share of samples in which TCP's congestion state was not Open, mean."),
        1e6,
    ),
    "lostPartsPerMillion": (gauge(f"{_PREFIX}_udp_lost_ratio", "Share of UDP packets that were lost, mean."), 1e6),
    "jitterNanoseconds": (gauge(f"{_PREFIX}_udp_jitter_seconds", "Jitter of UDP (RFC 3550), mean."), 1e9),
    "pingNanoseconds": (gauge(f"{_PREFIX}_ping_mean_seconds", "Round trip of echo requests, mean."), 1e9),
    "pingMinimumNanoseconds": (
        gauge(f"{_PREFIX}_ping_minimum_seconds", "Shortest round trip of a trial's echo requests, mean."),
        1e9,
    ),
    "pingMaximumNanoseconds": (
        gauge(f"{_PREFIX}_ping_maximum_seconds", "Longest round trip of a trial's echo requests, mean."),
        1e9,
    ),
    "pingStandardDeviationNanoseconds": (
        gauge(f"{_PREFIX}_ping_stddev_seconds", "Standard deviation of a trial's echo requests, mean."),
        1e9,
    ),
    "pingLostPartsPerMillion": (
        gauge(f"{_PREFIX}_ping_lost_ratio", "Share of echo requests that were not answered, mean."),
        1e6,
    ),
    "iperf3CpuPartsPerMillion": (
        gauge(f"{_PREFIX}_server_process_cpu_ratio", "CPU of the iperf3 server, as a share of one core, mean."),
        1e6,
    ),
}


def add(samples: Samples, result: BenchmarkResult) -> None:
    """Adds the metrics that only networks have."""
    status = result.status
    echoes = status.distributions.ping
    if echoes is not None:
        up_to = [histogram.count_up_to(echoes, bound) for bound in _BOUNDS_NANOSECONDS]
        samples.add_histogram(PING, _BUCKETS, [*up_to, echoes.count], echoes.sum_nanoseconds / 1e9)
    for quantity, (family, divisor) in _MEANS.items():
        value = status.statistics.get(quantity)
        samples.add(family, None if value is None else value.mean / divisor)
    for number, node in enumerate(result.spec.clients, start=1):
        value = status.statistics.get(f"client{number}BitsPerSecond")
        more = {"client": str(number), "share_class": node.node_class, "share_node": node.node}
        samples.add(CLIENT, None if value is None else value.mean, more)
    untrimmed = status.untrimmed.get("throughputBitsPerSecond")
    samples.add(UNTRIMMED, None if untrimmed is None else untrimmed.mean)
