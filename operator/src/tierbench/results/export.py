"""Exports results as one long table: one row per trial, in the units that the names of the columns end with.

A result without known trials has one row: the means, the number of trials, and the standard deviations.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tierbench.api.contract import ClientSample, ServerSample
from tierbench.api.record import ResultTrial
from tierbench.api.result import BenchmarkResult, ResultStatus
from tierbench.results.nodes import worst_network
from tierbench.results.quantities import RETRIES, levels_and_parameters, trial_quantities

TRIALS: Final = "trials"
"""The column with the number of trials of a mean."""
DEVIATION: Final = "StandardDeviation"
"""The suffix of the column with the standard deviation of a mean."""
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""Text that begins like this is a formula to a spreadsheet. A pod can send such text, so it gets an apostrophe."""


@dataclass(frozen=True)
class TrialTable:
    """A table. A cell without a value is None.

    The columns are the case and its nodes, the level of every factor, and every quantity that some trial has.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def trial_table(results: Sequence[BenchmarkResult]) -> TrialTable:
    """Returns the table of all trials of the results."""
    factors = sorted({factor for result in results for factor in levels_and_parameters(result)})
    found = [
        _place(result) | {factor: levels_and_parameters(result).get(factor) for factor in factors} | row
        for result in results
        for row in _rows(result)
    ]
    columns = tuple(dict.fromkeys(name for row in found for name in row))
    return TrialTable(columns, tuple(tuple(row.get(name) for name in columns) for row in found))


def to_csv(results: Sequence[BenchmarkResult]) -> str:
    """Returns the table as CSV. A cell without a value is empty. `read_csv` reads the table back.

    No cell is a formula to a spreadsheet.
    """
    table, text = trial_table(results), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_text(value) for value in row] for row in table.rows)
    return text.getvalue()


def _text(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return str(value).lower() if isinstance(value, bool) else value


def to_parquet(results: Sequence[BenchmarkResult]) -> bytes:
    """Returns the table as an Apache Parquet file.

    Quantities are 64-bit floating-point numbers, levels are text. A cell without a value is null.

    Raises:
        ImportError: the extra `parquet` is not installed.
    """
    import pyarrow  # noqa: PLC0415 (an optional extra)
    from pyarrow import parquet  # noqa: PLC0415 (an optional extra)

    table, file = trial_table(results), io.BytesIO()
    columns: dict[str, Any] = {name: [row[index] for row in table.rows] for index, name in enumerate(table.columns)}
    parquet.write_table(pyarrow.table(columns), file, compression="zstd")
    return file.getvalue()


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
        "clientAccessNetwork": spec.client.access_network or None,
        **{f"preflight{name[0].upper()}{name[1:]}": value for name, value in worst_network(spec.networks).items()},
    }


def _rows(result: BenchmarkResult) -> Iterator[dict[str, Any]]:
    if result.status.statistics and not result.recorded.trials:
        yield _mean_row(result.status)
    for trial in result.recorded.trials:
        yield _trial_row(result.spec.benchmark.kind, trial)


def _mean_row(status: ResultStatus) -> dict[str, Any]:
    """Returns the row of a mean. If its statistics count no trials, the published mean is all that it contains."""
    found: dict[str, Any] = {TRIALS: status.counts.completed or None}
    for name, statistic in status.statistics.items():
        if name != RETRIES:
            found |= {name: statistic.mean, f"{name}{DEVIATION}": statistic.standard_deviation}
    if status.counts.retries:
        found["retries"] = status.counts.retries / status.counts.completed
    return found


def _trial_row(kind: str, trial: ResultTrial) -> dict[str, Any]:
    return {
        "trial": trial.trial,
        "warmup": trial.warmup,
        "outcome": trial.outcome.value,
        "failure": None if trial.failure is None else trial.failure.reason,
        "startTime": trial.start_time,
        **{name: value for name, value in trial_quantities(kind, trial).items() if value is not None},
        **_side("client", trial.client),
        **_side("server", trial.server),
    }


def _side(name: str, sample: ClientSample | ServerSample | None) -> dict[str, Any]:
    """Returns the CPU limit and the state of the computer of one side, as far as they are known."""
    if sample is None:
        return {}
    known = {} if sample.computer is None else sample.computer.to_json()
    if sample.cpu_limit_millicores is not None:
        known["cpuLimitMillicores"] = sample.cpu_limit_millicores
    return {f"{name}{key[0].upper()}{key[1:]}": value for key, value in known.items() if value is not None}
