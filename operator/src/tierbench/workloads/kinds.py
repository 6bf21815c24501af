"""What each kind of benchmark deploys."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from tierbench.api.benchmark import BenchmarkSpec
from tierbench.api.policy import Policy
from tierbench.kinds.registry import kind_modules
from tierbench.workloads.names import Owner
from tierbench.workloads.workload import Images, Workload


class WorkloadModule(Protocol):
    """What a kind's module in this package has."""

    WORKLOAD: Callable[[Owner, Any, Images, Policy], Workload]


_KINDS: Final[Mapping[str, WorkloadModule]] = kind_modules("workload")


def workload_of(owner: Owner, spec: BenchmarkSpec, images: Images, policy: Policy) -> Workload:
    """What a benchmark deploys."""
    return _KINDS[owner.kind].WORKLOAD(owner, spec, images, policy)
