"""Figures of a run: those of the papers, from similar results, and distributions by class."""

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.kinds.network.test_clients import NODES
from tests.unit.report import papers
from tests.unit.report.brokers import measured as exchanged
from tests.unit.report.brokers import three_classes
from tests.unit.report.published import published
from tests.unit.report.test_page import outline, page, plots
from tests.unit.report.test_panels import run
from tierbench.advice.tables import Cell, newest, runs
from tierbench.api.contract import Distributions
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.broker.report import message_time
from tierbench.kinds.network.report import device_figures
from tierbench.kinds.registry import kind_of, kinds
from tierbench.report.figures import Figure
from tierbench.report.panels import panel_of
from tierbench.report.run_figures import RunFigures, distribution_figures
from tierbench.results.quantities import main_quantity

BROKER = kind_of("BrokerBenchmark").report


def figures_of(results: list[BenchmarkResult]) -> RunFigures:
    found = run(results)
    return RunFigures(found, "p", main_quantity(found.benchmark.kind, ()))


def titled(figures: tuple[Figure, ...], start: str) -> list[Figure]:
    return [figure for figure in figures if figure.chart.title.startswith(start)]


def test_rate_by_compression_ratio_has_a_linear_axis() -> None:
    found = titled(figures_of(papers.ratios()).main, "Messages per second by compression ratio and compression")
    assert [figure.chart.title.split(": ")[1] for figure in found] == ["10 kB", "100 kB"]
    assert found[0].chart.levels[0] == "10%"
    assert found[0].chart.axis == "Compression ratio (share left)"
    assert found[0].chart.numbers == tuple(range(10, 100, 10))
    assert found[0].chart.proportional
    assert found[0].svg.count('class="line"') == 3


def test_levels_that_are_words_are_bars_on_a_linear_axis() -> None:
    for figure in figures_of(papers.deliveries()).main:
        assert 'class="line"' not in figure.svg
        assert figure.svg.count('class="bar"') == 6
        assert figure.svg.count('class="interval"') == 6
        assert not figure.chart.logarithmic
        assert "logarithmic" not in figure.note


def test_time_of_a_message_is_its_round_trip_and_decoding() -> None:
    parts = {"compress": 2_000_000, "encrypt": 1_000_000, "decrypt": 500_000, "decompress": 250_000}
    result = papers.broker_result(1, 10e6, papers.USER, parts, payloadSize="1Ki", compression="Gzip", encryption="AES")
    times = message_time(Cell((result,)))
    assert times == pytest.approx(parts | {"transfer": 10e6 * 1.001 - 3e6}, rel=0.02)
    assert message_time(Cell((published()[0],))) == {}


def test_only_encoded_messages_have_a_stack_of_steps() -> None:
    found = dict(figures_of(papers.ratios()).sections)["Time of a message, by step"]
    assert [figure.chart.title for figure in found[:4]] == [
        "Time of a message by compression ratio and part: compression Gzip, 10 kB",
        "Time of its encoding and decoding by compression ratio and part: compression Gzip, 10 kB",
        "Time of a message by compression ratio and part: compression Zstd, 10 kB",
        "Time of its encoding and decoding by compression ratio and part: compression Zstd, 10 kB",
    ]
    assert [series.name for series in found[0].chart.series] == ["compress", "transfer", "decompress"]
    assert "Mean per message" in found[0].note
    assert dict(figures_of(papers.deliveries()).sections)["Time of a message, by step"] == ()


def test_each_client_has_a_bar_alone_and_at_once() -> None:
    (figure,) = device_figures("p", run(papers.devices()))
    assert figure.chart.title == "Throughput of each client, alone and all at once"
    assert figure.chart.levels == papers.DEVICES
    alone, at_once = figure.chart.series
    assert [point.value / 1e6 for point in alone.points] == pytest.approx([400, 420, 110, 105, 600], rel=0.02)
    assert [point.value / 1e6 for point in at_once.points] == pytest.approx([180, 200, 30, 25, 90], rel=0.02)
    (without,) = device_figures("p", run(papers.devices()[-1:]))
    assert without.chart.title == "Throughput of each client at once"
    assert [series.name for series in without.chart.series] == ["all at once"]
    assert device_figures("p", run(papers.access_networks())) == ()


