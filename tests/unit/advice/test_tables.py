"""Runs and tables do not pool different parameters. Their estimates follow from trials."""

from collections.abc import Sequence
from math import ceil, exp, sqrt
from statistics import fmean, stdev

import pytest
from scipy import stats

from tests.unit.advice.questions import ask, verdicts
from tests.unit.report.published import LEVELS, measured, published
from tierbench.advice.comparison import compare_runs
from tierbench.advice.requirements import group_by_workload, workload_items
from tierbench.advice.tables import (
    ResultSet,
    estimate,
    measured_quantities,
    newest,
    runs,
    smaller_is_better,
    with_derived_quantities,
)
from tierbench.api.placement_advice import WorkloadProfile
from tierbench.api.result import BenchmarkResult
from tierbench.results.quantities import RETRIES, levels_and_parameters, percentile_name
from tierbench.stats.distributions import quantile_error

TIME = "durationNanoseconds"
CLOSED = {"pacing": "ClosedLoop", "inFlight": "1", "load": "100 messages"}
FULL = {"pacing": "AsFastAsPossible", "load": "100 messages"}
RATE = {"pacing": "OpenLoop", "messagesPerSecond": "500", "load": "100 messages"}
SLOW, QUICK = (2.0, 2.02, 1.98), (1.0, 1.01, 0.99)
P50, P99 = (percentile_name("durationNanoseconds", which) for which in ("P50", "P99"))


def test_rows_ascend_by_size_and_columns_follow_the_cases() -> None:
    sizes = ("1Gi", "1M", "1G", "512M")
    places = [(server, size) for server in ("jetson", "cloud") for size in sizes]
    results = [measured(server, size, [(1.0, 0)], case) for case, (server, size) in enumerate(places, start=1)]
    table = runs(reversed(results))[0].tables[0]
    assert table.rows == ("1M", "512M", "1G", "1Gi")
    assert table.columns == ("jetson", "cloud")
    assert runs(published())[0].row_factor == "fileSize"


def test_each_level_of_a_second_factor_has_a_table() -> None:
    results = [
        measured("cloud", size, [(1.0, 0)], case, levels=LEVELS | {"tls": tls})
        for case, (size, tls) in enumerate([("1M", "None"), ("2M", "None"), ("1M", "TLSv1.3"), ("2M", "TLSv1.3")], 1)
    ]
    tables = runs(results)[0].tables
    assert [dict(table.held) for table in tables] == [{"tls": "None"}, {"tls": "TLSv1.3"}]
    assert all(table.rows == ("1M", "2M") for table in tables)


def test_categorical_levels_have_the_order_of_the_cases() -> None:
    states = ("Unchanged", "Warm", "Cold")
    results = [
        measured("cloud", "1M", [(1.0, 0)], case, levels={"cacheState": state}) for case, state in enumerate(states, 1)
    ]
    assert runs(results)[0].tables[0].rows == states


def test_newest_selects_one_run_per_benchmark() -> None:
    results = [measured("cloud", "1M", [(1.0, 0)], run=run, name=name) for name in ("a", "b") for run in (2, 10, 1)]
    assert [(run.benchmark.name, run.number) for run in newest(runs(results))] == [("a", 10), ("b", 10)]


def test_nodes_of_a_class_are_pooled() -> None:
    """The interval is that of the means of two nodes: 12.7 standard errors to each side."""
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
    assert measured_quantities(runs(published())[0])[0] == TIME


def paced(
    server: str, settings: dict[str, str], seconds: Sequence[float], case: int = 1, name: str = "files"
) -> BenchmarkResult:
    return measured(server, "1M", [(each, 0) for each in seconds], case, name=name, settings=settings)


def test_result_has_levels_and_parameters() -> None:
    assert levels_and_parameters(paced("cloud", RATE, SLOW)) == {
        "fileSize": "1M",
        **LEVELS,
        **RATE,
        "direction": "Download",
        "engine": "Native",
    }


def test_results_of_different_pacing_are_not_pooled() -> None:
    every = [paced("cloud", CLOSED, SLOW), paced("cloud", FULL, QUICK, name="full")]
    found = group_by_workload(every, workload_items(None))
    assert [len(found.cell("cloud", each).results) for each in found.combinations] == [1, 1]
    cells = [cell for table in ResultSet(tuple(every)).tables for cell in table.cells.values()]
    assert [len(cell.results) for cell in cells] == [1, 1]


def test_classes_of_different_pacing_are_not_compared() -> None:
    every = [paced("cloud", CLOSED, SLOW), paced("jetson", FULL, QUICK, case=2)]
    assert {name for name, _ in verdicts(ask(every, workload={"fileSizes": [{"size": "1M"}]})).values()} == {"NoData"}


