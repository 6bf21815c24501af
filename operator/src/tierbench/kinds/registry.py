"""The kinds of benchmark. A new one is one line here: its modules are found in the folder of its name."""

from importlib import import_module
from typing import Any, Final

from pydantic.alias_generators import to_snake

from tierbench.api.benchmark import Benchmark
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.network.spec import NetworkBenchmark

BENCHMARKS: Final[dict[str, type[Benchmark]]] = {
    model.KIND.kind: model for model in (FileTransferBenchmark, BrokerBenchmark, NetworkBenchmark)
}


def kind_modules(part: str) -> dict[str, Any]:
    """This module of each kind. The folder of FileTransferBenchmark is `file_transfer`.

    Raises:
        ModuleNotFoundError: it has none of some kind.
    """
    return {
        kind: import_module(f"tierbench.kinds.{to_snake(kind.removesuffix('Benchmark'))}.{part}") for kind in BENCHMARKS
    }
