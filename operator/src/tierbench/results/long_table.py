"""Results read from a long table: a row a trial as `to_csv` writes it, or a row a mean as papers print it."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tierbench.api.result import BenchmarkResult
from tierbench.kinds.registry import kind_of
from tierbench.results import columns
from tierbench.results.columns import DEVIATION, OF_A_TRIAL, PLACES, TRIALS
from tierbench.results.published import Row, result

_FURTHEST: Final = 10_000_000
"""Characters; a longer table is refused."""
_HOLDS: Final = "a row is a trial, with its number in `trial`; or a mean, with `trial` empty"


def read_csv(text: str, name: str, origin: str) -> list[BenchmarkResult]:
    """A result for all rows of one case on one node, of a benchmark `name` where the table names none.

    What a table does not say stays unknown. `origin` tells cases of several tables apart.

    Raises:
        ValueError: a line is damaged; the message names line and column, and what is allowed.
    """
    if len(text) > _FURTHEST:
        raise ValueError(f"it has more than {_FURTHEST} characters: split it")
    groups: dict[object, list[Row]] = {}
    for row in _rows(text, name):
        group = groups.setdefault((*row.places, tuple(sorted(row.levels.items()))), [])
        _check_beside(row, group)
        group.append(row)
    numbers: dict[object, int] = {}
    found = []
    for rows in groups.values():
        run = rows[0].run_key
        numbers[run] = numbers.get(run, 0) + 1
        found.append(result(rows, numbers[run], origin))
    return found


def _rows(text: str, name: str) -> Iterator[Row]:
    lines = csv.reader(io.StringIO(text))
    header = [column.strip() for column in next(lines, [])]
    try:
        columns.check_columns(header)
    except ValueError as error:
        raise ValueError(f"line 1, {error}") from None
    for fields in lines:
        if not any(field.strip() for field in fields):
            continue
        line = lines.line_num
        if len(fields) > len(header):
            raise ValueError(f"line {line}: {len(fields)} fields, and {len(header)} columns")
        cells = {column: field.strip() for column, field in zip(header, fields, strict=False) if field.strip()}
        yield _row(cells, line, name)


@dataclass(frozen=True)
class _Cells:
    """The cells of a line, sorted by what they are."""

    places: Mapping[str, str]
    levels: Mapping[str, str]
    values: Mapping[str, float]
    deviations: Mapping[str, float]


def _row(cells: Mapping[str, str], line: int, name: str) -> Row:
    found = _sorted(cells, line)
    places, is_mean = found.places, "trial" not in found.places
    if not found.values and places.get("outcome") != "Failed":
        known = ", ".join(columns.quantities_of(places["kind"]))
        raise ValueError(f"line {line}: no quantity; a {places['kind']} has {known}")
    for column in cells:
        of_a_mean = column == TRIALS or column.endswith(DEVIATION)
        if (of_a_mean and not is_mean) or (column in OF_A_TRIAL and is_mean):
            raise ValueError(f"line {line}, column {column}: {_HOLDS}")
    derived = kind_of(places["kind"]).measures.derived
    return Row(
        line=line,
        places=tuple(places.get(column, name if column == "benchmark" else "") for column in PLACES),
        levels=found.levels,
        values=found.values if is_mean else derived(found.values, found.levels),
        deviations=found.deviations,
        trial=int(places.get("trial", 0)),
        trials=int(places.get(TRIALS, 0)),
        warmup=places.get("warmup") == "true",
        failure=places.get("failure", "Unknown") if places.get("outcome") == "Failed" else "",
        start_time=places.get("startTime", ""),
    )


def _sorted(cells: Mapping[str, str], line: int) -> _Cells:
    places: dict[str, str] = {}
    levels: dict[str, str] = {}
    values: dict[str, float] = {}
    deviations: dict[str, float] = {}
    kind = cells.get("kind", "")
    for column, text in {"kind": kind, **cells}.items():
        try:
            if column in {*PLACES, *OF_A_TRIAL, TRIALS}:
                places[column] = columns.place(column, text)
                continue
            known = columns.quantities_of(kind)
            base = column.removesuffix(DEVIATION)
            if column in known:
                quantity, factor = known[column]
                values[quantity] = columns.number(text) * factor
            elif base in known:
                quantity, factor = known[base]
                deviations[quantity] = columns.number(text) * factor
            elif not columns.is_passed_over(column):
                levels[column] = columns.level(kind, column, text)
        except ValueError as error:
            raise ValueError(f"line {line}, column {column}: {error}") from None
    return _Cells(places, levels, values, deviations)


def _check_beside(row: Row, group: Sequence[Row]) -> None:
    """Refuses a row that cannot be of the same case as those before."""
    for other in group:
        if (row.trial, row.warmup) == (other.trial, other.warmup):
            raise ValueError(f"line {row.line}: the same as line {other.line}: leave out one, or say what differs")
        if not row.trial or not other.trial:
            raise ValueError(f"line {row.line}: the same case as line {other.line}, and one is a mean: {_HOLDS}")
