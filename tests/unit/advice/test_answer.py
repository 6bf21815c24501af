"""The answer of a run, whatever it compares."""

from tests.unit.advice.test_alternatives import results
from tests.unit.advice.test_effects import of_client
from tests.unit.advice.test_together import ALONE, CLIENTS, result
from tests.unit.advice.test_together import run as network_run
from tierbench.advice.answer import answer, ranks
from tierbench.advice.matrix import RunResults, runs
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