def test_clients_of_different_classes_have_the_names_of_classes() -> None:
    result = papers.devices()[-1]
    clients = (*NODES, *result.spec.clients[3:])
    changed = result.model_copy(update={"spec": result.spec.model_copy(update={"clients": clients})})
    (figure,) = device_figures("p", run([changed]))
    assert figure.chart.levels == ("pi", "jetson", "phone", "tablet-2", "pc")


def test_rates_of_clients_are_in_one_figure() -> None:
    assert not titled(figures_of(papers.devices()).main, "Client")


def test_figures_precede_tables() -> None:
    text = "".join(outline(page(papers.ratios())).text)
    assert text.index("Figures") < text.index("Time of a message, by step (8)") < text.index("mean ± s.d.")


def figures(results: list[BenchmarkResult], titles: Mapping[str, str] = BROKER.spreads) -> tuple[Figure, ...]:
    (run,) = newest(runs(results))
    (table,) = run.tables
    return distribution_figures("p", panel_of(table), titles)


def test_percentiles_are_over_all_trials() -> None:
    times = [10**6 * (1 + n // 90) for n in range(100)]  # 90 of 1 ms, 10 of 2 ms
    (figure,) = figures([exchanged("cloud", "1Ki", times)])
    numbers = {row[0]: row[1] for row in figure.rows}
    assert list(numbers) == ["0%", "50%", "90%", "99%"]  # 300 messages are too few for 99.9%
    assert [text.split()[0][:3] for text in numbers.values()] == ["1.0", "1.0", "1.0", "2.0"]


def test_each_size_has_a_figure_and_each_class_a_line() -> None:
    found = figures(three_classes())
    assert [figure.chart.title for figure in found] == [
        f"Round trip at {size}" for size in ("1 KiB", "10 KiB", "100 KiB")
    ]
    for figure in found:
        assert [series.name for series in figure.chart.series] == ["cloud", "jetson", "raspberry-pi-4"]
        assert figure.svg.count('class="line"') == 3
    assert len(figures(three_classes(), BROKER.other_spreads)) == 3


def test_every_distribution_has_a_title() -> None:
    drawn = [name for kind in kinds() for name in (*kind.report.spreads, *kind.report.other_spreads)]
    assert sorted(drawn) == sorted(Distributions.model_fields)


def test_few_messages_have_no_distribution() -> None:
    assert figures([exchanged("cloud", "1Ki", [10**6] * 33)]) == ()
    assert len(figures([exchanged("cloud", "1Ki", [10**6] * 34)])) == 1


def test_line_of_fewer_messages_ends_earlier() -> None:
    many, few = exchanged("cloud", "1Ki", [10**6] * 1000), exchanged("jetson", "1Ki", [10**6] * 20, case=2)
    (figure,) = figures([many, few])
    assert figure.rows[-1][2] == "–"
    assert figure.rows[2][2] != "–"


@given(st.lists(st.integers(1, 10**10), min_size=34, max_size=200))
def test_lines_never_fall_and_are_within_the_chart(times: list[int]) -> None:
    (figure,) = figures([exchanged("cloud", "1Ki", times)])
    (line,) = re.findall(r'class="line" d="M([^"]+)"', figure.svg)
    corners = [tuple(map(float, corner.split())) for corner in line.split("L")]
    assert corners == sorted(corners, key=lambda corner: corner[0])
    assert [y for _, y in corners] == sorted((y for _, y in corners), reverse=True)
    assert all(66 <= x <= 466 and 12 <= y <= 254 for x, y in corners)


def test_page_has_the_distributions() -> None:
    html = page(three_classes())
    text = "".join(outline(html).text)
    assert "Distribution of single operations (3)" in text
    assert "Share that was at least as fast" in text
    assert len(plots(html)) == html.count('<details class="numbers">')
