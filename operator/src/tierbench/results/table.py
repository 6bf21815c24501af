"""Results as one long table: a row a trial, in the units that the columns' names end with. `read_csv` reads it again.

Of a result whose trials are not known there is one row: the means, how many trials they are of, and their deviations.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tierbench.api.contract import ClientSample, ServerSample
from tierbench.api.result import BenchmarkResult, ResultStatus, ResultTrial
from tierbench.results.columns import DEVIATION, TRIALS
from tierbench.results.conditions import circumstances
from tierbench.results.node_network import worst
from tierbench.results.quantities import RETRIES, quantities


@dataclass(frozen=True)
class TrialTable:
    """Columns: where and what, the level of every factor, then every quantity that some trial has; else None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def trial_table(results: Sequence[BenchmarkResult]) -> TrialTable:
    """All trials of the results."""
    factors = sorted({factor for result in results for factor in circumstances(result)})
    found = [
        _place(result) | {factor: circumstances(result).get(factor) for factor in factors} | row
        for result in results
        for row in _rows(result)
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
        "clientAccessNetwork": spec.client.access_network or None,
        **{f"preflight{name[0].upper()}{name[1:]}": value for name, value in worst(spec.networks).items()},
    }


def _rows(result: BenchmarkResult) -> Iterator[dict[str, Any]]:
    if result.status.statistics and not result.status.trials:
        yield _mean(result.status)
    yield from map(_trial, result.status.trials)


def _mean(status: ResultStatus) -> dict[str, Any]:
    """Of a mean alone, whose statistics count no trials, only the number that was published is known."""
    found: dict[str, Any] = {TRIALS: status.counts.completed or None}
    for name, statistic in status.statistics.items():
        if name != RETRIES:
            found |= {name: statistic.mean, f"{name}{DEVIATION}": statistic.standard_deviation}
    if status.counts.retries:
        found["retries"] = status.counts.retries / status.counts.completed
    return found


def _trial(trial: ResultTrial) -> dict[str, Any]:
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
