"""The answer of a run, whatever it compares."""

import pytest

from tests.unit.advice.test_alternatives import results
from tests.unit.advice.test_effects import of_client
from tests.unit.kinds.network.test_together import ALONE, CLIENTS, result
from tests.unit.kinds.network.test_together import run as network_run
from tests.unit.report.published import measured
from tierbench.advice.answer import DEPENDS, EQUAL, INCONCLUSIVE, LONGEST_BEST, answer, best, ranks
from tierbench.advice.tables import RunResults, runs
from tierbench.api.result import BenchmarkResult


def run(found: list[BenchmarkResult]) -> RunResults:
    (one,) = runs(found)
    return one


def test_settings_are_ranked_where_they_vary() -> None:
    tls = run(results(["tls"], {("cloud", "1M", "None"): 1.0, ("cloud", "1M", "TLSv1.3"): 1.5}))
    assert ranks(tls)
    assert answer(tls) == ("On the nodes measured, TLS None is ahead at 1 MB, by 33 %.",)


def test_of_networks_alone_it_is_what_one_costs_against_the_other() -> None:
    (lte,) = results([], {("cloud", "1M"): 8.0})
    (fast,) = results([], {("cloud", "1M"): 1.0})
    both = run([of_client(lte, "pi-lte", "lte", "pi-1"), of_client(fast, "pi-5g", "5g-sa", "pi-2")])
    assert not ranks(both)
    assert any("access network 5g-sa has 8.0 times" in text and "lte" in text for text in answer(both))


def test_of_udp_beside_tcp_nothing_is_ahead() -> None:
    """It is as fast as it is told to be."""
    tcp, udp = (
        result(case, (CLIENTS[0],), rate, protocol=name) for case, rate, name in ((1, 90, "TCP"), (2, 5, "UDP"))
    )
    assert not ranks(network_run(tcp, udp))


def test_of_clients_it_is_what_each_has_at_once() -> None:
    (said,) = answer(network_run(*ALONE, result(4, CLIENTS, 60, 30, 10)))
    assert said.startswith("All at once, phone has 60 % of the band.")


def test_of_one_case_it_is_that_nothing_is_beside_it() -> None:
    assert answer(run(results([], {("cloud", "1M"): 1.0}))) == ("only cloud is measured at 1 MB.",)


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
def test_best_is_a_class_or_says_why_none_is(seconds: dict[tuple[str, str], float], expected: str) -> None:
    assert best(run(results([], seconds))) == expected


def of_nodes(seconds: dict[tuple[str, str], float]) -> list[BenchmarkResult]:
    """Results of three nodes of each class."""
    places = [(place, mean, number) for number in range(3) for place, mean in seconds.items()]
    return [
        measured(server, size, [(mean * step, 0) for step in (0.99, 1.0, 1.01)], case, node=f"{server}-{number}")
        for case, ((server, size), mean, number) in enumerate(places, start=1)
    ]


def test_best_is_equal_where_nodes_of_both_classes_take_the_same_time() -> None:
    assert best(run(of_nodes({("cloud", "1Mi"): 1.0, ("jetson", "1Mi"): 1.0}))) == EQUAL


def test_best_leads_at_one_level_and_is_equal_at_another() -> None:
    assert (
        best(
            run(
                of_nodes({("cloud", "1Mi"): 1.0, ("jetson", "1Mi"): 2.0, ("cloud", "2Mi"): 2.0, ("jetson", "2Mi"): 2.0})
            )
        )
        == "cloud"
    )


def test_best_is_a_setting_where_settings_are_compared() -> None:
    assert best(run(results(["tls"], {("cloud", "1M", "None"): 1.0, ("cloud", "1M", "TLSv1.3"): 1.5}))) == "TLS None"


def test_best_is_cut_to_the_width_of_its_column() -> None:
    broker = "kafka-with-many-small-partitions-and-acks-all"
    found = run(results(["broker"], {("cloud", "1M", broker): 1.0, ("cloud", "1M", "mosquitto"): 2.0}))
    assert best(found) == f"{broker[: LONGEST_BEST - 1]}…"
