"""Exports results as one long table, in the units that the names of the columns end with.

A table has one row per trial, or one row per sample of TCP. In the table of trials, a result without known trials has
one row: the means, the number of trials, and the standard deviations.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from tierbench.api.contract import ClientSample, ServerSample
from tierbench.api.record import ResultTrial
from tierbench.api.result import BenchmarkResult, ResultStatus
from tierbench.results.nodes import worst_network
from tierbench.results.quantities import RETRIES, levels_and_parameters, trial_quantities
from tierbench.results.traces import TCP_STATES, decode_trace, sender_name

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
    found = [place | _preflight(result) | row for result, place in _cases(results) for row in _rows(result)]
    columns = tuple(dict.fromkeys(name for row in found for name in row))
    return TrialTable(columns, tuple(tuple(row.get(name) for name in columns) for row in found))


def to_csv(results: Sequence[BenchmarkResult]) -> str:
    """Returns the table as CSV. A cell without a value is empty. `read_csv` reads the table back.

    No cell is a formula to a spreadsheet.
    """
    table = trial_table(results)
    return _write(table.columns, table.rows)


def tcp_to_csv(results: Sequence[BenchmarkResult]) -> tuple[str, tuple[str, ...]]:
    """Returns one row per sample of TCP as CSV, and what is wrong with the traces that cannot be decoded.

    The text is empty if no result has a sample.
    """
    problems: list[str] = []
    rows = _samples(results, problems)
    first = next(rows, None)
    if first is None:
        return "", tuple(problems)
    text = _write(tuple(first), (row.values() for row in chain((first,), rows)))
    return text, tuple(problems)


def _samples(results: Sequence[BenchmarkResult], problems: list[str]) -> Iterator[dict[str, Any]]:
    """Yields the samples of all traces. Adds a line to `problems` for each trace that cannot be decoded."""
    for result, place in _cases(results):
        for trace in result.recorded.traces:
            try:
                connections = decode_trace(trace)
            except ValueError as error:
                problems.append(f"{result.metadata.name}: {error}")
                continue
            origin = place | {
                "trial": trace.trial,
                "warmup": trace.warmup,
                "side": trace.side,
                "client": trace.client + 1,
                "sender": sender_name(result, trace),
            }
            for number, connection in enumerate(connections, start=1):
                for sample in connection.samples:
                    yield origin | {"stream": number, "port": connection.port} | _sample(*sample)


def _sample(
    milliseconds: int, window: int, threshold: int, trip: int, variance: int, retransmits: int, rate: int, state: int
) -> dict[str, Any]:
    return {
        "seconds": milliseconds / 1000,
        "congestionWindowBytes": window,
        "slowStartThresholdBytes": threshold or None,
        "roundTripMicroseconds": trip,
        "roundTripVarianceMicroseconds": variance,
        "retransmits": retransmits,
        "deliveryBitsPerSecond": rate,
        "state": TCP_STATES[min(state, len(TCP_STATES) - 1)],
    }


def _write(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(value) for value in row] for row in rows)
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


def _cases(results: Sequence[BenchmarkResult]) -> Iterator[tuple[BenchmarkResult, dict[str, Any]]]:
    """Yields each result with its case, its nodes, and the level of every factor of all results."""
    factors = sorted({factor for result in results for factor in levels_and_parameters(result)})
    for result in results:
        levels = levels_and_parameters(result)
        yield result, _place(result) | {factor: levels.get(factor) for factor in factors}


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
    }


def _preflight(result: BenchmarkResult) -> dict[str, Any]:
    known = worst_network(result.spec.networks)
    return {f"preflight{name[0].upper()}{name[1:]}": value for name, value in known.items()}


def _rows(result: BenchmarkResult) -> Iterator[dict[str, Any]]:
    if result.status.statistics and not result.recorded.trials:
        yield _mean_row(result.status)
    for trial in result.recorded.trials:
        if not trial.interrupted:
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
