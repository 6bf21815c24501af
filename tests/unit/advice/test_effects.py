"""Effects of factors, the other factors held equal, and knees."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.advice.questions import ask, sizes
from tests.unit.advice.test_selection import results
from tests.unit.examples import examples
from tests.unit.report.published import measured
from tierbench.advice.answer import ALL_LEVELS, effect_statement, factor_statements, knee_statement, summarize_factors
from tierbench.advice.effects import Effect, factorial_data
from tierbench.advice.selection import MAX_LEVELS, MAX_READINGS
from tierbench.api.result import BenchmarkResult
from tierbench.stats.posterior import Relation

RATE, TIME = "throughputBytesPerSecond", "durationNanoseconds"
SIZES = {"1k": 1.3, "10k": 1.08, "100k": 1.003, "1M": 1.0}
"""The time with TLS divided by the time without it, by size."""
RATIOS = st.floats(0.5, 2.0)
TIME = "durationNanoseconds"


def effects_of(found: Sequence[BenchmarkResult], factor: str, quantity: str = RATE) -> list[Effect]:
    return [effect for effect in summarize_factors(found, quantity).effects if effect.factor == factor]


def statements(found: Sequence[BenchmarkResult], factor: str, quantity: str = RATE) -> list[str]:
    return [effect_statement(effect) for effect in effects_of(found, factor, quantity)]


def on_nodes(found: Sequence[BenchmarkResult], *nodes: str) -> list[BenchmarkResult]:
    """Returns the same results for each of these nodes."""
    return [
        one.model_copy(
            update={"spec": one.spec.model_copy(update={"server": one.spec.server.model_copy(update={"node": node})})}
        )
        for one in found
        for node in nodes
    ]


def with_client(one: BenchmarkResult, node_class: str, network: str, node: str) -> BenchmarkResult:
    facts = {"node_class": node_class, "access_network": network, "node": node}
    client = one.spec.client.model_copy(update=facts)
    return one.model_copy(update={"spec": one.spec.model_copy(update={"client": client})})


def with_levels(one: BenchmarkResult, levels: Mapping[str, str]) -> BenchmarkResult:
    """Returns the same result at other levels."""
    return one.model_copy(update={"spec": one.spec.model_copy(update={"levels": levels})})


def tls(costing: Mapping[str, float] = SIZES) -> list[BenchmarkResult]:
    """Returns results by size and TLS of two brokers, one of which is slower in all cases."""
    means = {
        ("cloud", size, level, broker): (cost if level == "TLSv1.3" else 1.0) * (1.4 if broker == "kafka" else 1.0)
        for (size, cost), level, broker in product(costing.items(), ("None", "TLSv1.3"), ("mosquitto", "kafka"))
    }
    return results(["tls", "broker"], means)


def test_statement_has_each_range_of_levels() -> None:
    assert statements(tls(), "tls") == [
        "On the nodes measured, TLSv1.3 lowers throughput by 23% (95% CI 22–24%) compared with TLS None at 1 kB, "
        "lowers it by 7.4% (6.5–8.3%) at 10 kB, and the difference is inconclusive from 100 kB on."
    ]
    steep = {"1k": 1.5, "10k": 1.3, "100k": 1.1, "1M": 1.0}
    assert (
        "lowers throughput by 9–33% (95% CI 8–34%) compared with TLS None up to 100 kB"
        in statements(tls(steep), "tls")[0]
    )


def test_effect_without_an_interaction_is_one_pooled_ratio() -> None:
    (effect,) = effects_of(tls(), "broker")
    assert (effect.by, len(effect.level_effects)) == ("", 1)
    assert statements(tls(), "broker") == [
        "On the nodes measured, kafka lowers throughput by 29% (95% CI 28–29%) compared with mosquitto."
    ]


def test_statement_has_each_level_of_a_categorical_factor() -> None:
    means = {
        ("cloud", "1M", level, broker): {"kafka": 1.5, "mosquitto": 3.0}[broker] if level == "TLSv1.3" else 1.0
        for level, broker in product(("None", "TLSv1.3"), ("mosquitto", "kafka"))
    }
    assert statements(results(["tls", "broker"], means), "tls", TIME) == [
        "On the nodes measured, TLSv1.3 has 3.0 times (95% CI 3.0–3.0) the transfer time of TLS None with mosquitto, "
        "and raises it by 50% (48–52%) with kafka."
    ]


def test_several_nodes_within_the_margin_are_equal() -> None:
    means = {("cloud", "1M", level): 1.0 for level in ("None", "TLSv1.3")}
    nodes = on_nodes(results(["tls"], means), "a", "b", "c")
    assert statements(nodes, "tls") == ["TLSv1.3 and TLS None are equal within 5% in throughput."]
    assert effects_of(nodes, "tls")[0].size == 0


def test_numbers_are_compared_with_the_next_smaller_one_and_words_with_the_usual_one() -> None:
    means = {("cloud", "1M", pairs): 1.0 for pairs in ("8", "1", "2")}
    assert [(each.first, each.second) for each in effects_of(results(["pairs"], means), "pairs")] == [
        ("pairs 1", "pairs 2"),
        ("pairs 2", "pairs 8"),
    ]
    words = {("cloud", "1M", level): 1.0 for level in ("GZIP", "Zstd", "None")}
    assert {each.first for each in effects_of(results(["compression"], words), "compression")} == {"compression None"}


def test_constant_and_confounded_factors_have_no_effect() -> None:
    found = results(
        ["tls", "broker"], {("cloud", "1M", "None", "kafka"): 1.0, ("cloud", "1M", "TLSv1.3", "mosquitto"): 2.0}
    )
    assert summarize_factors(found, RATE).effects == ()
    assert effects_of(tls(), "nodeClass") == []


def test_file_size_has_no_effect_on_time() -> None:
    assert (effects_of(tls(), "fileSize", TIME), len(effects_of(tls(), "fileSize"))) == ([], 3)


def clients() -> list[BenchmarkResult]:
    """Returns results of phones and tablets on 5G and of old phones on LTE, on three nodes each."""
    places = product((("phone", "5G", 1.0), ("tablet", "5G", 1.2), ("old", "LTE", 1.7)), ("a", "b", "c"))
    return [
        with_client(
            measured("cloud", "1M", [(time * step, 0) for step in (0.99, 1.0, 1.01)], case), name, network, name + node
        )
        for case, ((name, network, time), node) in enumerate(places, start=1)
    ]


def test_client_classes_are_compared_on_one_access_network() -> None:
    """The nodes of the effect are those of the clients: three per class. There is one server."""
    assert statements(clients(), "clientClass") == [
        "Client class tablet lowers throughput by 17% (95% CI 15–18%) compared with client class phone."
    ]
    (network,) = effects_of(clients(), "accessNetwork")
    assert (network.second, network.level_effects[0].relation) == ("access network LTE", Relation.WORSE)
    assert not network.one_node


def test_effect_equals_the_ratio_of_an_advice_that_chooses_the_factor() -> None:
    """Both are pooled in the same way, so all digits are equal."""
    means = {
        ("cloud", size, level): base * (1.2 if level == "TLSv1.3" else 1.0)
        for (size, base), level in product((("1M", 1.0), ("10M", 9.0)), ("None", "TLSv1.3"))
    }
    found = on_nodes(results(["tls"], means), "a", "b")
    (effect,) = effects_of(found, "tls")
    advice = next(item for item in ask(found, choose=["tls"]).ranking if item.name == "TLSv1.3")
    (part,) = effect.level_effects
    assert [round(1e6 * each) for each in (part.ratio.value, part.ratio.low, part.ratio.high)] == [
        advice.ratio_parts_per_million,
        advice.ratio_low_parts_per_million,
        advice.ratio_high_parts_per_million,
    ]


def test_effects_of_an_advice_are_those_at_its_workload() -> None:
    """The answer compares the chosen factor, so it has no effect. The effect of TLS is that at the given size."""
    status = ask(tls(), choose=["broker"], workload=sizes("1k"), objective={"type": "Throughput"})
    (effect,) = status.effects
    assert (effect.factor, effect.from_level, effect.to_level, effect.by) == ("tls", "TLS None", "TLSv1.3", "")
    (at,) = effect.at
    assert (at.level, at.verdict, round(at.ratio_parts_per_million, -4)) == ("", "Worse", 770_000)
    assert "lowers throughput by 23%" in effect.statement


def test_very_many_results_are_compared_at_fewer_levels() -> None:
    found = results(["pairs"], {("cloud", "1M", str(pairs)): 1.0 for pairs in range(1, 31)})
    levels = factorial_data(found, RATE, ALL_LEVELS).levels["pairs"]
    assert (len(levels), levels[0], levels[-1]) == (MAX_LEVELS, "1", "30")
    numbers = [str(number) for number in range(1, 9)]
    many = [
        with_levels(found[0], {"fileSize": "1M", "pairs": a, "streams": b, "partitions": c})
        for a, b, c in product(numbers, repeat=3)
    ]
    every = factorial_data(on_nodes(many, "a", "b", "c"), RATE, ALL_LEVELS)
    assert len(every.readings) <= MAX_READINGS
    assert {len(levels) for levels in every.levels.values()} == {6}


def test_first_statements_are_the_largest_significant_effect_of_each_factor() -> None:
    found = factor_statements([summarize_factors(tls(), RATE, without=["fileSize"])])
    assert [text.split()[4] for text in found] == ["kafka", "TLSv1.3"]
    nothing = {("cloud", size, level): 1.0 for size, level in product(("1M", "2M"), ("None", "TLSv1.3"))}
    first, last = factor_statements([summarize_factors(results(["tls"], nothing), RATE)])
    assert ("2 MB" in first, "is inconclusive" in last) == (True, True)


@examples(0.2)
@given(RATIOS, RATIOS, st.floats(0.1, 10.0))
def test_ratio_is_independent_of_the_unit_and_inverts_with_its_levels(one: float, other: float, unit: float) -> None:
    def ratios(swapped: bool, scale: float) -> list[tuple[float, float, float]]:
        names = ("b", "a") if swapped else ("a", "b")
        means = {
            ("cloud", size, name): scale * (ratio if name == "b" else 1.0)
            for size, ratio in (("1M", one), ("2M", other))
            for name in names
        }
        (effect,) = effects_of(results(["codec"], means), "codec", "durationNanoseconds")
        return [(part.ratio.low, part.ratio.value, part.ratio.high) for part in effect.level_effects]

    plain = ratios(swapped=False, scale=1.0)
    for first, second in zip(plain, ratios(swapped=False, scale=unit), strict=True):
        assert all(isclose(a, b, rel_tol=1e-4) for a, b in zip(first, second, strict=True))
    for first, second in zip(plain, ratios(swapped=True, scale=1.0), strict=True):
        assert all(isclose(a, 1 / b, rel_tol=1e-4) for a, b in zip(first, reversed(second), strict=True))


def knee(times: Mapping[str, float], *nodes: str) -> list[str]:
    """Returns the statements of the knees of times by the number of pairs, on each of these nodes."""
    found = results(["pairs"], {("cloud", "1M", pairs): time for pairs, time in times.items()})
    return [knee_statement(each) for each in summarize_factors(on_nodes(found, *nodes), RATE).knees]


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((1.0, 0.5, 0.5, 0.5), "Throughput does not grow beyond pairs 2."),
        ((1.0, 0.5, 0.495, 0.49), "Throughput does not grow beyond pairs 2."),
        ((1.0, 0.97, 0.94, 0.91), "Throughput does not grow beyond pairs 4."),
        ((1.0, 0.5, 0.7, 0.9), "Throughput is highest with pairs 2 and falls beyond."),
        ((1.0, 0.5, 0.25, 0.12), "Throughput grows up to the last level measured, pairs 8."),
        ((1.0, 1.0, 1.0, 1.0), "Throughput does not grow beyond pairs 1."),
    ],
)
def test_no_level_beyond_the_knee_is_better_by_the_margin(times: tuple[float, ...], words: str) -> None:
    """Three gains can each be smaller than the margin while their sum is larger."""
    assert knee(dict(zip("1248", times, strict=True)), "a", "b", "c") == [words]


def test_knee_of_one_node_is_not_shown_to_be_the_end_of_growth() -> None:
    assert knee({"1": 1.0, "2": 0.5, "4": 0.5}, "a") == [
        "On the nodes measured, no growth of throughput is shown beyond pairs 2."
    ]


def test_two_levels_and_times_have_no_knee() -> None:
    assert knee({"1": 1.0, "2": 0.5}, "a", "b") == []
    found = results(["pairs"], {("cloud", "1M", pairs): 1.0 for pairs in "124"})
    assert summarize_factors(found, TIME).knees == ()


def test_knee_has_each_level_of_the_interacting_factor() -> None:
    times = {
        ("cloud", "1M", pairs, broker): time
        for broker, course in (("mosquitto", (1.0, 0.5, 0.5)), ("kafka", (1.0, 0.5, 0.25)))
        for pairs, time in zip("124", course, strict=True)
    }
    (found,) = summarize_factors(on_nodes(results(["pairs", "broker"], times), "a", "b", "c"), RATE).knees
    assert knee_statement(found) == (
        "Throughput does not grow beyond pairs 2 with mosquitto; "
        "throughput grows up to the last level measured, pairs 4 with kafka."
    )
