"""Results as a table for other programs: a row a trial, in the units that the columns' names end with."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tierbench.api.contract import ClientSample, ServerSample
from tierbench.api.result import BenchmarkResult
from tierbench.results.conditions import circumstances
from tierbench.results.node_network import worst
from tierbench.results.quantities import quantities


@dataclass(frozen=True)
class TrialTable:
    """Columns: where and what, the level of every factor, then every quantity that some trial has; else None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def trial_table(results: Sequence[BenchmarkResult]) -> TrialTable:
    """All trials of the results."""
    factors = sorted({factor for result in results for factor in circumstances(result)})
    found = [
        _place(result) | {factor: circumstances(result).get(factor) for factor in factors} | _trial(result, number)
        for result in results
        for number in range(len(result.status.trials))
    ]
    columns = tuple(dict.fromkeys(name for row in found for name in row))
    return TrialTable(columns, tuple(tuple(row.get(name) for name in columns) for row in found))


def _place(result: BenchmarkResult) -> dict[str, Any]:
    spec = result.spec
    return {
        "namespace": result.metadata.namespace,
        "kind": spec.benchmark.kind,
        "benchmark": spec.benchmark.name,
        "run": spec.run,
        "case": spec.case,
        "serverClass": spec.server.node_class,
        "serverNode": spec.server.node,
        "clientClass": spec.client.node_class,
        "clientNode": spec.client.node,
        **{f"preflight{name[0].upper()}{name[1:]}": value for name, value in worst(spec.networks).items()},
    }


def _trial(result: BenchmarkResult, number: int) -> dict[str, Any]:
    trial = result.status.trials[number]
    return {
        "trial": trial.trial,
        "warmup": trial.warmup,
        "outcome": trial.outcome.value,
        "failure": None if trial.failure is None else trial.failure.reason,
        "startTime": trial.start_time,
        **{name: values[0] for name, values in quantities([trial]).items()},
        **_side("client", trial.client),
        **_side("server", trial.server),
    }


def _side(name: str, sample: ClientSample | ServerSample | None) -> dict[str, Any]:
    """What one side could use of CPUs, and the state of its computer, as far as they are known."""
    if sample is None:
        return {}
    known = {} if sample.computer is None else sample.computer.to_json()
    if sample.cpu_limit_millicores is not None:
        known["cpuLimitMillicores"] = sample.cpu_limit_millicores
    return {f"{name}{key[0].upper()}{key[1:]}": value for key, value in known.items() if value is not None}


def to_csv(results: Sequence[BenchmarkResult]) -> str:
    """The table, with nothing where there is no value."""
    table, text = trial_table(results), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_text(value) for value in row] for row in table.rows)
    return text.getvalue()


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
