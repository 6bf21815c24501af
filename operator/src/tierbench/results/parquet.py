"""The table of trials as Apache Parquet; needs the extra `parquet`."""

import io
from typing import Any

import pyarrow
from pyarrow import parquet

from tierbench.results.table import TrialTable


def to_parquet(table: TrialTable) -> bytes:
    """A file. Quantities are 64-bit floating-point numbers, levels are text, a value that there is not is null."""
    columns: dict[str, Any] = {name: [row[index] for row in table.rows] for index, name in enumerate(table.columns)}
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file, compression="zstd")
    return file.getvalue()
