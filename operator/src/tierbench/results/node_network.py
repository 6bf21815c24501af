"""The network between two nodes: read from a client's line, and said in words."""

from collections.abc import Sequence

from tierbench.api.contract import Histogram, TrialLine
from tierbench.api.measurements import EchoSpread, NodeNetwork, TcpRate
from tierbench.results.units import show
from tierbench.stats import histogram


def figures(known: NodeNetwork, line: TrialLine) -> NodeNetwork:
    """What is known, and what this trial adds."""
    network = line.network
    if network is None:
        return known
    found: dict[str, object] = {
        name: TcpRate(bits_per_second=flow.bits_per_second, retransmits=flow.retransmits or 0)
        for name, flow in (("upload", network.upload), ("download", network.download))
        if flow is not None
    }
    if network.ping is not None:
        percentiles = _percentiles(line.distributions.ping, network.ping.maximum_nanoseconds)
        found["ping"] = EchoSpread(**network.ping.model_dump(), **percentiles)
    return known.model_copy(update=found)


def _percentiles(found: Histogram | None, longest: int | None) -> dict[str, int]:
    """Of a histogram, whose last bucket may end beyond the longest."""
    if found is None or not found.count or longest is None:
        return {}
    shares = {"p50_nanoseconds": 0.5, "p90_nanoseconds": 0.9, "p99_nanoseconds": 0.99}
    return {name: min(round(histogram.quantile(found, share)), longest) for name, share in shares.items()}


def quantities(network: NodeNetwork) -> dict[str, float]:
    """What is known of it, each name ending with its unit."""
    ping = network.ping or EchoSpread()
    found = {
        "uploadBitsPerSecond": None if network.upload is None else network.upload.bits_per_second,
        "downloadBitsPerSecond": None if network.download is None else network.download.bits_per_second,
        "pingNanoseconds": ping.mean_nanoseconds,
        "pingLostPartsPerMillion": 1e6 * (ping.sent - ping.received) / ping.sent if ping.sent else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def worst(networks: Sequence[NodeNetwork]) -> dict[str, float]:
    """The same of several pairs: the lowest rates, the longest round trip, the most that was lost."""
    columns: dict[str, list[float]] = {}
    for network in networks:
        for name, value in quantities(network).items():
            columns.setdefault(name, []).append(value)
    return {name: (min if name.endswith("PerSecond") else max)(values) for name, values in columns.items()}


def in_words(network: NodeNetwork) -> str:
    """The network in a sentence: cloud-1 to user-1: 94.1 Mbit/s up, 93.9 Mbit/s down, ping 412 µs."""
    said = [
        f"{show('throughputBitsPerSecond', way.bits_per_second)} {name}"
        for way, name in ((network.upload, "up"), (network.download, "down"))
        if way is not None
    ]
    if network.ping is not None and network.ping.mean_nanoseconds is not None:
        said.append(f"ping {show('pingNanoseconds', network.ping.mean_nanoseconds)}")
    if network.reason is not None:
        said.append(f"not all is measured ({network.reason}): {network.message}")
    return f"{network.client_node} to {network.server_node}: {', '.join(said)}"
