"""A table of transfer times as papers publish it, read as results."""

import csv
import io
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tierbench.api.contract import TrialLine
from tierbench.api.quantity import parse_size
from tierbench.api.result import BenchmarkReference, BenchmarkResult, NodeFacts, ResultPhase, ResultSpec, ResultStatus
from tierbench.api.timestamps import format_time
from tierbench.cli.errors import UserError
from tierbench.results.record import record

COLUMNS: Final = ("node_class", "node", "file_size", "repetition", "seconds", "retries")
CLIENT: Final = "unknown"
_NO_TIME: Final = format_time(datetime.fromtimestamp(0, UTC))
_LONGEST_SECONDS: Final = 10**6


@dataclass(frozen=True)
class Row:
    """One download."""

    node_class: str
    node: str
    size: str
    seconds: float
    retries: int


def parse_table(text: str, origin: str, name: str) -> list[BenchmarkResult]:
    """A result a class, node and size, as of a FileTransferBenchmark `name`. What a table does not say stays unknown.

    Raises:
        UserError: it has other columns, or a line is damaged.
    """
    reader = csv.DictReader(io.StringIO(text))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise UserError(
            f"{origin}, line 1: the columns of a table must be {','.join(COLUMNS)}; "
            "what `export` writes can be read with --format json"
        )
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for record_of_line in reader:
        row = _row(record_of_line, f"{origin}, line {reader.line_num}")
        groups.setdefault((row.node_class, row.node, row.size), []).append(row)
    return [_result(rows, case, name) for case, rows in enumerate(groups.values(), start=1)]


def _row(fields: dict[str | None, str | None], place: str) -> Row:
    values = {column: (fields.get(column) or "").strip() for column in COLUMNS}
    missing = [column for column in COLUMNS if not values[column]]
    if missing or None in fields:
        raise UserError(f"{place}: {f'no {missing[0]}' if missing else 'more fields than columns'}")
    size = re.sub(r"(?<=[a-zA-Z])B$", "", values["file_size"])
    try:
        parse_size(size)
        seconds = float(values["seconds"])
        retries = int(values["retries"])
    except ValueError as error:
        raise UserError(f"{place}: {error}") from None
    if not 0 < seconds <= _LONGEST_SECONDS or retries < 0:
        raise UserError(f"{place}: {values['seconds']} seconds with {values['retries']} retries cannot be")
    return Row(values["node_class"], values["node"], size, seconds, retries)


def _result(rows: list[Row], case: int, name: str) -> BenchmarkResult:
    first = rows[0]
    spec = ResultSpec(
        benchmark=BenchmarkReference(kind="FileTransferBenchmark", name=name),
        run=1,
        case=case,
        levels={"fileSize": first.size},
        server=NodeFacts(node_class=first.node_class, node=first.node),
        client=NodeFacts(node_class=CLIENT),
        trials=len(rows),
    )
    status = record(spec, ResultStatus(), [_trial(row, number) for number, row in enumerate(rows, start=1)], attempt=1)
    return BenchmarkResult.model_validate(
        {
            "metadata": {"name": f"{name}-c{case:03d}"},
            "spec": spec,
            "status": status.model_copy(update={"phase": ResultPhase.MEASURED}),
        }
    )


def _trial(row: Row, number: int) -> TrialLine:
    return TrialLine.model_validate(
        {
            "contract": 1,
            "record": "Trial",
            "trial": number,
            "outcome": "Completed",
            "startTime": _NO_TIME,
            "durationNanoseconds": round(row.seconds * 1e9),
            "transfer": {"bytes": parse_size(row.size), "downloads": 1, "retries": row.retries},
        }
    )
