"""What all loops share."""

import asyncio
from dataclasses import dataclass, field

from tierbench.controller.settings import Settings
from tierbench.controller.wakeups import Queue, Wakeups
from tierbench.domain.eviction import StorageUsage
from tierbench.domain.results import ResultStore
from tierbench.kube.cache import Objects
from tierbench.kube.client import Kube
from tierbench.kube.cluster import ClusterView
from tierbench.metrics.family import Samples
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.results import result_samples


@dataclass(frozen=True)
class Context:
    """One operator."""

    kube: Kube
    settings: Settings
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)
    results: ResultStore[Samples] = field(default_factory=lambda: ResultStore(result_samples))
    storage_usage: StorageUsage = field(default_factory=StorageUsage)
    objects: Objects = field(default_factory=Objects)
    cluster: ClusterView = field(default_factory=ClusterView)
    wakeups: Wakeups = field(default_factory=Wakeups)
    queue: Queue = field(default_factory=Queue)
    classes_changed: asyncio.Event = field(default_factory=asyncio.Event)
    definitions_in_doubt: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a write was refused that only other definitions than those that are known would refuse."""
