"""Results become runs, tables and estimates."""

from math import exp
from statistics import fmean, stdev

import pytest

from tests.unit.report.published import LEVELS, measured, published
from tierbench.advice.estimate import estimate, quantities
from tierbench.advice.tables import newest, runs

TIME = "durationNanoseconds"


def test_rows_ascend_by_size_and_columns_follow_the_cases() -> None:
    sizes = ("1Gi", "1M", "1G", "512M")
    places = [(server, size) for server in ("jetson", "cloud") for size in sizes]
    results = [measured(server, size, [(1.0, 0)], case) for case, (server, size) in enumerate(places, start=1)]
    table = runs(reversed(results))[0].tables[0]
    assert table.rows == ("1M", "512M", "1G", "1Gi")
    assert table.columns == ("jetson", "cloud")
    assert runs(published())[0].row_factor == "fileSize"


def test_a_second_factor_makes_a_table_for_each_of_its_levels() -> None:
    results = [
        measured("cloud", size, [(1.0, 0)], case, levels=LEVELS | {"tls": tls})
        for case, (size, tls) in enumerate([("1M", "None"), ("2M", "None"), ("1M", "TLSv1.3"), ("2M", "TLSv1.3")], 1)
    ]
    tables = runs(results)[0].tables
    assert [dict(table.held) for table in tables] == [{"tls": "None"}, {"tls": "TLSv1.3"}]
    assert all(table.rows == ("1M", "2M") for table in tables)


def test_words_as_levels_keep_the_order_of_the_cases() -> None:
    states = ("Natural", "Warm", "Cold")
    results = [
        measured("cloud", "1M", [(1.0, 0)], case, levels={"cacheState": state}) for case, state in enumerate(states, 1)
    ]
    assert runs(results)[0].tables[0].rows == states


def test_the_newest_run_of_each_benchmark() -> None:
    results = [measured("cloud", "1M", [(1.0, 0)], run=run, name=name) for name in ("a", "b") for run in (2, 10, 1)]
    assert [(run.benchmark.name, run.number) for run in newest(runs(results))] == [("a", 10), ("b", 10)]


def test_nodes_of_a_class_are_taken_together() -> None:
    """The interval is that of the nodes' means: 12.7 standard errors to each side, with two of them."""
    first, second = [1.0, 1.1, 1.3], [2.0, 2.4]
    results = [
        measured("cloud", "1M", [(time, 0) for time in times], case, node=f"cloud-{case}")
        for case, times in enumerate((first, second), start=1)
    ]
    found = estimate(runs(results)[0].tables[0].cell("1M", "cloud"), TIME)
    means = [fmean(first), fmean(second)]
    assert found is not None
    assert (found.count, found.nodes, found.degrees) == (5, 2, 1)
    assert found.mean == pytest.approx(1e9 * fmean(means))
    assert found.deviation == pytest.approx(1e9 * stdev(first + second))
    factor = exp(12.7062 * stdev(means) / 2**0.5 / fmean(means))
    assert (found.low, found.high) == pytest.approx(
        (1e9 * fmean(means) / factor, 1e9 * fmean(means) * factor), rel=1e-4
    )


def test_the_main_quantity_comes_first() -> None:
    assert quantities(runs(published())[0])[0] == TIME
