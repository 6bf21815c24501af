"""NodeNetwork: what the preflight found of the network between two nodes before the cases of a run."""

from typing import Annotated, Final

from pydantic import Field

from tierbench.api.contract import Count, Echoes, Nanoseconds, Reason
from tierbench.api.model import Model, Stored

MAXIMUM_PAIRS: Final = 64


class EchoSpread(Echoes):
    """Echo requests, with percentiles of their round trips."""

    p50_nanoseconds: Nanoseconds | None = Field(default=None, description="Median.")
    p90_nanoseconds: Nanoseconds | None = Field(default=None, description="90th percentile.")
    p99_nanoseconds: Nanoseconds | None = Field(default=None, description="99th percentile.")


class Way(Model):
    """What one connection of TCP carried one way."""

    bits_per_second: Count = Field(description="Payload that the receiver got, a second.")
    retransmits: Count = Field(default=0, description="Segments that the sender sent again.")


class NodeNetwork(Stored):
    """The network between a server's and a client's node, each way by itself, and nothing else on the way."""

    server_node: str = Field(max_length=253, description="The server's node.")
    client_node: str = Field(max_length=253, description="The client's.")
    server_access_network: str = Field(default="", max_length=63, description="As the server's NodeClass says.")
    client_access_network: str = Field(default="", max_length=63, description="As the client's NodeClass says.")
    ping: EchoSpread | None = Field(default=None, description="Echo requests before the load.")
    upload: Way | None = Field(default=None, description="From client to server.")
    download: Way | None = Field(default=None, description="From server to client.")
    reason: Reason | None = Field(default=None, description="Why something is missing, as one CamelCase word.")
    message: Annotated[str, Field(max_length=512)] | None = Field(
        default=None, description="The same for a person, and what to do next."
    )
