"""Metrics of the network that a preflight has measured: of each pair of nodes, not of each result."""

from typing import Final

from tierbench.api.measurements import NodeNetwork
from tierbench.metrics.family import Samples, gauge
from tierbench.results.nodes import network_quantities

_PREFIX: Final = "tierbench_preflight"
_FAMILIES: Final = {
    "uploadBitsPerSecond": (
        gauge(f"{_PREFIX}_upload_bits_per_second", "Payload a second from client to server before the first case."),
        1,
    ),
    "downloadBitsPerSecond": (
        gauge(f"{_PREFIX}_download_bits_per_second", "Payload a second from server to client before the first case."),
        1,
    ),
    "pingNanoseconds": (
        gauge(f"{_PREFIX}_ping_mean_seconds", "Round trip of echo requests before the first case, mean."),
        1e9,
    ),
    "pingLostPartsPerMillion": (
        gauge(f"{_PREFIX}_ping_lost_ratio", "Share of echo requests before the first case that were not answered."),
        1e6,
    ),
}


def add(samples: Samples, network: NodeNetwork) -> None:
    """What is known of one pair."""
    nodes = {"server_node": network.server_node, "client_node": network.client_node}
    known = network_quantities(network)
    for name, (family, divisor) in _FAMILIES.items():
        samples.add(family, known[name] / divisor if name in known else None, nodes)
