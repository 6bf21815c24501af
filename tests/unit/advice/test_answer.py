"""The answer of a run: which class or setting is ahead at which levels."""

from collections.abc import Mapping, Sequence

import pytest

from tests.unit.advice.test_effects import with_client
from tests.unit.advice.test_selection import results
from tests.unit.kinds.network.test_report import ALONE, CLIENTS, result
from tests.unit.kinds.network.test_report import run as network_run
from tests.unit.report.published import measured, published
from tierbench.advice.answer import (
    DEPENDS,
    EQUAL,
    INCONCLUSIVE,
    LONGEST_BEST,
    answer,
    best_or_reason,
    describe_retries,
    describe_table,
    has_alternatives,
)
from tierbench.advice.posterior import level_ranges, level_verdicts
from tierbench.advice.tables import RunResults, Table, runs
from tierbench.api.result import BenchmarkResult

TIME = "durationNanoseconds"
RATE = "throughputBytesPerSecond"


def run(found: list[BenchmarkResult]) -> RunResults:
    (one,) = runs(found)
    return one


def test_run_of_one_class_compares_its_settings() -> None:
    tls = run(results(["tls"], {("cloud", "1M", "None"): 1.0, ("cloud", "1M", "TLSv1.3"): 1.5}))
    assert has_alternatives(tls)
    assert answer(tls) == ("On the nodes measured, TLS None is ahead at 1 MB, by 33%.",)


def test_run_of_two_access_networks_has_their_effect() -> None:
    (lte,) = results([], {("cloud", "1M"): 8.0})
    (fast,) = results([], {("cloud", "1M"): 1.0})
    both = run([with_client(lte, "pi-lte", "lte", "pi-1"), with_client(fast, "pi-5g", "5g-sa", "pi-2")])
    assert not has_alternatives(both)
    assert any("access network 5g-sa has 8.0 times" in text and "lte" in text for text in answer(both))


def test_tcp_and_udp_are_not_alternatives() -> None:
    """UDP sends at the rate that the spec names."""
    tcp, udp = (
        result(case, (CLIENTS[0],), rate, protocol=name) for case, rate, name in ((1, 90, "TCP"), (2, 5, "UDP"))
    )
    assert not has_alternatives(network_run(tcp, udp))


def test_run_of_several_clients_has_the_share_of_each() -> None:
    (sentence,) = answer(network_run(*ALONE, result(4, CLIENTS, 60, 30, 10)))
    assert sentence.startswith("All at once, phone gets 60% of the total throughput.")


def test_run_of_one_case_has_nothing_to_compare() -> None:
    assert answer(run(results([], {("cloud", "1M"): 1.0}))) == ("Only cloud is measured at 1 MB.",)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({("cloud", "1M"): 1.0, ("jetson", "1M"): 2.0, ("cloud", "2M"): 2.0, ("jetson", "2M"): 3.0}, "cloud"),
        ({("cloud", "1M"): 1.0, ("jetson", "1M"): 2.0, ("cloud", "2M"): 3.0, ("jetson", "2M"): 2.0}, DEPENDS),
        ({("cloud", "1M"): 1.0, ("jetson", "1M"): 2.0, ("cloud", "2M"): 2.0, ("jetson", "2M"): 2.0}, DEPENDS),
        ({("cloud", "1M"): 1.0, ("jetson", "1M"): 2.0, ("cloud", "2M"): 2.0}, DEPENDS),
        ({("cloud", "1M"): 1.0, ("jetson", "1M"): 1.0}, INCONCLUSIVE),
        ({("cloud", "1M"): 1.0, ("jetson", "2M"): 1.0}, INCONCLUSIVE),
        ({("cloud", "1M"): 1.0}, ""),
    ],
)
def test_best_is_a_class_or_the_reason_for_none(seconds: dict[tuple[str, str], float], expected: str) -> None:
    assert best_or_reason(run(results([], seconds))) == expected


def three_nodes(seconds: dict[tuple[str, str], float]) -> list[BenchmarkResult]:
    """Returns results of three nodes per class."""
    places = [(place, mean, number) for number in range(3) for place, mean in seconds.items()]
    return [
        measured(server, size, [(mean * step, 0) for step in (0.99, 1.0, 1.01)], case, node=f"{server}-{number}")
        for case, ((server, size), mean, number) in enumerate(places, start=1)
    ]


def test_best_is_equal_if_nodes_of_both_classes_take_the_same_time() -> None:
    assert best_or_reason(run(three_nodes({("cloud", "1Mi"): 1.0, ("jetson", "1Mi"): 1.0}))) == EQUAL