def test_workload_selects_the_rate_of_the_results() -> None:
    every = [
        paced(server, settings, seconds, case, name)
        for case, (server, seconds) in enumerate((("cloud", QUICK), ("jetson", SLOW)), start=1)
        for name, settings in (("rate", RATE), ("full", FULL))
    ]
    wanted = workload_items(WorkloadProfile(messages_per_second=500))
    used = group_by_workload(every, wanted).results_of("cloud")
    assert [result.spec.settings["pacing"] for result in used] == ["OpenLoop"]
    other = ask(every, workload={"messagesPerSecond": 900})
    assert set(verdicts(other).values()) == {("NoData", "NotMeasured")}
    assert all("messages per second 900" in item.message for item in other.ranking)


def test_runs_of_different_parameters_are_not_compared() -> None:
    assert compare_runs([paced("cloud", CLOSED, SLOW)], [paced("cloud", FULL, QUICK)], "durationNanoseconds") == ()
    assert compare_runs([paced("cloud", CLOSED, SLOW)], [paced("cloud", CLOSED, QUICK)], "durationNanoseconds")


def test_one_client_node_is_a_caveat() -> None:
    both = [paced("cloud", CLOSED, QUICK), paced("jetson", CLOSED, SLOW, case=2)]
    (note,) = (each for each in ask(both).caveats if each.reason == "OneClientNode")
    assert note.message == "All results were measured from user-1, the only node of the client class user."
    elsewhere = {"client": both[1].spec.client.model_copy(update={"node": "user-2"})}
    apart = [both[0], both[1].model_copy(update={"spec": both[1].spec.model_copy(update=elsewhere)})]
    assert "OneClientNode" not in {each.reason for each in ask(apart).caveats}


@pytest.mark.parametrize(
    ("quantity", "small"),
    [
        ("durationNanoseconds", True),
        ("throughputBytesPerSecond", False),
        ("fairnessPartsPerMillion", False),
        ("pairFairnessPartsPerMillion", False),
    ],
)
def test_larger_rates_and_fairness_are_better(quantity: str, small: bool) -> None:
    assert smaller_is_better(quantity) == small


@pytest.mark.parametrize(("count", "share"), [(10, 0.5), (25, 0.5), (30, 0.5), (60, 0.9), (500, 0.99)])
def test_error_of_a_quantile_follows_from_its_interval(count: int, share: float) -> None:
    values = [float(number**2) for number in range(1, count + 1)]
    half = stats.norm.ppf(0.975) * sqrt(count * share * (1 - share))
    low, high = ceil(count * share - half), ceil(count * share + half)
    coverage = stats.binom.cdf(high - 1, count, share) - stats.binom.cdf(low - 1, count, share)
    assert coverage == pytest.approx(0.95, abs=0.03)
    wanted = (values[high - 1] - values[low - 1]) / (2 * stats.norm.ppf((1 + coverage) / 2))
    assert quantile_error(values, share) == pytest.approx(wanted)


def test_median_of_normal_values_has_the_known_error() -> None:
    values = [float(stats.norm.ppf((number - 0.5) / 1001)) for number in range(1, 1002)]
    assert quantile_error(values, 0.5) == pytest.approx(sqrt(3.14159265 / 2 / 1001), rel=0.03)


@pytest.mark.parametrize(("count", "share"), [(10, 0.9), (30, 0.99), (3, 0.5), (1, 0.5)])
def test_too_few_values_have_no_error(count: int, share: float) -> None:
    assert quantile_error([float(number) for number in range(count)], share) is None


def test_percentiles_are_derived_from_trials() -> None:
    result = with_derived_quantities(measured("cloud", "1M", [(number / 10, 0) for number in range(1, 11)]), [P50, P99])
    median, high = result.status.statistics[P50], result.status.statistics[P99]
    assert (median.mean, high.mean) == (550_000_000, 991_000_000)
    assert median.standard_deviation == pytest.approx(1e9 * sqrt(10) * (0.9 - 0.2) / 2 / 2.2999, rel=1e-3)
    assert high.standard_deviation is None


def test_retries_per_trial_are_derived_from_trials() -> None:
    result = with_derived_quantities(measured("cloud", "1M", [(1.0, 0), (1.0, 3), (1.0, 0)]), [RETRIES])
    assert result.status.statistics[RETRIES].mean == 1_000_000
    assert result.status.statistics[RETRIES].standard_deviation == pytest.approx(1e6 * sqrt(3), abs=1)
    never = with_derived_quantities(measured("cloud", "1M", [(1.0, 0)]), [RETRIES]).status.statistics[RETRIES]
    assert (never.mean, never.standard_deviation) == (0, None)
