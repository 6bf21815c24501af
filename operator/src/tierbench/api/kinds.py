"""Every kind that tierbench serves: a new one is one line here."""

from typing import Final

from tierbench.api.benchmark import Benchmark
from tierbench.api.broker import BrokerBenchmark
from tierbench.api.file_transfer import FileTransferBenchmark
from tierbench.api.model import Resource
from tierbench.api.network import NetworkBenchmark
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.api.trace import BenchmarkTrace

BENCHMARKS: Final[tuple[type[Benchmark], ...]] = (FileTransferBenchmark, BrokerBenchmark, NetworkBenchmark)
KINDS: Final[tuple[type[Resource], ...]] = (NodeClass, *BENCHMARKS, BenchmarkResult, BenchmarkTrace, PlacementAdvice)
