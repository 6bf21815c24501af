"""The kinds of benchmark. A new one is one line here: modules of it in other packages are found by its name."""

from importlib import import_module
from typing import Any, Final

from pydantic.alias_generators import to_snake

from tierbench.api.benchmark import Benchmark
from tierbench.api.broker import BrokerBenchmark
from tierbench.api.file_transfer import FileTransferBenchmark
from tierbench.api.network import NetworkBenchmark

BENCHMARKS: Final[dict[str, type[Benchmark]]] = {
    model.KIND.kind: model for model in (FileTransferBenchmark, BrokerBenchmark, NetworkBenchmark)
}


def kind_modules(package: str) -> dict[str, Any]:
    """A package's module of each kind: that of FileTransferBenchmark is called `file_transfer`.

    Raises:
        ModuleNotFoundError: it has none of some kind.
    """
    return {kind: import_module(f"{package}.{to_snake(kind.removesuffix('Benchmark'))}") for kind in BENCHMARKS}
