"""Reads results from a long table: one row per trial as `to_csv` writes it, or one row per mean as papers print it."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite, sqrt
from typing import Final

from tierbench.api.contract import Computer, Outcome
from tierbench.api.measurements import Failure
from tierbench.api.quantity import parse_size
from tierbench.api.record import BenchmarkReference, RecordStatus
from tierbench.api.result import BenchmarkResult, Counts, NodeFacts, ResultPhase, ResultSpec, ResultStatus, Statistic
from tierbench.kinds.registry import BENCHMARKS, kind_of
from tierbench.results.aggregate import display, summarize
from tierbench.results.export import DEVIATION, FORMULA, TRIALS
from tierbench.results.quantities import BARE_MEAN, MEAN_OF_TRIALS, GivenTrial, quantity_names, statistic
from tierbench.results.units import is_size
from tierbench.stats.distributions import Summary, mean_interval

UNKNOWN_CLASS: Final = "unknown"
"""The node class of a side for which a table has no class."""
_PLACE_COLUMNS: Final = (
    "namespace", "kind", "benchmark", "run", "case", "serverClass", "serverNode", "clientClass", "clientNode",
    "clientAccessNetwork",
)  # fmt: skip
_RUN_COLUMNS: Final = _PLACE_COLUMNS[:4]
_TRIAL_COLUMNS: Final = ("trial", "warmup", "outcome", "failure", "startTime")
_WHOLE_COLUMNS: Final = frozenset({"run", "case", "trial", TRIALS})
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {"warmup": ("true", "false"), "outcome": tuple(Outcome)}
_SIDE_COLUMNS: Final = tuple(
    f"{side}{name[0].upper()}{name[1:]}"
    for side in ("client", "server")
    for name in ("cpuLimitMillicores", *(field.alias or name for name, field in Computer.model_fields.items()))
)
_LONGER_UNITS: Final = {
    "Nanoseconds": {"Microseconds": 1e3, "Milliseconds": 1e6, "Seconds": 1e9},
    "BitsPerSecond": {"KilobitsPerSecond": 1e3, "MegabitsPerSecond": 1e6, "GigabitsPerSecond": 1e9},
    "BytesPerSecond": {"KilobytesPerSecond": 1e3, "MegabytesPerSecond": 1e6},
    "PartsPerMillion": {"Percent": 1e4},
}
_CAMEL_CASE: Final = re.compile(r"[a-z][A-Za-z0-9]*")
_REASON: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_MAXIMUM_CHARACTERS: Final = 10_000_000
_MAXIMUM_NAME_LENGTH: Final = 253
_MAXIMUM_LEVEL_LENGTH: Final = 63
_MAXIMUM_TRIAL: Final = 1000
_MAXIMUM_NUMBER: Final = 10**9
_FEWEST_FOR_INTERVAL: Final = 2
_HOW_TO_NAME: Final = (
    "write names as `export` does: kind, benchmark, serverClass, clientClass, payloadSize, durationSeconds"
)
_WHAT_A_ROW_IS: Final = "a row is a trial, with its number in `trial`; or a mean, with `trial` empty"


@dataclass(frozen=True)
class _Row:
    """One line of a table: the texts of its place and of its trial by column, its levels and its quantities."""

    line: int
    texts: dict[str, str]
    levels: dict[str, str]
    values: dict[str, float]
    deviations: dict[str, float]

    @property
    def case(self) -> tuple[object, ...]:
        """What identifies the case and its nodes."""
        return (*map(self.texts.get, _PLACE_COLUMNS), *sorted(self.levels.items()))

    @property
    def trial(self) -> int:
        """The number of the trial; 0 for a mean."""
        return int(self.texts.get("trial", 0))

    @property
    def trials(self) -> int:
        """The number of trials of a mean; 0 if it is unknown."""
        return int(self.texts.get(TRIALS, 0))

    @property
    def warmup(self) -> bool:
        """Whether the trial is a warm-up trial."""
        return self.texts.get("warmup") == "true"

    @property
    def failure(self) -> str:
        """The reason of a failed trial; empty for a good one."""
        return self.texts.get("failure", "Unknown") if self.texts.get("outcome") == Outcome.FAILED else ""


def read_csv(text: str, name: str, origin: str) -> list[BenchmarkResult]:
    """Returns one result for all rows of one case on one node. What a table does not contain stays unknown.

    `name` is the benchmark of rows that name none. `origin` distinguishes the cases of several tables.

    Raises:
        ValueError: a line is invalid. The message names the line, the column, and what is allowed.
    """
    if len(text) > _MAXIMUM_CHARACTERS:
        raise ValueError(f"it has more than {_MAXIMUM_CHARACTERS} characters: split it")
    groups: dict[object, list[_Row]] = {}
    for row in _rows(text, name):
        group = groups.setdefault(row.case, [])
        _check_same_case(row, group)
        group.append(row)
    cases: Counter[object] = Counter()
    found = []
    for rows in groups.values():
        run = tuple(map(rows[0].texts.get, _RUN_COLUMNS))
        cases[run] += 1
        found.append(_result(rows, cases[run], origin))
    return found


def _rows(text: str, name: str) -> Iterator[_Row]:
    lines = csv.reader(io.StringIO(text))
    header = [column.strip() for column in next(lines, [])]
    try:
        _check_columns(header)
    except ValueError as error:
        raise ValueError(f"line 1, {error}") from None
    for fields in lines:
        if not any(field.strip() for field in fields):
            continue
        line = lines.line_num
        if len(fields) > len(header):
            raise ValueError(f"line {line}: {len(fields)} fields, and {len(header)} columns")
        cells = {column: _text(field) for column, field in zip(header, fields, strict=False) if field.strip()}
        yield _row(cells, line, name)


def _text(field: str) -> str:
    text = field.strip()
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA) else text


def _check_columns(columns: list[str]) -> None:
    for number, column in enumerate(columns, start=1):
        if not _CAMEL_CASE.fullmatch(column):
            raise ValueError(f"column {number}: {column!r} is not the name of a column: {_HOW_TO_NAME}")
        if column in columns[: number - 1]:
            raise ValueError(f"column {number}: there are two columns {column}: remove one")
    if "kind" not in columns:
        kinds = " or ".join(BENCHMARKS)
        raise ValueError(f"there is no column kind: it contains the kind of benchmark of each row, {kinds}")


def _row(cells: Mapping[str, str], line: int, name: str) -> _Row:
    kind, is_mean = cells.get("kind", ""), "trial" not in cells
    row = _Row(line, {"benchmark": name}, {}, {}, {})
    for column, text in {"kind": kind, **cells}.items():
        try:
            _add_cell(row, kind, column, text)
        except ValueError as error:
            raise ValueError(f"line {line}, column {column}: {error}") from None
    if not row.values and not row.failure:
        raise ValueError(f"line {line}: no quantity; a {kind} has {', '.join(quantity_columns(kind))}")
    for column in cells:
        of_a_mean = column == TRIALS or column.endswith(DEVIATION)
        if (of_a_mean and not is_mean) or (column in _TRIAL_COLUMNS and is_mean):
            raise ValueError(f"line {line}, column {column}: {_WHAT_A_ROW_IS}")
    return row if is_mean else replace(row, values={**kind_of(kind).measures.derived(row.values, row.levels)})


def _add_cell(row: _Row, kind: str, column: str, text: str) -> None:
    if column in {*_PLACE_COLUMNS, *_TRIAL_COLUMNS, TRIALS}:
        row.texts[column] = _check_text(column, text)
        return
    known, base = quantity_columns(kind), column.removesuffix(DEVIATION)
    if base in known:
        quantity, factor = known[base]
        numbers = row.values if base == column else row.deviations
        numbers[quantity] = _parse_number(text) * factor
    elif not is_ignored(column):
        row.levels[column] = _check_level(kind, column, text)


@cache
def quantity_columns(kind: str) -> Mapping[str, tuple[str, float]]:
    """Returns, for each column with a quantity of a kind, the quantity and the factor for the numbers of the column."""
    found: dict[str, tuple[str, float]] = {name: (name, 1) for name in quantity_names(kind)}
    for name in quantity_names(kind):
        for unit, longer in _LONGER_UNITS.items():
            if name.endswith(unit):
                stem = name.removesuffix(unit)
                found |= {stem + other: (name, factor) for other, factor in longer.items() if stem + other not in found}
    return found


def is_ignored(column: str) -> bool:
    """Whether `export` writes the column and no result contains it: computers, and the network in the preflight."""
    return column in _SIDE_COLUMNS or column.startswith("preflight")


def _check_text(column: str, text: str) -> str:
    maximum = _MAXIMUM_TRIAL if column == "trial" else _MAXIMUM_NUMBER
    if column in _WHOLE_COLUMNS and not (text.isdecimal() and 0 < int(text) <= maximum):
        raise ValueError(f"{text!r} is not a number from 1 to {maximum}")
    if column == "failure" and not _REASON.fullmatch(text):
        raise ValueError(f"{text!r} is not one word such as TimedOut")
    allowed = tuple(BENCHMARKS) if column == "kind" else _WORDS.get(column)
    if allowed is not None and text not in allowed:
        raise ValueError(f"{text!r} is not {' or '.join(allowed)}")
    maximum = _MAXIMUM_LEVEL_LENGTH if column.endswith(("Class", "Network")) else _MAXIMUM_NAME_LENGTH
    if len(text) > maximum:
        raise ValueError(f"it is longer than {maximum} characters")
    return text


def _parse_number(text: str) -> float:
    try:
        value = int(text) if text.isdecimal() else float(text)
    except ValueError:
        value = -1
    if not isfinite(value) or value < 0:
        raise ValueError(f"{text!r} is not a number from 0, such as 5.53")
    return value


def _check_level(kind: str, column: str, text: str) -> str:
    """Returns the text if the column can be a factor or a constant, and the text a level of it."""
    is_quantity = any(column in quantity_names(other) for other in BENCHMARKS)
    if is_quantity or column.removesuffix(DEVIATION).endswith(tuple(_LONGER_UNITS)):
        raise ValueError(f"a {kind} has no such quantity; it has {', '.join(quantity_names(kind))}")
    if len(text) > _MAXIMUM_LEVEL_LENGTH:
        raise ValueError(f"a level has at most {_MAXIMUM_LEVEL_LENGTH} characters")
    if is_size(column):
        parse_size(text)
    return text


def _check_same_case(row: _Row, group: Sequence[_Row]) -> None:
    for other in group:
        if (row.trial, row.warmup) == (other.trial, other.warmup):
            raise ValueError(f"line {row.line}: the same as line {other.line}: remove one, or add what is different")
        if not row.trial or not other.trial:
            raise ValueError(
                f"line {row.line}: the same case as line {other.line}, and one is a mean: {_WHAT_A_ROW_IS}"
            )


def _result(rows: Sequence[_Row], case: int, origin: str) -> BenchmarkResult:
    """Returns the result of a case. `case` is its number within the run, if the table has no column for it."""
    spec = _spec(rows, case)
    record = _record(rows) if rows[0].trial else RecordStatus()
    status = _status_of_trials(spec, record, rows) if rows[0].trial else _status_of_mean(spec, rows[0])
    prefix = BENCHMARKS[spec.benchmark.kind].PREFIX
    metadata = {
        "name": f"{prefix}-{spec.benchmark.name}-r{spec.run}-c{spec.case:03d}",
        "namespace": rows[0].texts.get("namespace"),
        "uid": origin,
    }
    result = BenchmarkResult.model_validate({"metadata": metadata, "spec": spec, "status": status})
    return result.with_record(record)


def _spec(rows: Sequence[_Row], case: int) -> ResultSpec:
    first, texts = rows[0], rows[0].texts
    return ResultSpec(
        benchmark=BenchmarkReference(kind=texts["kind"], name=texts["benchmark"]),
        run=int(texts.get("run", 1)),
        case=int(texts.get("case", case)),
        levels=first.levels,
        server=NodeFacts(node_class=texts.get("serverClass", UNKNOWN_CLASS), node=texts.get("serverNode", "")),
        client=NodeFacts(
            node_class=texts.get("clientClass", UNKNOWN_CLASS),
            node=texts.get("clientNode", ""),
            access_network=texts.get("clientAccessNetwork", ""),
        ),
        trials=max(1, sum(not row.warmup for row in rows) if first.trial else first.trials),
        warmup_trials=sum(row.warmup for row in rows),
    )


def _record(rows: Sequence[_Row]) -> RecordStatus:
    return RecordStatus(trials=tuple(sorted(map(_trial, rows), key=lambda trial: (not trial.warmup, trial.trial))))


def _status_of_trials(spec: ResultSpec, record: RecordStatus, rows: Sequence[_Row]) -> ResultStatus:
    status = summarize(spec, record)
    if status.counts.completed:
        return status.model_copy(update={"phase": ResultPhase.COMPLETE})
    reason = next((row.failure for row in rows if row.failure), "NoTrial")
    return status.model_copy(update={"phase": ResultPhase.FAILED, "reason": reason})


def _trial(row: _Row) -> GivenTrial:
    failure = Failure(reason=row.failure, message="") if row.failure else None
    return GivenTrial(
        trial=row.trial,
        warmup=row.warmup,
        outcome=Outcome.COMPLETED if failure is None else Outcome.FAILED,
        failure=failure,
        start_time=row.texts.get("startTime", ""),
        duration_nanoseconds=round(row.values.get("durationNanoseconds", 0)),
        given=row.values,
    )


def _status_of_mean(spec: ResultSpec, row: _Row) -> ResultStatus:
    statistics = {
        name: _mean_statistic(mean, row.deviations.get(name), row.trials)
        for name, mean in row.values.items()
        if name != "retries"
    }
    status = ResultStatus(
        phase=ResultPhase.COMPLETE,
        counts=Counts(completed=row.trials, retries=round(row.values.get("retries", 0) * row.trials)),
        statistics=statistics,
        facts=(MEAN_OF_TRIALS if all(one.count for one in statistics.values()) else BARE_MEAN,),
    )
    return status.model_copy(update={"display": display(spec, status, "")})


def _mean_statistic(mean: float, deviation: float | None, trials: int) -> Statistic:
    """Returns the statistic of a published mean.

    A bare mean counts no trials, so nothing is concluded from it. The mean replaces the median, which is
    not known.
    """
    if deviation is None or trials < _FEWEST_FOR_INTERVAL:
        return statistic(Summary(0, mean, deviation, mean, None, None))
    low, high = mean_interval(mean, deviation / sqrt(trials), trials - 1)
    return statistic(Summary(trials, mean, deviation, mean, low, high))
