"""The kinds of benchmark that there are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tierbench.api.benchmark import Benchmark
from tierbench.api.broker import BrokerBenchmark
from tierbench.api.file_transfer import FileTransferBenchmark
from tierbench.api.network import NetworkBenchmark
from tierbench.workloads.broker import BrokerWorkload
from tierbench.workloads.file_transfer import FileTransfer
from tierbench.workloads.names import Owner
from tierbench.workloads.network import NetworkWorkload
from tierbench.workloads.workload import Images, Workload


@dataclass(frozen=True)
class BenchmarkKind:
    """How objects of a kind are read, and what they deploy."""

    model: type[Benchmark]
    workload: Callable[[Owner, Any, Images], Workload]

    def bind(self, raw: Mapping[str, Any], owner: Owner, images: Images) -> tuple[Benchmark, Workload]:
        """One object of the kind."""
        benchmark = self.model.model_validate(raw)
        return benchmark, self.workload(owner, benchmark.spec, images)


KINDS: Final[Mapping[str, BenchmarkKind]] = {
    FileTransferBenchmark.KIND.kind: BenchmarkKind(FileTransferBenchmark, FileTransfer),
    BrokerBenchmark.KIND.kind: BenchmarkKind(BrokerBenchmark, BrokerWorkload),
    NetworkBenchmark.KIND.kind: BenchmarkKind(NetworkBenchmark, NetworkWorkload),
}