def test_best_is_ahead_at_one_level_and_equal_at_another() -> None:
    assert (
        best_or_reason(
            run(
                three_nodes(
                    {("cloud", "1Mi"): 1.0, ("jetson", "1Mi"): 2.0, ("cloud", "2Mi"): 2.0, ("jetson", "2Mi"): 2.0}
                )
            )
        )
        == "cloud"
    )


def test_best_is_a_setting_if_settings_are_compared() -> None:
    assert (
        best_or_reason(run(results(["tls"], {("cloud", "1M", "None"): 1.0, ("cloud", "1M", "TLSv1.3"): 1.5})))
        == "TLS None"
    )


def test_best_is_truncated_to_the_width_of_its_column() -> None:
    broker = "kafka-with-many-small-partitions-and-acks-all"
    found = run(results(["broker"], {("cloud", "1M", broker): 1.0, ("cloud", "1M", "mosquitto"): 2.0}))
    assert best_or_reason(found) == f"{broker[: LONGEST_BEST - 1]}…"


def sentence_of(found: Table, quantity: str) -> str:
    return describe_table(found, next(level_verdicts([found], quantity)))


def table(
    seconds: Mapping[tuple[str, str], Sequence[float]], retries: Mapping[tuple[str, str], int] | None = None
) -> Table:
    counts = retries or {}
    results = [
        measured(server, size, [(time, counts.get((server, size), 0)) for time in times], case)
        for case, ((server, size), times) in enumerate(seconds.items(), start=1)
    ]
    return runs(results)[0].tables[0]


def test_the_published_table_gives_the_published_answer() -> None:
    found = runs(published())[0].tables[0]
    assert [
        (stretch.leaders, [standing.level for standing in stretch.verdicts])
        for stretch in level_ranges(next(level_verdicts([found], TIME)))
    ] == [
        (("cloud",), ["1Mi"]),
        (("jetson",), ["512Mi", "1Gi", "2Gi"]),
        (("cloud",), ["3Gi", "4Gi", "5Gi"]),
    ]
    assert sentence_of(found, TIME) == (
        "On the nodes measured, cloud is ahead at 1 MiB, by 47%; jetson is ahead from 512 MiB to 2 GiB, by 12–14%; "
        "cloud is ahead from 3 GiB on, by 14–16%."
    )
    assert describe_retries(found) == "Retries occurred only on jetson, from 3 GiB on (38 in total)."


def test_larger_rate_is_better() -> None:
    found = runs(published())[0].tables[0]
    rates, times = next(level_verdicts([found], RATE)), next(level_verdicts([found], TIME))
    assert [each.leaders for each in rates] == [each.leaders for each in times]


def test_small_differences_are_inconclusive() -> None:
    found = table({("cloud", "1Mi"): [1.0, 1.2, 1.4], ("jetson", "1Mi"): [1.1, 1.3, 1.5]})
    assert (
        sentence_of(found, TIME)
        == "On the nodes measured, the difference between cloud and jetson is inconclusive at 1 MiB."
    )


def test_single_trial_is_too_little_data() -> None:
    found = table({("cloud", "1Mi"): [1.0], ("jetson", "1Mi"): [9.0]})
    assert sentence_of(found, TIME) == "There is too little data at 1 MiB."


def test_single_class_is_not_ahead() -> None:
    found = table({("cloud", "1Mi"): [1.0, 1.1], ("cloud", "2Mi"): [2.0, 2.1], ("jetson", "2Mi"): [9.0, 9.1]})
    assert (
        sentence_of(found, TIME)
        == "On the nodes measured, only cloud is measured at 1 MiB; cloud is ahead at 2 MiB, by 77%."
    )


def test_class_that_is_ahead_at_all_levels_has_one_range() -> None:
    times = {
        (server, size): [base, base + 0.01]
        for server, base in (("cloud", 1.0), ("jetson", 2.0))
        for size in ("1Mi", "2Mi")
    }
    assert sentence_of(table(times), TIME) == "On the nodes measured, cloud is ahead from 1 MiB to 2 MiB, by 50%."


@pytest.mark.parametrize(
    ("retries", "sentence"),
    [
        ({}, "No retries."),
        ({("cloud", "1Mi"): 1}, "Retries occurred only on cloud, at 1 MiB (2 in total)."),
        (
            {("cloud", "1Mi"): 1, ("cloud", "3Mi"): 1, ("jetson", "1Mi"): 2, ("jetson", "2Mi"): 1},
            "Retries occurred on cloud, at 1 MiB and 3 MiB (4 in total) and on jetson, up to 2 MiB (6 in total).",
        ),
    ],
)
def test_sentence_names_the_levels_with_retries(retries: Mapping[tuple[str, str], int], sentence: str) -> None:
    times = {(server, size): [1.0, 1.1] for server in ("cloud", "jetson") for size in ("1Mi", "2Mi", "3Mi")}
    assert describe_retries(table(times, retries)) == sentence
