"""A real Kubernetes cluster on one Debian machine: several nodes, no VM, no registry.

Each machine of the cluster is a set of Linux namespaces (network, mounts, processes, name) with a process 1 of its own:
one machine for the control plane, which is also the switch, and one a node. See README.md beside this file.
"""

from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError

__all__ = ["Cluster", "ClusterError"]
