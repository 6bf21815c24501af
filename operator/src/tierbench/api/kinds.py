"""Every kind that tierbench serves."""

from typing import Final

from tierbench.api.model import Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.api.trace import BenchmarkTrace
from tierbench.kinds.registry import BENCHMARKS

KINDS: Final[tuple[type[Resource], ...]] = (
    NodeClass,
    *BENCHMARKS.values(),
    BenchmarkResult,
    BenchmarkTrace,
    PlacementAdvice,
)
