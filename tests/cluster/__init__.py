"""A real Kubernetes cluster on one Debian machine: several nodes, no VM, no registry.

Each machine of the cluster is a set of Linux namespaces (network, mounts, processes, host name) with process 1. The
control plane has one machine, which is also the switch, and each node has one. See README.md in this folder.
"""

from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError

__all__ = ["Cluster", "ClusterError"]
