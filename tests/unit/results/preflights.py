"""Results of preflights, for tests."""

from typing import Any

from tierbench.api.measurements import NodeNetwork
from tierbench.api.result import BenchmarkResult


def node_network(server: str = "cloud-1", client: str = "user-1", down: int = 80_000_000, **more: Any) -> NodeNetwork:
    """90 Mbit/s up, and ten echo requests of half a millisecond, one of which was not answered."""
    ping = {"sent": 10, "received": 9, "minNanoseconds": 400_000, "meanNanoseconds": 500_000}
    body = {
        "serverNode": server,
        "clientNode": client,
        "clientAccessNetwork": "lte",
        "ping": {**ping, "p99Nanoseconds": 700_000},
        "upload": {"bitsPerSecond": 90_000_000, "retransmits": 3},
        "download": {"bitsPerSecond": down, "retransmits": 4},
        **more,
    }
    return NodeNetwork.model_validate({key: value for key, value in body.items() if value is not None})


def blocked(server: str = "jetson-1") -> NodeNetwork:
    """A network that let nothing through."""
    message = "no route: see network policies."
    return node_network(server, ping=None, upload=None, download=None, reason="ServerUnreachable", message=message)


def with_networks(result: BenchmarkResult, *networks: NodeNetwork) -> BenchmarkResult:
    """Returns the result, with the networks that it ran on."""
    return result.model_copy(update={"spec": result.spec.model_copy(update={"networks": networks})})
