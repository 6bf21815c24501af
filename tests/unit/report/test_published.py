"""Published numbers are shown with their own cases only."""

from collections.abc import Sequence

import pytest

from tests.unit.report.brokers import SIZES
from tests.unit.report.brokers import measured as exchanged
from tests.unit.report.published import measured, published
from tierbench.advice.selection import relabelled_run
from tierbench.advice.tables import RunResults, estimate, runs
from tierbench.api.result import BenchmarkResult
from tierbench.report.published import (
    PublishedTable,
    matching_results,
    no_match_message,
    published_rows,
    published_table,
)
from tierbench.results.published import read_csv

FILES = "kind,benchmark,serverClass,clientClass,fileSize,tls,durationSeconds"
BROKERS = "kind,benchmark,serverClass,clientClass,broker,payloadSize,encryption,throughputBytesPerSecond"


def read(header: str, *lines: str) -> list[BenchmarkResult]:
    return read_csv("\n".join((header, *lines)), "paper", "paper.csv")


def run_of(results: Sequence[BenchmarkResult]) -> RunResults:
    (run,) = runs(results)
    return run


def tables_of(results: Sequence[BenchmarkResult], paper: Sequence[BenchmarkResult]) -> list[PublishedTable | None]:
    run = run_of(results)
    relabelled = relabelled_run(run)
    return [published_table(relabelled, table, matching_results(run, paper)) for table in relabelled.tables]


def value(found: PublishedTable | None, row: str, column: str) -> float | None:
    assert found is not None
    known = estimate(found.table.cell(row, column), found.quantities[0])
    return None if known is None else known.mean


def test_published_case_is_a_further_column() -> None:
    paper = read(FILES, "FileTransferBenchmark,p,cloud,user,1048576,None,7", "FileTransferBenchmark,p,cloud,,6Gi,,8")
    (found,) = tables_of(published(), paper)
    assert found is not None
    assert found.table.columns == ("cloud", "jetson", "cloud, published")
    assert found.table.rows == ("1Mi", "512Mi", "1Gi", "2Gi", "3Gi", "4Gi", "5Gi", "6Gi")
    assert (found.names, found.quantities) == (("p",), ("durationNanoseconds",))
    assert value(found, "1Mi", "cloud, published") == 7e9
    assert value(found, "6Gi", "cloud, published") == 8e9
    assert value(found, "6Gi", "cloud") is None


def test_every_published_number_has_a_row_with_the_measured_one() -> None:
    paper = read(FILES, "FileTransferBenchmark,p,cloud,user,1Mi,None,7", "FileTransferBenchmark,p,cloud,,6Gi,,8")
    paper += read(FILES, "FileTransferBenchmark,q,pi,user,1Mi,None,9")
    (found,) = tables_of([measured("cloud", "1Mi", [(3.5, 0)] * 3, 1)], paper)
    assert found is not None
    assert [row.cells for row in published_rows([found])] == [
        ("1 MiB", "cloud", "Transfer time", "7.00 s", "3.50 ± 0.00 s", "0.50"),
        ("1 MiB", "pi, published in q", "Transfer time", "9.00 s", "–", "–"),
        ("6 GiB", "cloud", "Transfer time", "8.00 s", "–", "–"),
    ]


def test_published_row_without_levels_matches_a_run_of_one_case() -> None:
    """A paper may name neither the direction of iperf3 nor the size of a ping."""
    (found,) = tables_of(
        [measured("cloud", "1Mi", [(1.0, 0)] * 3, 1)], read(FILES, "FileTransferBenchmark,p,cloud,user,,None,7")
    )
    assert found is not None
    assert found.table.rows == ("1Mi",)
    assert value(found, "1Mi", "cloud, published") == 7e9


@pytest.mark.parametrize(
    "row",
    [
        "FileTransferBenchmark,p,cloud,user,1Mi,TLSv1.3,7",
        "FileTransferBenchmark,p,cloud,pi,1Mi,None,7",
        "FileTransferBenchmark,p,cloud,user,,None,7",
        "BrokerBenchmark,p,cloud,user,1Mi,None,7",
    ],
)
def test_published_result_of_another_case_is_not_shown(row: str) -> None:
    assert tables_of(published(), read(FILES, row)) == [None]
    assert "clients on user, fileSize 1Mi or 512Mi" in no_match_message(run_of(published()))


def test_each_table_has_the_published_results_of_its_held_level() -> None:
    own = [
        measured(server, size, [(1.0, 0)], case, levels={"tls": level})
        for case, (server, size, level) in enumerate(
            [(s, z, t) for t in ("None", "TLSv1.3") for s in ("cloud", "jetson") for z in ("1Mi", "2Mi", "3Mi")], 1
        )
    ]
    none, tls = tables_of(own, read(FILES, "FileTransferBenchmark,p,cloud,user,1Mi,TLSv1.3,7"))
    assert none is None
    assert value(tls, "1Mi", "cloud, published") == 7e9


def test_published_settings_are_columns_if_settings_are_compared() -> None:
    own = [
        exchanged("cloud", size, [1000] * 10, case, {"broker": broker})
        for case, (broker, size) in enumerate([(b, z) for b in ("kafka", "mosquitto") for z in SIZES], 1)
    ]
    (found,) = tables_of(own, read(BROKERS, "BrokerBenchmark,p,cloud,user,kafka,1024,None,26711"))
    assert found is not None
    assert found.table.columns == ("kafka", "mosquitto", "kafka, published")
    assert found.quantities == ("throughputBytesPerSecond",)
    assert value(found, "1Ki", "kafka, published") == 26711


def test_columns_have_the_published_levels_that_differ() -> None:
    rows = [f"FileTransferBenchmark,{name},,user,1Mi,{wire},7" for name, wire in (("p", "a"), ("p", "b"), ("q", "a"))]
    header = FILES.replace("tls", "wire")
    (found,) = tables_of(published(), read(header, *rows[:2]))
    assert found is not None
    assert found.table.columns[2:] == ("published, wire a", "published, wire b")
    (found,) = tables_of(published(), read(header, rows[0], rows[2]))
    assert found is not None
    assert found.table.columns[2:] == ("published in p", "published in q")
