"""The preflight: the network between the very nodes before the first case, for benchmarks of a service."""

from typing import Final

from pydantic import Field

from tierbench.api.benchmark import BenchmarkSpec
from tierbench.api.model import Model, Rule
from tierbench.api.node_network import MAXIMUM_PAIRS

NODES: Final = "(has(self.servers) ? size(self.servers.nodeClasses) * self.servers.nodesPerClass : 0)"
"""How many nodes host the service, in CEL."""


class Ping(Model):
    """Echo requests before the load of each trial, while nothing else is on the way."""

    count: int = Field(default=10, ge=0, le=1000, description="How many; 0 for none.")
    interval_milliseconds: int = Field(default=200, ge=2, le=60000, description="From one to the next.")
    size: int = Field(default=56, ge=16, le=65000, description="Bytes of payload in each, as ping counts them.")


class Preflight(Model):
    """How the network between two nodes is measured before the first case."""

    duration_seconds: int = Field(default=3, ge=1, le=60, description="How long TCP is sent each way.")
    ping: Ping = Field(default=Ping(), description="Echo requests before that.")


class ServiceSpec(BenchmarkSpec):
    """What the spec of every kind has that measures a service, and not the network itself."""

    preflight: Preflight | None = Field(
        default=None,
        description="Measures the network between each server's and each client's node once a run, before the first "
        "case, so that every result carries the network that it ran on. Without it nothing is known of the network; "
        "write {} for three seconds each way and ten echo requests.",
    )


def bounded_pairs(clients: str) -> Rule:
    """The rule that a preflight fits the status; `clients` is how many nodes use each server, in CEL."""
    return Rule(
        f"!has(self.preflight) || {NODES} * ({clients}) <= {MAXIMUM_PAIRS}",
        f"preflight would measure between more than {MAXIMUM_PAIRS} pairs of nodes: take it out, or name fewer classes",
    )
