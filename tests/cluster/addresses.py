"""Addresses of a cluster, from 198.18.0.0/15, the range for benchmarks of network devices (RFC 2544).

Cluster c of this machine (0 to 15) has 198.18.c.0/24 for its machines, and 198.19.(16 c + node).0/24 for the pods of
each node. All clusters use the same range for Services, which only their own machines see.
"""

import json
import re
from dataclasses import dataclass

from tests.cluster.errors import ClusterError
from tests.cluster.processes import output

MOST_CLUSTERS = 16
SERVICES = "198.18.64.0/20"
FIRST_SERVICE = "198.18.64.1"


@dataclass(frozen=True)
class Addresses:
    """The addresses of cluster `number`; nodes count from 0."""

    number: int

    @property
    def control_plane(self) -> str:
        return f"198.18.{self.number}.1"

    @property
    def host(self) -> str:
        return f"198.18.{self.number}.254"

    @staticmethod
    def station(address: str) -> str:
        """Returns the Ethernet address for an IP address, so that a machine keeps it when it restarts."""
        return ":".join(["02", "00", *(f"{int(part):02x}" for part in address.split("."))])

    @property
    def interface(self) -> str:
        """Returns the host's network interface at the cluster's switch."""
        return f"tierbench{self.number}"

    @property
    def pods(self) -> str:
        """Returns the range of all pods of the cluster."""
        return f"198.19.{16 * self.number}.0/20"

    def node(self, index: int) -> str:
        return f"198.18.{self.number}.{10 + index}"

    def node_pods(self, index: int) -> str:
        return f"198.19.{16 * self.number + index}.0/24"


def first_free() -> Addresses:
    """Returns the first cluster number whose network interface and addresses this machine does not use."""
    taken = {
        int(match[1]) for match in re.finditer(r"198\.18\.(\d+)\.", output("ip", "-4", "route", "show", "table", "all"))
    }
    names = {link["ifname"] for link in json.loads(output("ip", "-json", "link"))}
    for number in range(MOST_CLUSTERS):
        addresses = Addresses(number)
        if number not in taken and addresses.interface not in names:
            return addresses
    raise ClusterError(f"{MOST_CLUSTERS} clusters are up, or 198.18.0.0/20 is in use; take one down")
